// One step: how long, where the time goes, what is in memory, what holds each kernel, what to change.
import type { JSX } from 'preact';
import { useCallback, useMemo, useRef, useState } from 'preact/hooks';
import type { Change, Kernel, Request, Step } from '../answers';
import { bounds } from '../answers';
import { useForesight, type Foresight } from '../ahead';
import { ask, useAnswer } from '../ask';
import type { Catalogue } from '../catalogue';
import { gpuTitle, modelName } from '../catalogue';
import { Drawn } from '../chart/drawn';
import { courseOf, MemoryCurve } from '../chart/memory';
import { Roofline } from '../chart/roofline';
import { Timeline } from '../chart/timeline';
import type { Words } from '../form/fields';
import { stepKeys } from '../form/step_form';
import { bytes, count, energyWords, figure, gib, interval, ms, percent, time, whole } from '../format';
import { Card, Delta, Figure, tableOf, Warnings, Wrong, type Table } from '../parts';
import { patched, read, request } from '../request';
import { Same } from '../same';
import { change, state } from '../state';
import { columns, Kernels } from './kernels';
import { pin } from './pins';

export const stepRequest = (is: Words, task = read(is, 'task')): Request => {
    const keys = stepKeys
        .filter(
            (k) =>
                task === 'train' ||
                ![
                    'global_batch',
                    'stack',
                    'recompute',
                    'optimizer',
                    'master_weights',
                    'lora_rank',
                    'loss',
                    'clip_grad',
                    'ema',
                    'moments_dtype',
                    'optimizer_in_backward',
                    'recompute_layers',
                    'compile_scope',
                    'fusions',
                ].includes(k),
        )
        .filter((k) => task === 'decode' || task === 'prefill' || k !== 'kv_dtype');
    return request(task, is, keys, { parallel: true });
};

const withKernels = (base: Request): Request => ({ ...base, detail: 'kernels' });
const foresight: Foresight = (is) => {
    const of = stepRequest(is);
    return { asks: [of], of };
};

export function StepView(p: { is: Words; of: Catalogue }): JSX.Element {
    const base = stepRequest(p.is);
    useForesight(foresight);
    const asked = useAnswer<Step>(base);
    const detailed = useAnswer<Step>(withKernels(base), true);
    const advised = useAnswer<Step>({ ...base, advice: true }, true);
    const [before, setBefore] = useState<Step | null>(null);
    const a = asked.answer;
    const now = useRef(a);
    now.current = a;
    const apply = useCallback((c: Change): void => {
        setBefore(now.current);
        change(patched(c.request, state().is));
    }, []);
    // Once settings rest: who reads it does not drag.
    const same = useMemo(
        () => <Same request={detailed.request} more={[['What to change', advised.request]]} />,
        [detailed.request, advised.request],
    );
    return (
        <>
            <div class="title">
                <h1>
                    {modelName(read(p.is, 'model'))} on {a?.ranks && a.ranks > 1 ? `${whole(a.ranks)} × ` : ''}
                    {gpuTitle(p.of.gpus, read(p.is, 'gpu'))}
                </h1>
                {a && (
                    <span class="quiet">
                        {count(a.parameters)} parameters
                        {a.active_parameters < a.parameters ? `, ${count(a.active_parameters)} active` : ''}
                        {a.stack ? `, ${a.stack}` : ''}
                    </span>
                )}
                {p.of.tasks.has('compare') && (
                    <span class="tools">
                        <button
                            class="plain"
                            onClick={() => {
                                pin(p.is, base);
                                change({}, 'compare');
                            }}
                            title="keep these settings and compare others with them"
                        >
                            Compare with …
                        </button>
                    </span>
                )}
            </div>
            <Wrong error={asked.error} />
            {a && (
                <div class={asked.error ? 'stale' : ''}>
                    <Warnings lines={a.warnings} />
                    <Headline a={a} before={before} task={read(p.is, 'task')} clear={() => setBefore(null)} />
                    <Cards
                        a={a}
                        base={base}
                        detailed={detailed.answer}
                        advised={advised.answer}
                        busy={advised.busy}
                        apply={apply}
                    />
                </div>
            )}
            {same}
        </>
    );
}

export function Headline(p: { a: Step; before: Step | null; task: string; clear: () => void }): JSX.Element {
    const { a } = p,
        m = a.memory,
        t = time(a.step_ms, 4);
    const room = m.verdict === 'fits' ? 'good' : m.verdict === 'tight' ? 'warn' : 'bad';
    const names: { [task: string]: string } = {
        train: 'step',
        prefill: 'time to first token',
        decode: 'time per token',
        forward: 'forward pass',
    };
    return (
        <dl class="figures">
            <Figure
                name={names[p.task] ?? 'step'}
                value={t.value}
                unit={t.unit}
                remark={<>{interval(a.low_ms, a.high_ms, a.step_ms)} in 9 of 10 cases</>}
                delta={<Delta now={a.step_ms} before={p.before?.step_ms} />}
            />
            <Figure
                name={a.tokens_per_s_per_gpu ? 'tokens per second per GPU' : 'images per second and GPU'}
                value={figure(a.tokens_per_s_per_gpu || a.samples_per_s_per_gpu)}
                remark={`${figure(a.samples_per_s_per_gpu)} samples/s/GPU${a.ranks ? `, ${count(a.tokens_per_s_per_gpu * a.ranks)} tokens/s in all` : ''}`}
                delta={
                    <Delta now={a.tokens_per_s_per_gpu} before={p.before?.tokens_per_s_per_gpu} goodIsLess={false} />
                }
            />
            <Figure
                name="model FLOP utilisation"
                value={percent(a.mfu, 3)}
                remark={`${figure(a.model_tflops_per_gpu)} TFLOP/s; hardware ${percent(a.hfu, 3)}`}
                delta={<Delta now={a.mfu} before={p.before?.mfu} goodIsLess={false} />}
            />
            <Figure
                name="memory at its peak"
                value={figure(m.peak_bytes / 2 ** 30)}
                unit="GiB"
                mood={room}
                remark={
                    <>
                        {m.verdict === 'fits' ? 'fits' : m.verdict === 'tight' ? 'tight' : 'does not fit'} in{' '}
                        {gib(m.capacity_bytes)}, {gib(m.reserved_bytes)} reserved{m.remedy ? `; ${m.remedy}` : ''}
                    </>
                }
                delta={<Delta now={m.peak_bytes} before={p.before?.memory.peak_bytes} />}
            />
            <Figure
                name="bound by"
                value={a.regime.bound}
                remark={bounds
                    .filter((b) => a.regime[b] >= 0.005)
                    .map((b) => `${b} ${percent(a.regime[b])}`)
                    .join(', ')}
            />
            <Figure
                name="kernels measured on it"
                value={percent((a.source['learned'] ?? 0) + (a.source['calibrated'] ?? 0))}
                remark={
                    Object.entries(a.source)
                        .filter(([k, v]) => v >= 0.005 && k !== 'learned')
                        .map(([k, v]) => `${k} ${percent(v)}`)
                        .join(', ') || 'of the busy time'
                }
            />
            {p.before && (
                <div>
                    <dt>compared with before</dt>
                    <dd>
                        <button onClick={p.clear}>Forget it</button>
                    </dd>
                </div>
            )}
        </dl>
    );
}

interface Part {
    name: string;
    ms: number;
}

function parts(a: Step): Part[] {
    return [
        { name: 'forward', ms: a.forward_ms },
        { name: 'forward again', ms: a.recompute_ms },
        { name: 'backward', ms: a.backward_ms },
        { name: 'optimizer', ms: a.optimizer_ms },
        { name: 'exposed exchanges', ms: a.comm_exposed_ms },
        { name: 'pipeline bubble', ms: a.bubble_ms },
        { name: 'GPU waits for the host', ms: a.idle_ms },
        { name: 'between kernels', ms: a.between_ms },
    ].filter((p) => p.ms > 1e-6 * a.step_ms);
}

function Cards(p: {
    a: Step;
    base: Request;
    detailed: Step | null; // with its kernels, once settings rest
    advised: Step | null;
    busy: boolean;
    apply: (c: Change) => void;
}): JSX.Element {
    const { a, detailed } = p;
    const [lit, setLit] = useState<Kernel | null>(null);
    const kernels = detailed?.kernels ?? [];
    const table = useMemo(
        () => detailed?.kernels && <Kernels kernels={detailed.kernels} step={detailed} lit={lit} light={setLit} />,
        [detailed, lit],
    );
    const where = parts(a);
    const m = a.memory;
    const memory = (
        [
            ['weights', m.weights_bytes],
            ['optimizer', m.optimizer_bytes],
            ['gradients', m.gradients_bytes],
            ['activations', m.activations_bytes],
            ['KV cache', m.kv_cache_bytes],
            ['communication', m.communication_bytes],
            ['temporary', m.temporary_bytes],
        ] as const
    ).filter(([, b]) => b > 0);
    return (
        <div class="grid">
            <Card
                name="timeline"
                title="Timeline"
                wide="whole"
                note={`${(a.stages?.length ?? 0) > 1 ? 'one GPU of the slowest stage; ' : ''}drag to zoom`}
                table={() => passesTable(p.base)}
            >
                <Timeline of={p.base} />
            </Card>
            <div class="stack">
                <Card
                    name="where"
                    title="Where the time goes"
                    note="of the step, on one GPU"
                    table={() => ({ head: ['part', 'ms'], rows: where.map((w) => [w.name, w.ms]) })}
                >
                    <Drawn name="where" of={p.base} spec={{ what: 'phases' }} />
                    <p class="quiet">
                        {whole(a.launches)} launches; the host is busy for {ms(a.host_ms)}
                        {a.comm_ms > 0
                            ? `; exchanges take ${ms(a.comm_ms)}, ${ms(Math.max(a.comm_ms - a.comm_exposed_ms, 0))} of it hidden`
                            : ''}
                        .{a.energy ? ` ${energyWords(a.energy)}` : ''}
                    </p>
                </Card>
                <Card
                    name="peak"
                    title="Memory at its peak"
                    note={`chance that it fits ${percent(m.chance_fits)}`}
                    table={() => ({ head: ['part', 'bytes'], rows: memory.map(([n, b]) => [n, b]) })}
                >
                    <Drawn name="peak" of={p.base} spec={{ what: 'peak' }} />
                    <p class="quiet">
                        The allocator reserves {gib(m.reserved_bytes)}; driver and communicators take{' '}
                        {gib(m.context_bytes)} beside it.
                    </p>
                </Card>
            </div>
            <Card
                name="changes"
                title="What to change"
                picture={false}
                note={p.busy ? 'asking …' : 'a click applies it'}
                table={() => changesTable(p.advised)}
            >
                {useMemo(
                    () => (
                        <Changes advised={p.advised} apply={p.apply} />
                    ),
                    [p.advised],
                )}
            </Card>
            <Card
                name="roofline"
                title="Roofline of all kernels"
                note="areas are times"
                table={() => kernelsTable(p.base)}
            >
                <Roofline
                    of={p.base}
                    lit={lit ? kernels.indexOf(lit) : -1}
                    onLight={(i) => setLit(kernels[i] ?? null)}
                />
            </Card>
            <Card
                name="memory"
                title="Memory over the step"
                note={m.peak_at ? `fullest: ${m.peak_at}` : ''}
                table={() => momentsTable(p.base)}
            >
                <MemoryCurve of={p.base} />
            </Card>
            {table}
        </div>
    );
}

/** What is drawn, as figures: asked for when someone wants them. */
async function passesTable(of: Request): Promise<Table> {
    const course = await courseOf(of);
    return {
        head: ['pass', 'start_ms', 'end_ms'],
        rows: (course?.passes ?? []).map((x) => [
            x.what + (x.micro !== undefined ? ` ${x.micro + 1}` : ''),
            x.start_ms,
            x.end_ms,
        ]),
    };
}

async function kernelsTable(of: Request): Promise<Table> {
    const answer = await ask<Step>(withKernels(of));
    return tableOf(columns, answer.ok ? (answer.kernels ?? []) : [])();
}

async function momentsTable(of: Request): Promise<Table> {
    const memory = (await courseOf(of))?.memory;
    return { head: ['ms', ...(memory?.kinds.map((k) => `${k}_bytes`) ?? [])], rows: memory?.moments ?? [] };
}

const changesTable = (a: Step | null) => ({
    head: ['change', 'saves_ms', 'low_ms', 'high_ms', 'step_ms', 'memory_bytes', 'fits', 'exact', 'why'],
    rows: [...(a?.advice ?? []), ...(a?.other_gpus ?? [])].map((c) => [
        c.change,
        c.saves_ms,
        c.low_ms,
        c.high_ms,
        c.step_ms,
        c.memory_bytes,
        c.fits,
        c.exact,
        c.why,
    ]),
});

function Changes(p: { advised: Step | null; apply: (c: Change) => void }): JSX.Element {
    const a = p.advised;
    const list = a?.advice ?? [],
        others = a?.other_gpus ?? [];
    if (a && !list.length && !others.length)
        return <p class="quiet">Nothing that the library knows would make it faster.</p>;
    const item = (c: Change, name = c.change): JSX.Element => (
        <li key={name}>
            <div>
                <b>{name}</b> saves {ms(c.saves_ms)}{' '}
                <span class="quiet">
                    ({interval(c.low_ms, c.high_ms, c.saves_ms)}){c.on_top ? ', beside those above' : ''}
                </span>
                <p>
                    {c.why ?? ''}
                    {c.memory_bytes
                        ? `${c.why ? '; ' : ''}memory ${c.memory_bytes > 0 ? '+' : '\u2212'}${bytes(Math.abs(c.memory_bytes))}`
                        : ''}
                    {c.exact === false ? '; changes the mathematics' : ''}
                    {c.fits === false ? '; does not fit' : c.verdict === 'tight' ? '; hardly fits' : ''}
                </p>
            </div>
            <button onClick={() => p.apply(c)} aria-label={`Apply: ${name}`}>
                Apply
            </button>
        </li>
    );
    return (
        <ul class="changes">
            {list.slice(0, 6).map((c) => item(c))}
            {a?.advice_together && list.length > 1 && item(a.advice_together, 'All of these together')}
            {others.slice(0, 2).map((c) => item(c))}
        </ul>
    );
}
