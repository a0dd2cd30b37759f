// The streams of one GPU over one step, and the stages of a pipeline. Dragging across a timeline zooms, two clicks or Escape
// show the whole again; + - and arrows do the same. A zoomed part is drawn anew: what shared a pixel comes apart.
import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Request } from '../answers';
import { ms } from '../format';
import { Drawn, titleOf, upright, type Hint, type Plot } from './drawn';

/** What stands at the pointer, and when. */
function moment(px: number, { x, bottom }: Plot, target: EventTarget | null): Hint | null {
    const t = x?.back(px) ?? -1;
    if (!x || px < x.from || px > x.to) return null;
    return { text: titleOf(target) || `at ${ms(t, 4)}`, mark: upright(px, bottom) };
}

export function Pipeline(p: { of: Request }): JSX.Element {
    return (
        <Drawn
            name="pipeline"
            of={p.of}
            spec={{ what: 'pipeline' }}
            hint={(x, _y, plot, target) => moment(x, plot, target)}
        />
    );
}

export function Timeline(p: { of: Request }): JSX.Element {
    const [range, setRange] = useState<[number, number] | null>(null);
    const end = useRef(0); // of the whole step
    const [low, high] = range ?? [0, end.current];
    const show = (a: number, b: number): void => {
        const wide = Math.max(b - a, end.current * 2e-5);
        const from = Math.max(0, Math.min(a, end.current - wide));
        setRange(wide >= end.current ? null : [from, from + wide]);
    };
    const keys = (e: KeyboardEvent): boolean => {
        const step = (high - low) * 0.2;
        if (e.key === '+' || e.key === '=') show(low + 0.25 * (high - low), high - 0.25 * (high - low));
        else if (e.key === '-') show(low - 0.5 * (high - low), high + 0.5 * (high - low));
        else if (e.key === 'ArrowLeft') show(Math.max(low - step, 0), Math.max(low - step, 0) + high - low);
        else if (e.key === 'ArrowRight') show(low + step, high + step);
        else if (e.key === 'Escape' || e.key === '0') setRange(null);
        else return false;
        return true;
    };
    return (
        <div onDblClick={() => setRange(null)}>
            <Drawn
                name="timeline"
                of={p.of}
                spec={{ what: 'timeline', ...(range && { window_ms: range.map((t) => +t.toPrecision(7)) }) }}
                note="Plus, minus and arrow keys zoom and move."
                keys={keys}
                drag={(from, to, { x }) => x && show(x.back(Math.min(from, to)), x.back(Math.max(from, to)))}
                hint={(x, _y, plot, target) => moment(x, plot, target)}
                ready={({ x }) => {
                    if (!range && x) end.current = x.high;
                    else if (x && range && x.low < range[0] * 0.999) setRange(null); // a shorter step ends before it
                }}
            />
            {range && (
                <button class="plain" onClick={() => setRange(null)}>
                    The whole step
                </button>
            )}
        </div>
    );
}
