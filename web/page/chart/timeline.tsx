// The streams of one GPU over one step: passes, layers, kernels, exchanges, the host. Kernels are coloured by what holds
// them; those too short for a pixel share one, each colour as high as its part of the time. What the GPU waits for
// shows as its track. Dragging across zooms, two clicks or Escape show the whole again; + - and arrows do the same.
import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { Bound, Course, Event } from '../answers';
import { bounds } from '../answers';
import { ms } from '../format';
import { AxisX, Boxes, Picture } from './picture';
import { linear } from './scale';

interface Placed {
    start: number;
    end: number;
    name: string;
    shares: number[]; // by bound
}
interface Lane {
    name: string;
    events: Placed[];
}
interface Span {
    start: number;
    end: number;
    name: string;
    look: string;
}
export interface Streams {
    end: number;
    passes: Span[];
    layers: Span[];
    lanes: Lane[];
}

const looks: { [what: string]: string } = {
    forward: 'forward',
    prefill: 'forward',
    decode: 'forward',
    backward: 'backward',
    inputs: 'backward',
    weights: 'again',
    optimizer: 'update',
    'micro-batches': 'overhead',
    gradients: 'communication',
    parameters: 'communication',
};
const order = ['gpu', 'tensor', 'context', 'experts', 'expert', 'data', 'pipeline', 'host'];
const names: { [lane: string]: string } = { gpu: 'kernels', expert: 'experts' };
const mostEvents = 60000;

/** What a block's kernels are held by, for iterations that the walk folds into one. */
function mixes(events: readonly Event[]): Map<string, number[]> {
    const out = new Map<string, number[]>();
    for (const [lane, block, , start, end, bound] of events) {
        if (lane !== 'gpu' || !bound) continue;
        const mix = out.get(block) ?? [0, 0, 0, 0];
        mix[bounds.indexOf(bound)]! += end - start;
        out.set(block, mix);
    }
    return out;
}

export function streams(course: Course): Streams {
    const lanes = new Map<string, Placed[]>();
    const layers: Span[] = [];
    let made = 0;
    for (const pass of course.passes) {
        const walk = pass.walk ? course.walks[pass.walk] : undefined;
        if (!walk || made > mostEvents) continue;
        const mix = mixes(walk.events);
        const a = (pass.from ?? 0) * walk.ms,
            b = (pass.to ?? 1) * walk.ms;
        const scale = b > a ? (pass.end_ms - pass.start_ms) / (b - a) : 1;
        for (const [lane, block, kernel, from, to, bound, folded] of walk.events) {
            const mark = lane === 'host' ? Math.min(Math.max(to, 0), walk.ms) : from;
            if ((pass.from && mark < a - 1e-9) || ((pass.to ?? 1) < 1 && mark >= b - 1e-12)) continue;
            const start = Math.max(pass.start_ms + (from - a) * scale, 0);
            const end =
                lane === 'gpu'
                    ? Math.min(pass.start_ms + (to - a) * scale, pass.end_ms)
                    : pass.start_ms + (to - a) * scale;
            const shares = bound ? bounds.map((x) => (x === bound ? 1 : 0)) : (mix.get(block) ?? [0, 1, 0, 0]);
            const name = folded
                ? `${block}: ${folded} more like this`
                : lane === 'host'
                  ? `the host launches ${block}`
                  : `${block} ${kernel}`;
            let list = lanes.get(lane);
            if (!list) lanes.set(lane, (list = []));
            list.push({ start, end, name, shares });
            made++;
            if (lane !== 'gpu') continue;
            const last = layers[layers.length - 1];
            if (
                last &&
                last.name === block &&
                last.end <= start + 1e-6 + 0.02 * walk.ms &&
                last.start >= pass.start_ms - 1e-9
            )
                last.end = end;
            else layers.push({ start, end, name: block, look: 'track' });
        }
    }
    return {
        end: course.end_ms,
        passes: course.passes.map((p) => ({
            start: p.start_ms,
            end: p.end_ms,
            look: looks[p.what] ?? 'overhead',
            name:
                p.what === 'micro-batches'
                    ? `${p.count} micro-batches`
                    : p.micro !== undefined
                      ? `${p.what} ${p.micro + 1}`
                      : p.what,
        })),
        layers,
        lanes: [...lanes]
            .sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]))
            .map(([name, events]) => ({ name: names[name] ?? name, events: events.sort((a, b) => a.start - b.start) })),
    };
}

/** Boxes of a lane by colour, short neighbours together. */
function boxes(
    events: readonly Placed[],
    at: (t: number) => number,
    low: number,
    high: number,
    y: number,
    height: number,
): Boxes[] {
    const out = bounds.map(() => new Boxes());
    const pending = [0, 0, 0, 0];
    let from = 0,
        to = -1;
    const flush = (): void => {
        const sum = pending.reduce((s, v) => s + v, 0);
        let top = y;
        pending.forEach((v, i) => {
            const part = sum > 0 ? (v / sum) * height : 0;
            if (part > 0.3) out[i]!.add(from, top, Math.max(to - from, 0.5), part);
            top += part;
            pending[i] = 0;
        });
        to = -1;
    };
    for (const e of events) {
        if (e.end < low || e.start > high) continue;
        const a = at(Math.max(e.start, low)),
            b = at(Math.min(e.end, high));
        if (to >= 0 && (a - to > 0.5 || to - from >= 1.5)) flush();
        if (to < 0) from = a;
        to = Math.max(to, b);
        const sum = e.shares.reduce((s, v) => s + v, 0) || 1;
        e.shares.forEach((v, i) => {
            pending[i]! += (v / sum) * Math.max(e.end - e.start, 1e-12);
        });
        if (b - a >= 1.5 || to - from >= 1.5) flush();
    }
    if (to >= 0) flush();
    return out;
}

const textWidth = (text: string): number => 6.4 * text.length;

export function Timeline(p: { course: Course }): JSX.Element {
    const of = useMemo(() => streams(p.course), [p.course]);
    const [range, setRange] = useState<[number, number] | null>(null);
    const [pull, setPull] = useState<[number, number] | null>(null);
    const pulled = useRef<[number, number] | null>(null);
    const [low, high] = range && range[0] < of.end ? [range[0], Math.min(range[1], of.end)] : [0, of.end];
    const left = (w: number): number => (w < 560 ? 58 : 70);
    const rows = 2 + of.lanes.length;
    const tops: number[] = [];
    let y = 4;
    for (let i = 0; i < rows; i++) {
        tops.push(y);
        y += (i === 2 ? 54 : 20) + 6;
    }
    const height = y + 34;
    const scaleOf = (w: number) => linear(low, high, left(w), w - 4);
    const zoom = (factor: number, middle = (low + high) / 2): void => {
        const half = Math.max(((high - low) / 2) * factor, of.end * 1e-5);
        const a = Math.max(0, Math.min(middle - half, of.end - 2 * half));
        setRange(half * 2 >= of.end ? null : [a, a + 2 * half]);
    };
    const keys = (e: KeyboardEvent): boolean => {
        const step = (high - low) * 0.2;
        if (e.key === '+' || e.key === '=') zoom(0.5);
        else if (e.key === '-') zoom(2);
        else if (e.key === 'ArrowLeft') setRange([Math.max(low - step, 0), Math.max(low - step, 0) + high - low]);
        else if (e.key === 'ArrowRight')
            setRange([Math.min(low + step, of.end - (high - low)), Math.min(high + step, of.end)]);
        else if (e.key === 'Escape' || e.key === '0') setRange(null);
        else return false;
        return true;
    };
    const drag = {
        start: (x: number, w: number) => {
            const t = scaleOf(w).back(x);
            setPull((pulled.current = [t, t]));
        },
        move: (x: number, w: number) => {
            if (pulled.current) setPull((pulled.current = [pulled.current[0], scaleOf(w).back(x)]));
        },
        end: () => {
            const [a, b] = pulled.current ?? [0, 0];
            pulled.current = null;
            setPull(null);
            if (Math.abs(a - b) > (high - low) * 0.01)
                setRange([Math.max(0, Math.min(a, b)), Math.min(of.end, Math.max(a, b))]);
        },
    };
    const hint = (x: number, py: number, w: number) => {
        const t = scaleOf(w).back(x);
        const row = tops.findIndex((top, i) => py >= top && py < top + (i === 2 ? 54 : 20));
        if (t < low || t > high) return null;
        const mark = <line class="cursor" x1={x} x2={x} y1={0} y2={height - 34} />;
        const list = row === 0 ? of.passes : row === 1 ? of.layers : row >= 2 ? of.lanes[row - 2]?.events : undefined;
        const found = list
            ?.filter((e) => e.start <= t && t < e.end)
            .sort((a, b) => a.end - a.start - (b.end - b.start))[0];
        return {
            text: found
                ? `${found.name}\n${ms(found.end - found.start, 4)}, from ${ms(found.start, 4)}`
                : `at ${ms(t, 4)}`,
            mark,
        };
    };
    const longest = of.passes.length ? `${of.passes.length} passes` : 'no passes';
    return (
        <div onDblClick={() => setRange(null)}>
            <Picture
                label={`Timeline of the step: ${longest} over ${ms(of.end, 4)}, ${of.lanes.map((l) => l.name).join(', ')}. Plus, minus and arrow keys zoom and move.`}
                height={height}
                hint={hint}
                keys={keys}
                drag={drag}
                draw={(w) => {
                    const x = scaleOf(w);
                    const spans = (list: readonly Span[], row: number, onbar: boolean) =>
                        list
                            .filter((s) => s.end > low && s.start < high)
                            .map((s, i) => {
                                const a = x.at(Math.max(s.start, low)),
                                    b = x.at(Math.min(s.end, high));
                                if (b - a < 0.4) return null;
                                const number = s.name.split(' ').pop() ?? '';
                                const text =
                                    textWidth(s.name) < b - a - 6
                                        ? s.name
                                        : /^\d+$/.test(number) && textWidth(number) < b - a - 4
                                          ? number
                                          : '';
                                return (
                                    <g key={i}>
                                        <rect
                                            class={s.look}
                                            x={a}
                                            y={tops[row]}
                                            width={Math.max(b - a - (b - a > 3 ? 0.75 : 0), 0.4)}
                                            height={20}
                                        />
                                        {text && (
                                            <text
                                                class={onbar ? 'onbar' : 'dim'}
                                                x={(a + b) / 2}
                                                y={tops[row]! + 14}
                                                text-anchor="middle"
                                            >
                                                {text}
                                            </text>
                                        )}
                                    </g>
                                );
                            });
                    return (
                        <>
                            <AxisX scale={x} y={height - 34} top={0} name="ms" />
                            {['passes', 'layers', ...of.lanes.map((l) => l.name)].map((name, i) => (
                                <text key={name} class="dim" x={0} y={tops[i]! + (i === 2 ? 31 : 14)}>
                                    {name}
                                </text>
                            ))}
                            {spans(of.passes, 0, true)}
                            {spans(of.layers, 1, false)}
                            {of.lanes.map((lane, i) => {
                                const high2 = i === 0 ? 54 : 20,
                                    top = tops[i + 2]!;
                                return (
                                    <g key={lane.name}>
                                        <rect class="track" x={x.from} y={top} width={x.to - x.from} height={high2} />
                                        {boxes(lane.events, x.at, low, high, top, high2).map((b, k) =>
                                            b.empty ? null : <path key={k} class={bounds[k] as Bound} d={b.path} />,
                                        )}
                                    </g>
                                );
                            })}
                            {pull && (
                                <rect
                                    data-live
                                    class="select"
                                    x={x.at(Math.min(...pull))}
                                    width={Math.abs(x.at(pull[1]) - x.at(pull[0]))}
                                    y={0}
                                    height={height - 34}
                                />
                            )}
                        </>
                    );
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
