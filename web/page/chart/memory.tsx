// Live bytes while the step runs, stacked by what they are, under what the GPU has.
import type { JSX } from 'preact';
import type { Course, Memory } from '../answers';
import { gib, ms } from '../format';
import { Keys } from '../parts';
import { AxisX, AxisY, Picture } from './picture';
import { linear } from './scale';

const GiB = 2 ** 30;
const names: { [kind: string]: string } = { kv_cache: 'KV cache' };

export function MemoryCurve(p: { course: NonNullable<Course['memory']>; memory: Memory; end: number }): JSX.Element {
    const { moments, kinds, slanted } = p.course;
    const end = Math.max(p.course.end_ms, 1e-9);
    const sums = moments.map((m) => m.slice(1).reduce((s, v) => s + v, 0));
    const most = Math.max(...sums, 1) / GiB,
        capacity = p.memory.capacity_bytes / GiB;
    const near = capacity > 0 && capacity < 3 * most;
    const used = kinds.map((_, k) => moments.some((m) => m[k + 1]! > 0));
    const top = 30,
        bottom = 236;
    const peak = sums.indexOf(Math.max(...sums));
    const scales = (w: number) => ({
        x: linear(0, end, 44, w - 6),
        y: linear(0, Math.max(most, near ? capacity : 0) * 1.14, bottom, top),
    });
    const area = (k: number, w: number): string => {
        const { x, y } = scales(w);
        const upper: string[] = [],
            lower: string[] = [];
        moments.forEach((m, i) => {
            const base = m.slice(1, k + 1).reduce((s, v) => s + v, 0) / GiB,
                over = base + m[k + 1]! / GiB;
            const next = slanted ? m[0]! : (moments[i + 1]?.[0] ?? end);
            const a = x.at(m[0]!).toFixed(1),
                b = x.at(next).toFixed(1),
                high = y.at(over).toFixed(1),
                low = y.at(base).toFixed(1);
            upper.push(`${a} ${high}`);
            lower.push(`${a} ${low}`);
            if (!slanted) {
                upper.push(`${b} ${high}`);
                lower.push(`${b} ${low}`);
            }
        });
        return `M${upper.join('L')}L${lower.reverse().join('L')}Z`;
    };
    return (
        <>
            <Keys of={kinds.map((k, i) => [`f${i}`, names[k] ?? k] as const).filter((_, i) => used[i])} />
            <Picture
                height={bottom + 34}
                label={`Memory over the step: at most ${gib(p.memory.peak_bytes, 4)}, the GPU has ${gib(p.memory.capacity_bytes, 4)}`}
                hint={(px, _py, w) => {
                    const { x } = scales(w),
                        t = x.back(px);
                    if (t < 0 || t > end) return null;
                    let i = moments.findIndex((m) => m[0]! > t) - 1;
                    if (i < 0) i = moments.length - 1;
                    const m = moments[i]!;
                    const rows = kinds
                        .map((k, j) => [names[k] ?? k, m[j + 1]!] as const)
                        .filter(([, b]) => b > 0)
                        .reverse();
                    return {
                        text: `at ${ms(t, 4)}: ${gib(sums[i]!, 4)}\n${rows.map(([k, b]) => `${k} ${gib(b)}`).join('\n')}`,
                        mark: <line class="cursor" x1={px} x2={px} y1={top} y2={bottom} />,
                    };
                }}
                draw={(w) => {
                    const { x, y } = scales(w);
                    const px = x.at(moments[peak]?.[0] ?? 0),
                        py = y.at(most);
                    const words = `peak ${gib(p.memory.peak_bytes, 4)}`,
                        half = words.length * 3.4;
                    const limit = y.at(capacity);
                    const under = near && Math.abs(py - 8 - (limit - 6)) < 17; // the two labels would meet
                    return (
                        <>
                            <AxisY scale={y} x={x.from} right={x.to} name="GiB" />
                            {kinds.map((k, i) => used[i] && <path key={k} class={`f${i} edge`} d={area(i, w)} />)}
                            <AxisX scale={x} y={bottom} name="ms" />
                            {near && <line class="under" x1={x.from} x2={x.to} y1={limit} y2={limit} />}
                            {near && <line class="limit" x1={x.from} x2={x.to} y1={limit} y2={limit} />}
                            {near && (
                                <text
                                    class="halo"
                                    x={x.from + 6}
                                    y={under && limit < py ? limit - 6 : limit + (under ? 16 : -6)}
                                >
                                    the GPU has {gib(p.memory.capacity_bytes)}
                                </text>
                            )}
                            <circle class="mark" cx={px} cy={py} r={3.5} />
                            <text
                                class="halo strong"
                                x={Math.min(Math.max(px, x.from + half), x.to - half)}
                                y={under && limit < py ? py + 18 : py - 8}
                                text-anchor="middle"
                            >
                                {words}
                            </text>
                        </>
                    );
                }}
            />
        </>
    );
}
