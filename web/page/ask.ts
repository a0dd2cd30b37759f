// Questions to the library: only the newest of each place matters. While one is under way the latest is kept, those
// between are never asked, so that a slider is as fast as the answers are.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Source } from '../core/source';
import type { Failure, Request } from './answers';
import { atRest, together } from './work';

let source: Source | null = null;
const waiting: (() => void)[] = [];
const seen = new Map<string, string>(); // the last answers, so that going back costs nothing
const under = new Map<string, Promise<string>>(); // asked with others, and not there yet
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
    const known = seen.get(key) ?? under.get(key);
    if (known !== undefined) return known;
    await opened();
    const text = await source!.answer(key);
    remember(key, text);
    return text;
}

/** What is known of these, what is not, and all of them once that has come: remembering it may forget the others. */
function told(keys: readonly string[]): { unknown: string[]; all: (texts: readonly string[]) => string[] } {
    const known = new Map<string, string>();
    for (const key of keys) {
        const text = seen.get(key);
        if (text !== undefined) known.set(key, text);
    }
    const unknown = [...new Set(keys.filter((key) => !known.has(key)))];
    const all = (texts: readonly string[]): string[] => {
        texts.forEach((text, i) => {
            known.set(unknown[i]!, text);
            remember(unknown[i]!, text);
        });
        return keys.map((key) => known.get(key)!);
    };
    return { unknown, all };
}

/** Several at once, those that are known without asking: a server answers on all its cores. */
export async function askTexts(keys: readonly string[], movement = false): Promise<string[]> {
    const { unknown, all } = told(keys);
    const asked = opened().then(() => (unknown.length ? source!.answers(unknown, movement) : []));
    unknown.forEach((key, i) => {
        const one = asked.then((texts) => texts[i]!);
        one.catch(() => {}); // who waits for it hears of it; nobody may
        under.set(key, one);
    });
    try {
        return all(await asked);
    } finally {
        for (const key of unknown) under.delete(key);
    }
}

/** Of a slider that moves, where its answers take next to nothing (core/near.ts); null: they are to be waited for. */
export function askNow(keys: readonly string[]): string[] | null {
    const { unknown, all } = told(keys);
    const texts = unknown.length ? source?.now(unknown) : [];
    return texts ? all(texts) : null;
}

/** What went wrong on the way to the library, as its own answers say what is wrong with a request. */
const failure = (wrong: unknown): Failure => ({ ok: false, error: { code: 'page', message: String(wrong) } });

async function askAll<T>(requests: readonly Request[]): Promise<(T | Failure)[]> {
    const texts = await askTexts(requests.map((request) => JSON.stringify(request)));
    return texts.map((text) => JSON.parse(text) as T | Failure);
}

let foreseen: ReadonlyMap<string, unknown> = new Map(); // what a movement asked ahead (ahead.ts), as it came
export const foresee = (found: ReadonlyMap<string, unknown>): void => void (foreseen = found);
/** What is there already of a movement that is being drawn; undefined: nothing. */
export const known = <T>(key: string): T | undefined => foreseen.get(key) as T | undefined;

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
    asked: Asked<unknown>;
}

/** The answer beside what was there before. */
const withAnswer = <T extends { ok: true }>(
    old: Asked<T>,
    found: T | Failure,
    request: Request,
    busy: boolean,
): Asked<T> => (found.ok ? { answer: found, request, error: null, busy } : { ...old, error: found.error, busy });

/** The answer to the newest request; null asks nothing. `later`: not before the settings rest. */
export function useAnswer<T extends { ok: true }>(request: Request | null, later = false): Asked<T> {
    const [, again] = useState(0);
    const slot = useRef<Slot>({
        wanted: null,
        under: false,
        shown: '',
        asked: { answer: null, request: null, error: null, busy: true },
    }).current as Slot & { asked: Asked<T> };
    const set = (asked: Asked<T>): void => {
        slot.asked = asked;
        again((n) => n + 1);
    };
    const key = request && JSON.stringify(request);
    const there = request && key !== slot.shown && !slot.under ? known<T | Failure>(key!) : undefined;
    if (there) Object.assign(slot, { shown: key, asked: withAnswer(slot.asked, there, request!, false) });
    useLayoutEffect(() => {
        slot.wanted = key;
        if (key === null || key === slot.shown || slot.under) return;
        const next = async (): Promise<void> => {
            slot.under = true;
            while (slot.wanted !== null && slot.wanted !== slot.shown) {
                const text: string = slot.wanted;
                const of = JSON.parse(text) as Request;
                const asks = ask<T>(of).catch(failure);
                const show = (found: T | Failure): void =>
                    set(withAnswer(slot.asked, found, of, slot.wanted !== text));
                if (later) show(await asks);
                else await together(asks, show);
                slot.shown = text;
            }
            slot.under = false;
        };
        if (!slot.asked.busy) set({ ...slot.asked, busy: true });
        if (!later) return void next();
        return atRest(() => void (slot.under || next()));
    }, [key]);
    return slot.asked;
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
                const some = requests.slice(at, at + several);
                answers.push(...(await askAll<T>(some).catch((wrong) => some.map(() => failure(wrong)))));
            }
            if (mine === newest.current) set({ answers, busy: false });
        };
        void go();
    }, [key]);
    return found;
}
