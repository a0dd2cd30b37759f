// What the page did, for tests and for bench.mjs, and how what comes is shown: in one go.

/** How often pictures were put into the page, how many marks they had, and when the last were asked for, came and stood there:
 *  for tests that no machine's speed decides, and for those that say it. `rest`: ms without a change, after which what can
 *  wait is asked. */
export const work = { pictures: 0, elements: 0, asked: 0, came: 0, last: 0, rest: 150 };
Object.assign(globalThis, { foretellWork: work });

let moved = -Infinity;
export const move = (): void => void (moved = performance.now());
/** A slider is being dragged: what is shown now is shown for a moment. */
export const moving = (): boolean => performance.now() - moved < work.rest;

const resting = new Set<() => void>();
let asked = 0, // when something last wanted to be called
    due = 0,
    alarm: ReturnType<typeof setTimeout> | undefined;

function wake(): void {
    const left = asked + work.rest - performance.now();
    if (left > 1) return setAlarm(left);
    alarm = undefined;
    const all = [...resting];
    resting.clear();
    for (const then of all) then();
}

function setAlarm(ms: number): void {
    clearTimeout(alarm);
    due = performance.now() + ms;
    alarm = setTimeout(wake, ms);
}

/** Calls back once nothing has changed for a while; what it returns takes that back. One timer for all that wait: a
 *  movement has a dozen of them. */
export function atRest(then: () => void): () => void {
    resting.add(then);
    asked = performance.now();
    if (alarm === undefined || due > asked + work.rest) setAlarm(work.rest);
    return () => void resting.delete(then);
}

const patience = 30; // ms that what came first waits for the rest
let under = 0; // asked, and not there yet
let waits: (() => void)[] = [];
const listeners = new Set<() => void>();

/** Calls back whenever what came was shown; what it returns ends that. */
export function whenShown(listener: () => void): () => void {
    listeners.add(listener);
    return () => void listeners.delete(listener);
}
/** What came is being shown. */
export const told = (): void => listeners.forEach((listener) => listener());
let timer: ReturnType<typeof setTimeout> | undefined;

function showAll(): void {
    clearTimeout(timer);
    const all = waits;
    waits = [];
    timer = undefined;
    for (const show of all) show();
    told();
}

/** Something that a movement asked for: its figures, its pictures. They come one by one and are shown together, so that the
 *  browser lays out and paints once for a movement and not once for each of them. */
export async function together<T>(asked: Promise<T>, show: (found: T) => void): Promise<T> {
    under++;
    try {
        const found = await asked;
        waits.push(() => show(found));
        return found;
    } finally {
        under--;
        if (!under) showAll();
        else if (waits.length && !timer) timer = setTimeout(showAll, patience);
    }
}
