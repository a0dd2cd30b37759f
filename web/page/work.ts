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

const patience = 30; // ms that what came first waits for the rest
let under = 0; // asked, and not there yet
let waits: (() => void)[] = [];
const listeners = new Set<() => void>();

/** Calls back whenever what came was shown; what it returns ends that. */
export function whenShown(listener: () => void): () => void {
    listeners.add(listener);
    return () => void listeners.delete(listener);
}
let timer: ReturnType<typeof setTimeout> | undefined;

function showAll(): void {
    clearTimeout(timer);
    const all = waits;
    waits = [];
    timer = undefined;
    for (const show of all) show();
    for (const listener of listeners) listener();
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
