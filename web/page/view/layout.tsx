// Many GPUs: the pipeline, exchanges, memory by stage, scaling, and the plan that would be best.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Request, Stage, Step } from '../answers';
import { useAnswer } from '../ask';
import type { Catalogue } from '../catalogue';
import { gpuTitle, modelName } from '../catalogue';
import { Bars } from '../chart/bars';
import { Curves, type Curve } from '../chart/curves';
import { courseOf } from '../chart/memory';
import { Pipeline } from '../chart/timeline';
import { Group, Choice, Slider, Text, powers, type Words } from '../form/fields';
import { StepForm } from '../form/step_form';
import { bytes, energyWords, figure, gib, interval, ms, percent, plural, whole } from '../format';
import { Card, Sortable, tableOf, Warnings, Wrong, type Column, type Table } from '../parts';
import { read, request } from '../request';
import { Same } from '../same';
import { change } from '../state';
import { layoutWords, numbersRequest, PlanCards, planRequest, planWords, ranksOf } from './plan';
import type { Numbers, Plan, Plans } from './plan';
import { Headline, stepRequest } from './step';

interface Scaled {
    gpus: number;
    step_ms: number;
    low_ms: number;
    high_ms: number;
    tokens_per_s: number;
    tokens_per_s_per_gpu: number;
    efficiency: number;
    mfu: number;
    comm_exposed_ms: number;
    bubble_ms: number;
    fits: boolean;
}
interface Scaling {
    ok: true;
    strong: Scaled[];
    weak: Scaled[];
}

export function LayoutForm(p: { is: Words; of: Catalogue }): JSX.Element {
    return (
        <>
            <StepForm is={p.is} of={p.of} layout />
            <Group name="Search for a plan">
                <Slider name="GPUs" of="gpus" is={p.is} by={64} stops={powers(2, 16384)} hint="to lay it out over" />
                <Choice
                    name="Framework"
                    of="framework"
                    is={p.is}
                    words={[['', 'megatron'], 'nemo', 'torchtitan', 'fsdp', 'deepspeed']}
                />
                <Choice
                    name="Least of"
                    of="least"
                    is={p.is}
                    words={[['', 'time'], 'memory', 'energy']}
                    hint="what the best plan minimises"
                />
                <Text
                    name="Margin"
                    of="margin"
                    is={p.is}
                    placeholder="0"
                    hint="share of the memory to leave free, 0 to 1"
                />
            </Group>
        </>
    );
}

export function LayoutView(p: { is: Words; of: Catalogue }): JSX.Element {
    const [before, setBefore] = useState<Step | null>(null);
    const base = stepRequest(p.is, 'train');
    const asked = useAnswer<Step>({ ...base, detail: 'layers' });
    const plan = useAnswer<Plans>(p.of.tasks.has('plan') ? planRequest(p.is) : null, true);
    const numbers = useAnswer<Numbers>(plan.request && !plan.busy ? numbersRequest(plan.request) : null, true);
    const many = ranksOf(p.is) > 1;
    const scaling = useAnswer<Scaling>(p.of.tasks.has('scale') ? scaleRequest(p.is) : null, true);
    const a = asked.answer;
    const apply = (q: Plan): void => {
        setBefore(a);
        change(planWords(q));
    };
    return (
        <>
            <div class="title">
                <h1>
                    {modelName(read(p.is, 'model'))} on {a?.ranks ? `${whole(a.ranks)} × ` : ''}
                    {gpuTitle(p.of.gpus, read(p.is, 'gpu'))}
                </h1>
                {a?.parallel && (
                    <span class="quiet">
                        {layoutWords(a.parallel)}
                        {a.micro_batches ? `, ${plural(a.micro_batches, 'micro-batch', 'micro-batches')}` : ''}
                        {a.dealt ? `, ${a.dealt}` : ''}
                    </span>
                )}
            </div>
            <Wrong error={asked.error} />
            {a && (
                <div class={asked.error ? 'stale' : ''}>
                    <Warnings lines={a.warnings} />
                    <Headline a={a} before={before} task="train" clear={() => setBefore(null)} />
                    {a.cluster && (
                        <p class="quiet beside">
                            {a.cluster.understood}.{a.energy ? ` ${energyWords(a.energy)}` : ''}
                        </p>
                    )}
                    <div class="grid">
                        {a.stages && a.stages.length > 1 && (
                            <Card
                                name="pipeline"
                                title="Pipeline"
                                wide="whole"
                                note={`bubble ${ms(a.bubble_ms)}, ${percent(a.bubble_ms / a.step_ms)} of the step`}
                                table={() => piecesTable(base)}
                            >
                                <Pipeline of={base} />
                            </Card>
                        )}
                        {many && a.comm && <Exchanges a={a} />}
                        {a.stages && a.stages.length > 1 && <Ranks a={a} />}
                        {scaling.answer && <Scales of={scaling.answer} />}
                        {a.stages && a.stages.length > 1 && <Stages a={a} />}
                    </div>
                </div>
            )}
            {plan.busy && !plan.answer && !plan.error && p.of.tasks.has('plan') && (
                <p class="quiet" role="status">
                    Plans are being searched …
                </p>
            )}
            {plan.error && <Wrong error={plan.error} />}
            {plan.answer && (
                <PlanCards
                    is={p.is}
                    of={plan.answer}
                    request={plan.request!}
                    numbers={numbers.answer}
                    busy={plan.busy}
                    apply={apply}
                />
            )}
            <Same
                request={asked.request}
                more={[
                    ['The plan', plan.request],
                    ['Fewer and more GPUs', numbers.request],
                    ['Scaling', scaling.request],
                ]}
            />
        </>
    );
}

async function piecesTable(of: Request): Promise<Table> {
    const stages = (await courseOf(of))?.pipeline?.stages ?? [];
    return {
        head: ['stage', 'kind', 'micro_batch', 'chunk', 'start_ms', 'end_ms'],
        rows: stages.flatMap((s) => s.pieces.map((q) => [s.stage + 1, q[0], q[1] + 1, q[2] + 1, q[3], q[4]])),
    };
}

function scaleRequest(is: Words): Request {
    const out = request(
        'scale',
        is,
        ['seq', 'batch', 'dtype', 'recompute', 'execution'].filter((k) => is[k]),
        { parallel: true },
    );
    const parallel = { ...(out['parallel'] as Request | undefined) };
    for (const k of ['dp', 'vpp', 'schedule']) delete parallel[k];
    if (Object.keys(parallel).length) out['parallel'] = parallel;
    else delete out['parallel'];
    delete out['cluster'];
    if (is['interconnect']) out['cluster'] = { interconnect: is['interconnect'] };
    return { ...out, gpus: Math.max(Number(is['gpus']) || 0, 8 * ranksOf(is), 512) };
}

function Exchanges(p: { a: Step }): JSX.Element {
    const { a } = p;
    const rows = Object.entries(a.comm ?? {})
        .filter(([k, v]) => k !== 'exposed_ms' && v > 0)
        .map(([k, v]) => ({ name: k.replace('_ms', ''), value: v, look: 'communication', text: ms(v) }));
    const hidden = Math.max(a.comm_ms - a.comm_exposed_ms, 0);
    const all = [
        ...rows,
        { name: 'hidden', value: hidden, look: 'f1', text: ms(hidden) },
        { name: 'nothing hides', value: a.comm_exposed_ms, look: 'f6', text: ms(a.comm_exposed_ms) },
    ];
    return (
        <Card
            name="exchanges"
            title="Exchanges"
            note="by axis, then by whether they cost time"
            table={() => ({ head: ['what', 'ms'], rows: all.map((r) => [r.name, r.value]) })}
        >
            <Bars name="exchanges" rows={all} whole={a.step_ms} label="Exchanges" />
            <p class="quiet">
                Shares are of the step; {percent(a.comm_exposed_ms / a.step_ms)} of it waits for exchanges.
            </p>
        </Card>
    );
}

const stageColumns: readonly Column<[Stage, number]>[] = [
    { name: 'Stage', key: 'stage', cell: ([, i]) => i + 1, by: ([, i]) => i + 1, number: true },
    {
        name: 'Layers',
        key: 'layers',
        cell: ([s]) => s.layers.join(' + '),
        by: ([s]) => s.layers.reduce((x, y) => x + y, 0),
        number: true,
    },
    { name: 'Forward', key: 'forward_ms', cell: ([s]) => ms(s.forward_ms), by: ([s]) => s.forward_ms, number: true },
    {
        name: 'Backward',
        key: 'backward_ms',
        cell: ([s]) => ms(s.backward_ms),
        by: ([s]) => s.backward_ms,
        number: true,
    },
    { name: 'Update', key: 'update_ms', cell: ([s]) => ms(s.update_ms), by: ([s]) => s.update_ms, number: true },
    { name: 'In flight', key: 'in_flight', cell: ([s]) => figure(s.in_flight), by: ([s]) => s.in_flight, number: true },
    {
        name: 'Kept by each',
        key: 'saved_bytes',
        cell: ([s]) => bytes(s.saved_bytes),
        by: ([s]) => s.saved_bytes,
        number: true,
    },
    { name: 'Peak', key: 'peak_bytes', cell: ([s]) => gib(s.peak_bytes), by: ([s]) => s.peak_bytes, number: true },
];

const numbered = (a: Step): [Stage, number][] => a.stages!.map((s, i) => [s, i]);

function Ranks(p: { a: Step }): JSX.Element {
    const rows = numbered(p.a);
    const capacity = p.a.memory.capacity_bytes;
    return (
        <Card
            name="ranks"
            title="Memory by stage"
            note={`a GPU has ${gib(capacity)}`}
            table={tableOf(stageColumns, rows)}
        >
            <Bars
                name="ranks"
                label="Memory by stage"
                whole={capacity}
                rows={rows.slice(0, 32).map(([s, i]) => ({
                    name: `stage ${i + 1}`,
                    value: s.peak_bytes,
                    look: s.peak_bytes > capacity ? 'f6' : 'f0',
                    text: gib(s.peak_bytes),
                }))}
            />
            {rows.length > 32 && <p class="quiet">{rows.length - 32} more stages are in the table.</p>}
        </Card>
    );
}

function Stages(p: { a: Step }): JSX.Element {
    const rows = numbered(p.a);
    return (
        <Card
            name="stages"
            title="Stages"
            wide="double"
            picture={false}
            note="times of one micro-batch"
            table={tableOf(stageColumns, rows)}
        >
            <Sortable
                columns={stageColumns.filter((c) => c.key !== 'peak_bytes')}
                rows={rows}
                label="Stages"
                most={16}
            />
        </Card>
    );
}

function Scales(p: { of: Scaling }): JSX.Element {
    const curve = (name: string, rows: readonly Scaled[], f: (s: Scaled) => number): Curve => ({
        name,
        dots: true,
        points: rows.map((s) => ({
            x: s.gpus,
            y: f(s),
            hollow: !s.fits,
            note: `${ms(s.step_ms)} (${interval(s.low_ms, s.high_ms, s.step_ms)})${s.fits ? '' : ', does not fit'}`,
        })),
    });
    const table = () => ({
        head: [
            'kind',
            'gpus',
            'step_ms',
            'low_ms',
            'high_ms',
            'tokens_per_s',
            'efficiency',
            'mfu',
            'comm_exposed_ms',
            'bubble_ms',
            'fits',
        ],
        rows: (['strong', 'weak'] as const).flatMap((k) =>
            p.of[k].map((s) => [
                k,
                s.gpus,
                s.step_ms,
                s.low_ms,
                s.high_ms,
                s.tokens_per_s,
                s.efficiency,
                s.mfu,
                s.comm_exposed_ms,
                s.bubble_ms,
                s.fits,
            ]),
        ),
    });
    return (
        <>
            <Card
                name="efficiency"
                title="Scaling"
                note="strong: the global batch kept; weak: the tokens per GPU"
                table={table}
            >
                <Curves
                    name="efficiency"
                    rings="rings: does not fit"
                    label="Efficiency over GPUs"
                    x="GPUs"
                    y="efficiency, %"
                    logX
                    curves={[
                        curve('strong', p.of.strong, (s) => 100 * s.efficiency),
                        curve('weak', p.of.weak, (s) => 100 * s.efficiency),
                    ]}
                />
            </Card>
            <Card name="rates" title="Throughput over GPUs" note="rings do not fit" table={table}>
                <Curves
                    name="rates"
                    rings="rings: does not fit"
                    label="Tokens per second over GPUs"
                    x="GPUs"
                    y="tokens/s"
                    logX
                    logY
                    curves={[
                        curve('strong', p.of.strong, (s) => s.tokens_per_s),
                        curve('weak', p.of.weak, (s) => s.tokens_per_s),
                    ]}
                />
            </Card>
        </>
    );
}
