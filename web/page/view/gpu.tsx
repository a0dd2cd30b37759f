// The catalogue as sheets, and a spec of your own: every figure can be changed, and a step on it follows.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Gpu, Step } from '../answers';
import { useAnswer } from '../ask';
import type { Catalogue } from '../catalogue';
import { modelName } from '../catalogue';
import { Curves } from '../chart/curves';
import { Group, Slider, doubling, type Words } from '../form/fields';
import { GpuField, ModelField } from '../form/subject';
import { figure, gib, interval, ms, percent, whole } from '../format';
import { Card, Copy, Delta, Figure, Sortable, tableOf, Wrong, type Column } from '../parts';
import { read, value } from '../request';
import { Same } from '../same';
import { change } from '../state';
import { stepRequest } from './step';

const editable: readonly (readonly [string, string, string])[] = [
    ['sms', 'SMs', ''],
    ['clock_mhz', 'Clock', 'MHz'],
    ['memory_gib', 'Memory', 'GiB'],
    ['memory_gbps', 'Bandwidth', 'GB/s'],
    ['l2_mib', 'L2 cache', 'MiB'],
    ['tdp_w', 'Power', 'W'],
];
type Spec = { base?: string; name?: string; peak_tflops?: { [dtype: string]: number }; [key: string]: unknown };

const specOf = (is: Words): Spec => {
    const text = read(is, 'gpu');
    const spec = value('gpu', text);
    return spec && typeof spec === 'object' ? (spec as Spec) : { base: text };
};

function set(is: Words, key: string, text: string): void {
    const { peak_tflops, ...rest } = specOf(is);
    const spec: Spec = { ...rest, name: 'your_gpu' };
    const peaks = { ...peak_tflops };
    const number = Number(text);
    if (key.startsWith('peak.')) {
        if (text.trim() && number > 0) peaks[key.slice(5)] = number;
        else delete peaks[key.slice(5)];
    } else if (text.trim() && number > 0) spec[key] = number;
    else delete spec[key];
    if (Object.keys(peaks).length) spec['peak_tflops'] = peaks;
    const own = Object.keys(spec).filter((k) => k !== 'base' && k !== 'name');
    change({ gpu: own.length ? JSON.stringify(spec) : String(spec.base) });
}

export function GpuForm(p: { is: Words; of: Catalogue }): JSX.Element {
    const spec = specOf(p.is),
        base = p.of.gpus.find((g) => g.name === spec.base);
    const peaks = base ? Object.keys(base.peak_tflops).filter((d) => ['fp32', 'bf16', 'fp8', 'fp4'].includes(d)) : [];
    const field = (key: string, name: string, unit: string, was: unknown, now: unknown): JSX.Element => (
        <div class={`field ${now !== undefined ? 'set' : ''}`} key={key}>
            <label for={`g-${key}`}>
                {name}
                {unit ? `, ${unit}` : ''}
            </label>
            <input
                id={`g-${key}`}
                type="text"
                inputMode="decimal"
                placeholder={was === undefined ? '' : String(was)}
                value={now === undefined ? '' : String(now)}
                onInput={(e) => set(p.is, key, e.currentTarget.value)}
            />
        </div>
    );
    return (
        <>
            <Group name="GPU">
                <GpuField is={{ gpu: spec.base ?? '' }} of={p.of} name="Begin with" />
                {editable.map(([key, name, unit]) => field(key, name, unit, base?.[key], spec[key]))}
                {peaks.map((d) => field(`peak.${d}`, d, 'TFLOP/s', base!.peak_tflops[d], spec.peak_tflops?.[d]))}
            </Group>
            <Group name="What is run on it">
                <ModelField is={p.is} of={p.of} />
                <Slider name="Batch" of="batch" is={p.is} by={1} stops={doubling(1, 1024)} />
                <Slider name="Sequence" of="seq" is={p.is} by={4096} stops={doubling(64, 131072)} unit="tokens" />
            </Group>
        </>
    );
}

const gpuColumns: readonly Column<Gpu>[] = [
    {
        name: 'GPU',
        key: 'name',
        cell: (g) => (
            <button class="plain" onClick={() => change({ gpu: g.name })}>
                {g.title}
            </button>
        ),
        by: (g) => g.name,
    },
    { name: 'Year', key: 'year', cell: (g) => g.year, by: (g) => g.year, number: true },
    { name: 'Generation', key: 'generation', cell: (g) => g.generation, by: (g) => g.generation },
    { name: 'SMs', key: 'sms', cell: (g) => g.sms, by: (g) => g.sms, number: true },
    {
        name: 'bf16, TFLOP/s',
        key: 'bf16_tflops',
        cell: (g) => dash(g.peak_tflops['bf16'] ?? g.peak_tflops['fp16']),
        by: (g) => g.peak_tflops['bf16'] ?? g.peak_tflops['fp16'] ?? 0,
        number: true,
    },
    {
        name: 'fp8',
        key: 'fp8_tflops',
        cell: (g) => dash(g.peak_tflops['fp8']),
        by: (g) => g.peak_tflops['fp8'] ?? 0,
        number: true,
    },
    {
        name: 'fp4',
        key: 'fp4_tflops',
        cell: (g) => dash(g.peak_tflops['fp4']),
        by: (g) => g.peak_tflops['fp4'] ?? 0,
        number: true,
    },
    {
        name: 'fp32',
        key: 'fp32_tflops',
        cell: (g) => dash(g.peak_tflops['fp32']),
        by: (g) => g.peak_tflops['fp32'] ?? 0,
        number: true,
    },
    {
        name: 'Memory, GiB',
        key: 'memory_gib',
        cell: (g) => figure(g.memory_gib),
        by: (g) => g.memory_gib,
        number: true,
    },
    { name: 'GB/s', key: 'memory_gbps', cell: (g) => figure(g.memory_gbps), by: (g) => g.memory_gbps, number: true },
    {
        name: 'FLOP/B',
        key: 'balance',
        cell: (g) => dash(g.balance_flop_per_byte['bf16']),
        by: (g) => g.balance_flop_per_byte['bf16'] ?? 0,
        number: true,
    },
    {
        name: 'Link, GB/s',
        key: 'link_gbps',
        cell: (g) => figure(g.link.gbps_per_direction),
        by: (g) => g.link.gbps_per_direction,
        number: true,
    },
    { name: 'Power, W', key: 'tdp_w', cell: (g) => figure(g.tdp_w), by: (g) => g.tdp_w, number: true },
];
const dash = (v: number | undefined): string => (v ? figure(v, v >= 1000 ? 4 : 3) : '–');

export function GpuView(p: { is: Words; of: Catalogue }): JSX.Element {
    const spec = specOf(p.is),
        own = Object.keys(spec).some((k) => k !== 'base');
    const sheet = useAnswer<{ ok: true; gpus: Gpu[] }>({ task: 'gpus', name: own ? spec : (spec.base ?? '') });
    const { gpu: _, ...others } = stepRequest(p.is, 'train');
    const here = useAnswer<Step>({ ...others, gpu: own ? spec : spec.base });
    const base = useAnswer<Step>(own ? { ...others, gpu: spec.base } : null);
    const g = sheet.answer?.gpus[0],
        a = here.answer,
        b = own ? base.answer : null;
    const [typed, setTyped] = useState('');
    const rows = useMemo(
        () =>
            p.of.gpus.filter((x) =>
                `${x.name} ${x.title} ${x.vendor} ${x.generation}`.toLowerCase().includes(typed.toLowerCase()),
            ),
        [p.of, typed],
    );
    return (
        <>
            <div class="title">
                <h1>{own ? 'Your GPU' : (g?.title ?? read(p.is, 'gpu'))}</h1>
                <span class="quiet">
                    {own
                        ? `on the base of ${p.of.gpus.find((x) => x.name === spec.base)?.title ?? spec.base ?? ''}`
                        : g
                          ? `${g.vendor}, ${g.generation}, ${g.year}`
                          : ''}
                </span>
                <span class="tools">
                    <Copy text={() => JSON.stringify(own ? spec : g, null, 1)} plain={false}>
                        Copy as a spec file
                    </Copy>
                </span>
            </div>
            <Wrong error={sheet.error ?? here.error} />
            {a && (
                <dl class="figures">
                    <Figure
                        name={`step of ${modelName(read(p.is, 'model'))}`}
                        value={ms(a.step_ms, 4)}
                        remark={interval(a.low_ms, a.high_ms, a.step_ms)}
                        delta={<Delta now={a.step_ms} before={b?.step_ms} />}
                    />
                    <Figure
                        name="throughput"
                        value={figure(a.tokens_per_s_per_gpu || a.samples_per_s_per_gpu)}
                        unit={a.tokens_per_s_per_gpu ? 'tokens/s' : 'images/s'}
                        remark={
                            b
                                ? `${figure(b.tokens_per_s_per_gpu || b.samples_per_s_per_gpu)} on the base`
                                : `model FLOP utilisation ${percent(a.mfu)}`
                        }
                    />
                    <Figure
                        name="memory"
                        value={gib(a.memory.peak_bytes)}
                        mood={a.memory.verdict === 'fits' ? 'good' : a.memory.verdict === 'tight' ? 'warn' : 'bad'}
                        remark={`of ${gib(a.memory.capacity_bytes)}`}
                    />
                    <Figure
                        name="bound by"
                        value={a.regime.bound}
                        remark={`compute ${percent(a.regime.compute)}, memory ${percent(a.regime.memory)}, overhead ${percent(a.regime.overhead)}`}
                    />
                </dl>
            )}
            <div class="grid">
                {g && <Sheet g={g} />}
                <Card
                    name="field"
                    wide="rest"
                    title="The field"
                    note="of those with matrix units"
                    table={tableOf(gpuColumns, rows)}
                >
                    <Curves
                        name="field"
                        label="bf16 peak over memory bandwidth of all GPUs"
                        x="memory, GB/s"
                        y="bf16, TFLOP/s"
                        logX
                        logY
                        height={300}
                        curves={vendors(p.of.gpus, g)}
                        pick={(q) => {
                            const name = q.note?.split('\n')[1];
                            if (name) change({ gpu: name });
                        }}
                    />
                </Card>
                <Card
                    name="gpus"
                    title="The catalogue"
                    wide="whole"
                    picture={false}
                    note={`${whole(rows.length)} GPUs; a name shows its sheet`}
                    table={tableOf(gpuColumns, rows)}
                >
                    <div class="bar">
                        <input
                            type="search"
                            aria-label="Filter GPUs"
                            placeholder="Filter: hopper, amd"
                            value={typed}
                            onInput={(e) => setTyped(e.currentTarget.value)}
                        />
                    </div>
                    <Sortable
                        columns={gpuColumns}
                        rows={rows}
                        label="The catalogue of GPUs"
                        first="bf16_tflops"
                        most={20}
                        chosen={(x) => x.name === g?.name}
                    />
                </Card>
            </div>
            <Same request={here.request} more={[['The sheet', sheet.request]]} />
        </>
    );
}

function vendors(
    gpus: readonly Gpu[],
    now: Gpu | undefined,
): { name: string; line: false; dots: true; points: { x: number; y: number; note: string }[] }[] {
    const peak = (g: Gpu): number => g.peak_tflops['bf16'] ?? g.peak_tflops['fp16'] ?? 0;
    const point = (g: Gpu) => ({ x: g.memory_gbps, y: peak(g), note: `${g.title}\n${g.name}` });
    const names = [...new Set(gpus.map((g) => g.vendor))];
    return [
        ...names.map((name) => ({
            name,
            line: false as const,
            dots: true as const,
            points: gpus.filter((g) => g.vendor === name && g.name !== now?.name && peak(g) > 0).map(point),
        })),
        ...(now && peak(now) > 0
            ? [{ name: 'shown', line: false as const, dots: true as const, points: [point(now)] }]
            : []),
    ].filter((c) => c.points.length);
}

const plain = (v: number): string => String(+v.toPrecision(5));

function Sheet(p: { g: Gpu }): JSX.Element {
    const rows: [string, string][] = [];
    for (const [key, v] of Object.entries(p.g)) {
        if (['name', 'title', 'vendor', 'sources', 'aliases'].includes(key) || v === null || v === undefined) continue;
        const text =
            typeof v === 'object'
                ? Object.entries(v as object)
                      .map(([k, x]) => `${k} ${typeof x === 'number' ? plain(x) : String(x)}`)
                      .join(', ')
                : typeof v === 'number'
                  ? plain(v)
                  : String(v);
        rows.push([key, text]);
    }
    return (
        <Card
            name="sheet"
            title="Sheet"
            picture={false}
            note="keys are those of a spec file"
            table={() => ({ head: ['key', 'value'], rows })}
        >
            <div class="scroll all" tabIndex={0} role="group" aria-label="Sheet">
                <table>
                    <tbody>
                        {rows.map(([k, v]) => (
                            <tr key={k}>
                                <th scope="row">{k}</th>
                                <td class="wrap">{v}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </Card>
    );
}
