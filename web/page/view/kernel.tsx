// One kernel: the staircase of tiles and waves while a size grows.
import type { JSX } from 'preact';
import type { Bound } from '../answers';
import { useAnswer } from '../ask';
import type { Catalogue } from '../catalogue';
import { gpuOf, gpuTitle } from '../catalogue';
import { Curves, type Curve } from '../chart/curves';
import { Roofline } from '../chart/roofline';
import { Choice, Group, Slider, doubling, type Words } from '../form/fields';
import { GpuField } from '../form/subject';
import { bytes, figure, flops, interval, ms, percent, time, whole } from '../format';
import { Card, Figure, Warnings, Wrong } from '../parts';
import { read } from '../request';
import { Same } from '../same';
import { change } from '../state';
import { grownOf, kernelRequest, opOf, ops, passed, valueOf, word, type Size } from './kernel_sizes';

export interface KernelAnswer {
    ok: true;
    id?: string;
    ms: number;
    low_ms: number;
    high_ms: number;
    bound: Bound;
    source: string;
    kin?: string;
    family?: string;
    tile?: string;
    tiles?: number;
    waves?: number;
    split_k?: number;
    flops?: number;
    bytes?: number;
    intensity?: number;
    roofline_ms?: number;
    launch_ms?: number;
    sustained_ms?: number;
    achieved_tflops?: number;
    achieved_gbps?: number;
    note?: string;
    warnings?: string[];
}

export function KernelForm(p: { is: Words; of: Catalogue }): JSX.Element {
    const { is } = p,
        op = opOf(is);
    return (
        <>
            <Group name="What runs where">
                <Choice
                    name="Operator"
                    of="op"
                    is={is}
                    words={[['', 'gemm'], ...Object.keys(ops).filter((o) => o !== 'gemm')]}
                />
                <GpuField is={is} of={p.of} />
                <Choice
                    name="Precision"
                    of="dtype"
                    is={is}
                    words={[['', 'bf16'], 'fp16', 'fp32', 'tf32', 'fp8', 'int8', 'fp4']}
                />
                {passed.has(op) && (
                    <Choice
                        name="Pass"
                        of="xpass"
                        is={is}
                        words={[
                            ['', 'forward'],
                            ['bwd', 'backward'],
                            ['fwd_bwd', 'both'],
                        ]}
                    />
                )}
            </Group>
            <Group name="Sizes">
                {ops[op].map((s) => (
                    <Slider key={s.key} name={s.name} of={word(s.key)} is={is} by={s.by} stops={doubling(1, s.most)} />
                ))}
                {op === 'attention' && (
                    <Choice
                        name="Mask"
                        of="xcausal"
                        is={is}
                        words={[
                            ['', 'causal'],
                            ['false', 'none'],
                        ]}
                    />
                )}
            </Group>
            <Group name="Staircase">
                <Choice
                    name="Grows"
                    of="grow"
                    is={is}
                    words={ops[op].map((s, i) => [i === (op === 'gemm' ? 1 : 0) ? '' : s.key, s.name] as const)}
                    hint="the size that grows from left to right"
                />
            </Group>
        </>
    );
}

const points = 160;

export function KernelView(p: { is: Words; of: Catalogue }): JSX.Element {
    const base = kernelRequest(p.is),
        op = opOf(p.is);
    const asked = useAnswer<KernelAnswer>(base);
    const grown = grownOf(p.is);
    const now = valueOf(p.is, grown),
        usual = Math.min(2 * grown.by, grown.most); // stays while the slider moves
    const to = now <= usual ? usual : 2 ** Math.ceil(Math.log2(now));
    const step = Math.max(1, 2 ** Math.round(Math.log2(to / points)));
    const first = step;
    const sweep = useAnswer<{ ok: true; answers: KernelAnswer[] }>({
        ...base,
        task: 'sweep',
        of: 'kernel',
        sweep: `${grown.key}=${first}:${to}:${step}`,
    });
    const a = asked.answer,
        gpu = gpuOf(p.of.gpus, read(p.is, 'gpu'));
    const stairs = (sweep.answer?.answers ?? []).filter((s) => s.ok).map((s, i) => ({ x: first + i * step, s }));
    const curve = (name: string, f: (s: KernelAnswer) => number, band = false): Curve => ({
        name,
        points: stairs.map(({ x, s }) => ({
            x,
            y: f(s),
            ...(band ? { low: s.low_ms * 1e3, high: s.high_ms * 1e3 } : {}),
            note: [
                s.tile && `tile ${s.tile}`,
                s.tiles && `${whole(s.tiles)} tiles`,
                s.waves && `${figure(s.waves)} waves`,
            ]
                .filter(Boolean)
                .join(', '),
        })),
    });
    const table = () => ({
        head: [
            grown.key,
            'ms',
            'low_ms',
            'high_ms',
            'tile',
            'tiles',
            'waves',
            'achieved_tflops',
            'achieved_gbps',
            'bound',
        ],
        rows: stairs.map(({ x, s }) => [
            x,
            s.ms,
            s.low_ms,
            s.high_ms,
            s.tile,
            s.tiles,
            s.waves,
            s.achieved_tflops,
            s.achieved_gbps,
            s.bound,
        ]),
    });
    const waves = stairs.some(({ s }) => s.waves);
    const t = a ? time(a.ms, 4) : null;
    return (
        <>
            <div class="title">
                <h1>
                    {op} {ops[op].map((s) => `${s.key} ${whole(valueOf(p.is, s))}`).join(', ')} on{' '}
                    {gpuTitle(p.of.gpus, read(p.is, 'gpu'))}
                </h1>
                <span class="quiet">
                    {p.is['dtype'] ?? 'bf16'}
                    {a?.family ? `, ${a.family}` : ''}
                </span>
            </div>
            <Wrong error={asked.error} />
            {a && t && (
                <div class={asked.error ? 'stale' : ''}>
                    <Warnings lines={[...(a.note ? [a.note] : []), ...(a.warnings ?? [])]} />
                    <dl class="figures">
                        <Figure
                            name="time"
                            value={t.value}
                            unit={t.unit}
                            remark={`${interval(a.low_ms, a.high_ms, a.ms)} in 9 of 10 cases`}
                        />
                        <Figure
                            name="arithmetic"
                            value={figure(a.achieved_tflops ?? 0)}
                            unit="TFLOP/s"
                            remark={`${flops(a.flops ?? 0)}${gpu ? `, ${percent((a.achieved_tflops ?? 0) / (gpu.peak_tflops[p.is['dtype'] ?? 'bf16'] ?? Infinity))} of the peak` : ''}`}
                        />
                        <Figure
                            name="memory"
                            value={figure(a.achieved_gbps ?? 0)}
                            unit="GB/s"
                            remark={`${bytes(a.bytes ?? 0)}${gpu ? `, ${percent((a.achieved_gbps ?? 0) / gpu.memory_gbps)} of the peak` : ''}`}
                        />
                        <Figure
                            name="bound by"
                            value={a.bound}
                            remark={a.roofline_ms ? `the roofline alone says ${ms(a.roofline_ms)}` : ''}
                        />
                        {a.tile && (
                            <Figure
                                name="tiles"
                                value={a.tile.replaceAll('x', ' × ')}
                                remark={`${whole(a.tiles ?? 0)} of them${a.split_k && a.split_k > 1 ? `, k in ${a.split_k} parts` : ''}`}
                            />
                        )}
                        {a.waves !== undefined && (
                            <Figure name="waves" value={figure(a.waves)} remark={lastWave(a.waves)} />
                        )}
                        <Figure
                            name="forecast from"
                            value={a.source}
                            remark={a.kin ? `closest measured: ${a.kin}` : ''}
                        />
                        {a.sustained_ms !== undefined && (
                            <Figure
                                name="in a stream of them"
                                value={ms(a.sustained_ms)}
                                remark="the power limit lowers the clock"
                            />
                        )}
                    </dl>
                    <div class="grid">
                        <Card
                            name="staircase"
                            title={`Time while ${grown.name} grows`}
                            wide="double"
                            note="every step is one more wave of tiles; band: interval"
                            table={table}
                        >
                            <Grower size={grown} now={now} most={to} />
                            <Curves
                                name="staircase"
                                label={`Time over ${grown.key}`}
                                x={grown.key}
                                y="µs"
                                height={280}
                                curves={[{ ...curve('time', (s) => s.ms * 1e3, true), steps: waves }]}
                                at={now}
                            />
                        </Card>
                        <div class="stack">
                        <Card name="rate" title="What it achieves" note={`while ${grown.key} grows`} table={table}>
                            {(a.flops ?? 0) > 0 && a.bound !== 'memory' ? (
                                <Curves
                                    name="rate"
                                    label={`TFLOP/s over ${grown.key}`}
                                    x={grown.key}
                                    y="TFLOP/s"
                                    curves={[{ ...curve('arithmetic', (s) => s.achieved_tflops ?? 0) }]}
                                    at={now}
                                />
                            ) : (
                                <Curves
                                    name="rate"
                                    label={`GB/s over ${grown.key}`}
                                    x={grown.key}
                                    y="GB/s"
                                    curves={[{ ...curve('memory', (s) => s.achieved_gbps ?? 0) }]}
                                    at={now}
                                />
                            )}
                        </Card>
                        {waves && (
                            <Card name="waves" title="Waves" note="the last one is rarely full" table={table}>
                                <Curves
                                    name="waves"
                                    label={`Waves over ${grown.key}`}
                                    x={grown.key}
                                    y="waves"
                                    curves={[
                                        curve('as they are', (s) => s.waves ?? 0),
                                        {
                                            ...curve('as they cost', (s) => Math.ceil((s.waves ?? 0) - 1e-6)),
                                            steps: true,
                                            thin: true,
                                        },
                                    ]}
                                    at={now}
                                />
                            </Card>
                        )}
                        </div>
                        {gpu && a.flops !== undefined && a.flops > 0 && (
                            <Card
                                name="roofline"
                                title="Roofline"
                                note={`${figure(a.intensity ?? 0)} FLOP/B`}
                                table={table}
                            >
                                <Roofline of={asked.request!} />
                            </Card>
                        )}
                    </div>
                </div>
            )}
            <Same request={asked.request} more={[['The staircase', sweep.request]]} />
        </>
    );
}

const lastWave = (waves: number): string => {
    const part = waves - Math.floor(waves);
    return part < 1e-6
        ? 'the last is full'
        : `the last is full to ${percent(part)}; ${percent(1 - waves / Math.ceil(waves))} of the places idle`;
};

function Grower(p: { size: Size; now: number; most: number }): JSX.Element {
    const step = Math.max(1, 2 ** Math.round(Math.log2(p.most / 512)));
    return (
        <div class="grower">
            <input
                type="range"
                aria-label={`${p.size.name}, ${p.size.key}`}
                min={step}
                max={p.most}
                step={step}
                value={p.now}
                onInput={(e) => change({ [word(p.size.key)]: e.currentTarget.value })}
            />
        </div>
    );
}
