// Fields of the form at the side: what a slider, a list or a switch sets is a word of the state.
import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { change } from '../state';
import { read } from '../request';

export type Words = { readonly [key: string]: string };

/** 1, 2, 3, 4, 6, 8, 12, 16 … */
export const doubling = (from: number, to: number): number[] => {
    const out: number[] = [];
    for (let p = from; p <= to; p *= 2) {
        out.push(p);
        if (p >= 2 && p * 1.5 <= to && Number.isInteger(p * 1.5)) out.push(p * 1.5);
    }
    return out;
};
export const powers = (from: number, to: number): number[] => {
    const out: number[] = [];
    for (let p = from; p <= to; p *= 2) out.push(p);
    return out;
};

function nearest(stops: readonly number[], value: number): number {
    let best = 0;
    stops.forEach((s, i) => {
        if (Math.abs(Math.log(s / value)) < Math.abs(Math.log(stops[best]! / value))) best = i;
    });
    return best;
}

/** 1e12 rather than its zeros. */
const short = (n: number): string => (n >= 1e9 ? n.toExponential().replace('e+', 'e') : String(n));

// A form has dozens of fields, of which a movement changes one: each gives the same element again while nothing that it
// shows has changed, and is passed over then.

/** A range over round values, with a box for any other. */
export function Slider(p: {
    name: string;
    of: string;
    is: Words;
    stops: readonly number[];
    by?: number;
    unit?: string;
    hint?: string;
}): JSX.Element {
    const text = read(p.is, p.of);
    const value = Number(text) || p.by || p.stops[0]!;
    const id = `f-${p.of}`,
        set = p.is[p.of] ? 'set' : '';
    const field = (): JSX.Element => (
        <div class={`field slider ${set}`} title={p.hint}>
            <label for={id}>{p.name}</label>
            <div>
                <input
                    id={id}
                    type="range"
                    min={0}
                    max={p.stops.length - 1}
                    step={1}
                    value={nearest(p.stops, value)}
                    aria-valuetext={`${value}${p.unit ? ` ${p.unit}` : ''}`}
                    onInput={(e) => change({ [p.of]: short(p.stops[Number(e.currentTarget.value)]!) })}
                />
                <input
                    class="number"
                    inputMode="decimal"
                    aria-label={`${p.name}${p.unit ? `, ${p.unit}` : ''}`}
                    value={text}
                    placeholder={p.by ? String(p.by) : ''}
                    onChange={(e) => change({ [p.of]: e.currentTarget.value.trim() })}
                />
            </div>
        </div>
    );
    return useMemo(field, [p.of, text, set, p.name, p.by, p.unit, p.hint, p.stops.length, p.stops[0], p.stops.at(-1)]);
}

/** Words to choose from; the first is what happens by itself. */
export function Choice(p: {
    name: string;
    of: string;
    is: Words;
    words: readonly (string | readonly [string, string])[];
    hint?: string;
}): JSX.Element {
    const value = read(p.is, p.of),
        id = `f-${p.of}`;
    const words = p.words.map((w) => (typeof w === 'string' ? ([w, w] as const) : w));
    const known = words.some(([w]) => w === value) || value === '',
        set = p.is[p.of] ? 'set' : '';
    const field = (): JSX.Element => (
        <div class={`field ${set}`} title={p.hint}>
            <label for={id}>{p.name}</label>
            <select id={id} value={value} onChange={(e) => change({ [p.of]: e.currentTarget.value })}>
                {words.map(([w, text]) => (
                    <option key={w} value={w}>
                        {text}
                    </option>
                ))}
                {!known && <option value={value}>{value}</option>}
            </select>
        </div>
    );
    return useMemo(field, [p.of, value, set, p.name, p.hint, p.words.join('\n')]);
}

export function Check(p: { name: string; of: string; is: Words; hint?: string }): JSX.Element {
    const id = `f-${p.of}`,
        value = read(p.is, p.of),
        set = p.is[p.of] ? 'set' : '';
    const field = (): JSX.Element => (
        <div class={`field ${set}`} title={p.hint}>
            <label for={id}>{p.name}</label>
            <span>
                <input
                    id={id}
                    type="checkbox"
                    checked={value === 'true'}
                    onChange={(e) => change({ [p.of]: e.currentTarget.checked ? 'true' : '' })}
                />
            </span>
        </div>
    );
    return useMemo(field, [p.of, value, set, p.name, p.hint]);
}

export function Text(p: {
    name: string;
    of: string;
    is: Words;
    placeholder?: string;
    hint?: string;
    set?: (text: string) => void;
}): JSX.Element {
    const id = `f-${p.of}`,
        value = read(p.is, p.of),
        set = p.is[p.of] ? 'set' : '';
    const field = (): JSX.Element => (
        <div class={`field ${set}`} title={p.hint}>
            <label for={id}>{p.name}</label>
            <input
                id={id}
                type="text"
                value={value}
                placeholder={p.placeholder ?? ''}
                onChange={(e) => (p.set ?? ((text: string) => change({ [p.of]: text })))(e.currentTarget.value.trim())}
            />
        </div>
    );
    return useMemo(field, [p.of, value, set, p.name, p.hint, p.placeholder, p.set]);
}

export function Group(p: { name: string; children: ComponentChildren }): JSX.Element {
    return (
        <div role="group" aria-label={p.name}>
            <h2>{p.name}</h2>
            {p.children}
        </div>
    );
}
