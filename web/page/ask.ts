// Questions to the library: only the newest of each place matters. While one is under way the latest is kept, those
// between are never asked, so that a slider is as fast as the answers are.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Source } from '../core/source';
import type { Failure, Request } from './answers';
import { together, work } from './work';

let source: Source | null = null;
const waiting: (() => void)[] = [];
const seen = new Map<string, string>(); // the last answers, so that going back costs nothing
const mostSeen = 64;
const several = 4; // of many: a newer question waits for no more than these

export function ready(s: Source): void {
    source = s;
    for (const go of waiting.splice(0)) go();
}

const opened = (): Promise<void> => (source ? Promise.resolve() : new Promise((go) => waiting.push(go)));

/** A file that requests can name by its path. */
export async function put(path: string, bytes: Uint8Array): Promise<void> {
    await opened();
    await source!.put(path, bytes);
}

/** Who answers, in words, and whether requests may name its files. */
export const answerer = (): { where: string; files: boolean } => source ?? { where: '', files: false };

function remember(key: string, text: string): void {
    seen.set(key, text);
    if (seen.size > mostSeen) seen.delete(seen.keys().next().value!);
}

/** The answer's text, as the library wrote it. */
export async function askText(request: Request): Promise<string> {
    const key = JSON.stringify(request);
    const known = seen.get(key);
    if (known !== undefined) return known;
    await opened();
    const text = await source!.answer(key);
    remember(key, text);
    return text;
}

/** Several at once, those that are known without asking: a server answers on all its cores. */
async function askAll<T>(requests: readonly Request[]): Promise<(T | Failure)[]> {
    await opened();
    const keys = requests.map((request) => JSON.stringify(request));
    const unknown = [...new Set(keys.filter((key) => !seen.has(key)))];
    const texts = await source!.answers(unknown);
    const found = new Map(unknown.map((key, i) => [key, texts[i]!]));
    const all = keys.map((key) => found.get(key) ?? seen.get(key)!);
    for (const [key, text] of found) remember(key, text);
    return all.map((text) => JSON.parse(text) as T | Failure);
}

export async function ask<T>(request: Request): Promise<T | Failure> {
    return JSON.parse(await askText(request)) as T | Failure;
}

export interface Asked<T> {
    answer: T | null; // the last good one: it stays while the next is under way
    request: Request | null; // of that answer
    error: Failure['error'] | null;
    busy: boolean;
}

interface Slot {
    wanted: string | null;
    under: boolean;
    shown: string;
}

/** The answer to the newest request; null asks nothing. `later`: not before the settings rest. */
export function useAnswer<T extends { ok: true }>(request: Request | null, later = false): Asked<T> {
    const [asked, set] = useState<Asked<T>>({ answer: null, request: null, error: null, busy: true });
    const slot = useRef<Slot>({ wanted: null, under: false, shown: '' }).current;
    const key = request && JSON.stringify(request);
    useLayoutEffect(() => {
        slot.wanted = key;
        if (key === null || key === slot.shown || slot.under) return;
        const next = async (): Promise<void> => {
            slot.under = true;
            while (slot.wanted !== null && slot.wanted !== slot.shown) {
                const text: string = slot.wanted;
                const of = JSON.parse(text) as Request;
                const asks = ask<T>(of).catch((wrong): Failure => ({
                    ok: false,
                    error: { code: 'page', message: String(wrong) },
                }));
                const show = (found: T | Failure): void => {
                    const busy = slot.wanted !== text;
                    if (found.ok) set({ answer: found, request: of, error: null, busy });
                    else set((old) => ({ ...old, error: found.error, busy }));
                };
                if (later) show(await asks);
                else await together(asks, show);
                slot.shown = text;
            }
            slot.under = false;
        };
        set((old) => (old.busy ? old : { ...old, busy: true }));
        if (!later) return void next();
        const timer = setTimeout(() => void (slot.under || next()), work.rest);
        return () => clearTimeout(timer);
    }, [key]);
    return asked;
}

/** The value once it rests; the first at once. For what is too much to be shown for every movement of a slider. */
export function useRested<T>(value: T): T {
    const [shown, set] = useState(value);
    useEffect(() => {
        const timer = setTimeout(() => set(() => value), work.rest);
        return () => clearTimeout(timer);
    }, [value]);
    return shown;
}

/** Several at once, in order; kept until the next are all there. */
export function useAnswers<T extends { ok: true }>(
    requests: Request[] | null,
): { answers: (T | Failure)[]; busy: boolean } {
    const [found, set] = useState<{ answers: (T | Failure)[]; busy: boolean }>({ answers: [], busy: true });
    const newest = useRef(0);
    const key = requests && JSON.stringify(requests);
    useEffect(() => {
        if (!requests) return;
        const mine = ++newest.current;
        set((old) => ({ ...old, busy: true }));
        const go = async (): Promise<void> => {
            const answers: (T | Failure)[] = [];
            for (let at = 0; at < requests.length; at += several) {
                if (mine !== newest.current) return;
                answers.push(...(await askAll<T>(requests.slice(at, at + several))));
            }
            if (mine === newest.current) set({ answers, busy: false });
        };
        void go();
    }, [key]);
    return found;
}
