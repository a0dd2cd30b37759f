// A pipeline: who runs which micro-batch when. What is left empty is the bubble.
import type { JSX } from 'preact';
import type { Course } from '../answers';
import { ms, plural } from '../format';
import { Keys } from '../parts';
import { AxisX, Boxes, Picture } from './picture';
import { linear } from './scale';

const looks = { forward: 'forward', backward: 'backward', inputs: 'backward', weights: 'again' } as const;
const words: { [kind: string]: string } = {
    forward: 'forward',
    backward: 'backward',
    inputs: 'backward of inputs',
    weights: 'gradients of weights',
};

export function Pipeline(p: { of: NonNullable<Course['pipeline']>; end: number }): JSX.Element {
    const { stages, skipped } = p.of;
    const row = stages.length > 8 ? 19 : 24,
        bottom = stages.length * row + 4;
    const split = stages.some((s) => s.pieces.some((q) => q[0] === 'weights'));
    const scale = (w: number) => linear(0, p.end, w < 560 ? 30 : 62, w - 4);
    return (
        <>
            <Keys
                of={[
                    ['forward', 'forward'],
                    ['backward', 'backward'],
                    ...(split ? [['again', 'gradients of weights'] as const] : []),
                ]}
            />
            <Picture
                height={bottom + 34}
                label={`Pipeline of ${plural(stages.length, 'stage')} over ${ms(p.end)}; empty places are the bubble. The table of stages has their times.`}
                hint={(px, py, w) => {
                    const x = scale(w),
                        t = x.back(px),
                        stage = stages[Math.floor(py / row)];
                    const found = stage?.pieces.find((q) => q[3] <= t && t < q[4]);
                    if (!stage || t < 0 || t > p.end) return null;
                    return {
                        text: found
                            ? `stage ${stage.stage + 1}, ${words[found[0]]} of micro-batch ${found[1] + 1}${found[2] ? `, chunk ${found[2] + 1}` : ''}\n${ms(found[3])} to ${ms(found[4])}`
                            : `stage ${stage.stage + 1} waits, ${ms(t)}`,
                        mark: <line class="cursor" x1={px} x2={px} y1={0} y2={bottom} />,
                    };
                }}
                draw={(w) => {
                    const x = scale(w);
                    return (
                        <>
                            <AxisX scale={x} y={bottom} top={0} name="ms" />
                            {stages.map((s, i) => {
                                const y = i * row,
                                    high = row - 4;
                                const paths = {
                                    forward: new Boxes(),
                                    backward: new Boxes(),
                                    inputs: new Boxes(),
                                    weights: new Boxes(),
                                };
                                const numbers: JSX.Element[] = [];
                                s.pieces.forEach(([kind, micro, , start, end], k) => {
                                    const a = x.at(start),
                                        b = x.at(end);
                                    paths[kind as keyof typeof paths].add(
                                        a,
                                        y,
                                        Math.max(b - a - (b - a > 4 ? 0.75 : 0), 0.3),
                                        high,
                                    );
                                    const text = String(micro + 1);
                                    if (b - a > 7 * text.length + 3)
                                        numbers.push(
                                            <text
                                                key={k}
                                                class="onbar"
                                                x={(a + b) / 2}
                                                y={y + high / 2 + 4}
                                                text-anchor="middle"
                                            >
                                                {text}
                                            </text>,
                                        );
                                });
                                const before = s.gap !== undefined && skipped ? s.pieces[s.gap - 1] : undefined,
                                    after = s.gap !== undefined ? s.pieces[s.gap] : undefined;
                                return (
                                    <g key={s.stage}>
                                        <text class="dim" x={0} y={y + high / 2 + 4}>
                                            {w < 560 ? s.stage + 1 : `stage ${s.stage + 1}`}
                                        </text>
                                        <rect class="track" x={x.from} y={y} width={x.to - x.from} height={high} />
                                        {(Object.keys(paths) as (keyof typeof paths)[]).map(
                                            (k) =>
                                                !paths[k].empty && <path key={k} class={looks[k]} d={paths[k].path} />,
                                        )}
                                        {before && after && (
                                            <rect
                                                class="overhead"
                                                x={x.at(before[4])}
                                                y={y}
                                                width={Math.max(x.at(after[3]) - x.at(before[4]), 1)}
                                                height={high}
                                            />
                                        )}
                                        {before && after && i === 0 && (
                                            <text
                                                class="onbar"
                                                x={(x.at(before[4]) + x.at(after[3])) / 2}
                                                y={y + high / 2 + 4}
                                                text-anchor="middle"
                                            >
                                                {skipped} more
                                            </text>
                                        )}
                                        {numbers}
                                    </g>
                                );
                            })}
                        </>
                    );
                }}
            />
        </>
    );
}
