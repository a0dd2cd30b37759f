// What the page shows, as one flat set of words: in the address, so that a link brings it back, and in a list of what
// was, so that every change can be undone.
//
// The address is `#VIEW?key=value&…`; what is as it would be without saying is left out.
import { useEffect, useState } from 'preact/hooks';
import { move, work } from './work';

export interface State {
    view: string;
    is: { readonly [key: string]: string };
}

const longest = 200;
const calm = 500; // changes of one key closer than this, in ms, are one to undo: a slider that is dragged

let now: State = { view: 'step', is: {} };
let past: State[] = [],
    future: State[] = [];
let lastKey = '',
    lastTime = 0;
const listeners = new Set<() => void>();

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
/** `moving`: a slider on its way. Its address is written when it rests: browsers take one as a visit, which costs them more than
 *  the movement itself, and count how often it changes. */
function show(next: State, kept: boolean, moving = false): void {
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
    for (const listener of listeners) listener();
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
    show(next, view !== now.view, moving && view === now.view);
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
    now = given ?? parse(first)!;
    const arrive = (): void => {
        const next = parse(location.hash);
        if (!next || address(next) === address(now)) return;
        clearTimeout(writing);
        past = [...past, now].slice(-longest);
        lastKey = '';
        now = next;
        for (const listener of listeners) listener();
    };
    addEventListener('hashchange', arrive);
    addEventListener('popstate', arrive);
    return given !== null;
}

export function useChanges(): State {
    const [, again] = useState(0);
    useEffect(() => {
        const listener = (): void => again((n) => n + 1);
        listeners.add(listener);
        return () => void listeners.delete(listener);
    }, []);
    return now;
}
