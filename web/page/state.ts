// What the page shows, as one flat set of words: in the address, so that a link brings it back, and in a list of what
// was, so that every change can be undone.
//
// The address is `#VIEW?key=value&…`; what is as it would be without saying is left out.
import { useEffect, useState } from 'preact/hooks';
import { ahead } from './ahead';
import { move, told, work } from './work';

export interface State {
    view: string;
    is: { readonly [key: string]: string };
}

const longest = 200;
const calm = 500; // changes of one key closer than this, in ms, are one to undo: a slider that is dragged

const patience = 30; // ms that settings wait for their answers, to be drawn with them

let now: State = { view: 'step', is: {} };
let shown = now; // what the answers on the page are of: behind `now` by one answer while a slider moves
let past: State[] = [],
    future: State[] = [];
let lastKey = '',
    lastTime = 0;
const listeners = new Set<() => void>(); // to settings
const readers = new Set<() => void>(); // to what is drawn with its answers

export function parse(hash: string): State | null {
    const found = /^#([a-z]+)(?:\?(.*))?$/.exec(hash);
    if (!found) return null;
    const is: { [key: string]: string } = {};
    for (const [key, value] of new URLSearchParams(found[2] ?? '')) is[key] = value;
    return { view: found[1]!, is };
}

export function address(s: State): string {
    const words = Object.entries(s.is)
        .filter(([, value]) => value !== '')
        .map(([key, value]) => `${key}=${encodeURIComponent(value).replace(/%20/g, '+').replace(/%2C/gi, ',')}`);
    return `#${s.view}${words.length ? `?${words.join('&')}` : ''}`;
}

let writing: ReturnType<typeof setTimeout> | undefined; // the timer of an address that waits
/** `stays`: settings of the same view, which are drawn with their answers. `moving`: a slider on its way. Its address is
 *  written when it rests: browsers take one as a visit, which costs them more than the movement itself, and count how
 *  often it changes. */
function show(next: State, kept: boolean, moving = false, stays = false): void {
    now = next;
    clearTimeout(writing);
    const write = (): void => {
        const url = address(next);
        if (location.hash !== url) history[kept ? 'pushState' : 'replaceState'](null, '', url);
    };
    if (moving) {
        move();
        writing = setTimeout(write, work.rest);
    } else write();
    if (kept || !stays) tell(now);
    else follows(); // asked first: the library works while the form is drawn
    for (const listener of listeners) listener();
}

let turn = 0; // of what is drawn: answers of another are too late
let waits = false; // settings wait for their answers
let late = false; // answers that are asked for take long: settings are drawn without them

function tell(of: State): void {
    turn++;
    waits = false;
    shown = of;
    for (const reader of readers) reader();
    told();
}

/** Draws the newest settings with their answers, as soon as those are there; of settings that change meanwhile only the
 *  last. */
function follows(): void {
    if (waits) return;
    const of = now;
    const there = late ? null : ahead(of.is, shown.is);
    if (!there || there === true) tell(now);
    if (!there) return;
    const mine = turn;
    waits = true;
    if (there === true)
        return void requestAnimationFrame(() => { // more than one movement of a frame: the last
            if (mine !== turn) return;
            waits = false;
            if (now !== of) follows();
        });
    const timer = setTimeout(() => {
        if (mine !== turn) return;
        late = true;
        tell(now);
    }, patience);
    const done = (): void => {
        late = false;
        clearTimeout(timer);
        if (mine !== turn) return;
        tell(of);
        if (now !== of) follows();
    };
    there.then(done, done);
}

export const state = (): State => now;

/** Values to set; '' takes a key back to what it is by itself. */
export function change(values: { [key: string]: string }, view = now.view): void {
    const is: { [key: string]: string } = { ...now.is, ...values };
    for (const key of Object.keys(is)) if (is[key] === '') delete is[key];
    const next = { view, is };
    if (address(next) === address(now)) return;
    const key = view + Object.keys(values).join();
    const time = performance.now();
    const moving = key === lastKey && time - lastTime <= calm;
    if (!moving) past = [...past, now].slice(-longest);
    future = [];
    [lastKey, lastTime] = [key, time];
    const stays = view === now.view;
    show(next, !stays, moving && stays, stays);
}

/** The same in other words: nothing to undo. */
export function reword(values: { [key: string]: string }): void {
    show({ ...now, is: { ...now.is, ...values } }, false);
}

/** Another question altogether, as a link or an example asks it. */
export function visit(hash: string): void {
    const next = parse(hash);
    if (!next || address(next) === address(now)) return;
    past = [...past, now].slice(-longest);
    future = [];
    lastKey = '';
    show(next, true);
}

export function undo(): void {
    const before = past.pop();
    if (!before) return;
    future.push(now);
    lastKey = '';
    show(before, false);
}
export function redo(): void {
    const after = future.pop();
    if (!after) return;
    past.push(now);
    lastKey = '';
    show(after, false);
}
export const undoable = (): boolean => past.length > 0;
export const redoable = (): boolean => future.length > 0;

/** At the start, and when somebody edits the address or goes back. */
export function follow(first: string): boolean {
    const given = parse(location.hash);
    now = shown = given ?? parse(first)!;
    const arrive = (): void => {
        const next = parse(location.hash);
        if (!next || address(next) === address(now)) return;
        clearTimeout(writing);
        past = [...past, now].slice(-longest);
        future = []; // what was undone led elsewhere
        lastKey = '';
        now = next;
        tell(now);
        for (const listener of listeners) listener();
    };
    addEventListener('hashchange', arrive);
    addEventListener('popstate', arrive);
    return given !== null;
}

function useOf(those: Set<() => void>): void {
    const [, again] = useState(0);
    useEffect(() => {
        const one = (): void => again((n) => n + 1);
        those.add(one);
        return () => void those.delete(one);
    }, []);
}

/** Settings as they are. */
export function useChanges(): State {
    useOf(listeners);
    return now;
}

/** Settings whose answers are on the page, or will be. */
export function useAnswered(): State {
    useOf(readers);
    return shown;
}
