// Serving under load: what clients wait for, over the load and over time.
import type { JSX } from 'preact';
import type { Failure, Request } from '../answers';
import { useAnswer, useAnswers } from '../ask';
import type { Catalogue } from '../catalogue';
import { gpuTitle, modelName } from '../catalogue';
import { Choice, Group, Slider, Text, doubling, powers, type Words } from '../form/fields';
import { GpuField, ModelField } from '../form/subject';
import { served } from '../form/step_form';
import { figure, interval, ms, percent, plural, time, whole } from '../format';
import { Card, Figure, Sortable, tableOf, Warnings, Wrong } from '../parts';
import { read, request, value } from '../request';
import { Same } from '../same';
import { change } from '../state';
import { planServeRequest, ServePlans, wayWords, type Way } from './serve_plans';
import { at, Loads, timeColumns, timeRows, UnderLoad, type Serve } from './serve_charts';

const keys = [
    'engine',
    'dtype',
    'weights_dtype',
    'kv_dtype',
    'isl',
    'osl',
    'max_num_seqs',
    'max_num_batched_tokens',
    'replicas',
    'routing',
    'prefix_hit',
    'gpu_memory_utilization',
    'scheduling',
];

/** Engines that prefill and engines that decode: how many and how laid out, and the way back. */
function Apart(p: { is: Words }): JSX.Element {
    const found = value('disaggregated', p.is['disaggregated'] ?? '') as Way['disaggregated'];
    return (
        <div class="field set">
            <span>Apart</span>
            <span>
                {found?.prefill && found.decode ? wayWords({ disaggregated: found }) : 'unreadable'}{' '}
                <button onClick={() => change({ disaggregated: '' })}>Together</button>
            </span>
        </div>
    );
}

export function ServeForm(p: { is: Words; of: Catalogue }): JSX.Element {
    const { is } = p;
    return (
        <>
            <Group name="What runs where">
                <ModelField is={is} of={p.of} />
                <GpuField is={is} of={p.of} />
                <Choice
                    name="Engine"
                    of="engine"
                    is={is}
                    words={[
                        ['vllm', 'vLLM'],
                        ['sglang', 'SGLang'],
                        ['trtllm', 'TensorRT-LLM'],
                    ]}
                />
                {is['disaggregated'] ? (
                    <Apart is={is} />
                ) : (
                    <>
                        <Slider name="Tensor" of="tp" is={is} by={1} stops={powers(1, 16)} hint="tensor parallel ranks" />
                        <Slider
                            name="Replicas"
                            of="replicas"
                            is={is}
                            by={1}
                            stops={powers(1, 64)}
                            hint="engines behind a router"
                        />
                        {Number(is['replicas'] ?? 1) > 1 && (
                            <Choice
                                name="Router"
                                of="routing"
                                is={is}
                                words={[['', 'in turn'], ['least_loaded', 'to the least loaded'], ['prefix_aware', 'by prefix']]}
                            />
                        )}
                        <Slider
                            name="Experts"
                            of="ep"
                            is={is}
                            by={1}
                            stops={powers(1, 64)}
                            hint="expert ranks over tp × dp"
                        />
                    </>
                )}
            </Group>
            <Group name="Load">
                <Choice
                    name="Arrivals"
                    of="load"
                    is={is}
                    words={[
                        ['', 'clients that wait'],
                        ['rate', 'requests per second'],
                    ]}
                />
                {is['load'] === 'rate' ? (
                    <Slider name="Requests/s" of="rate" is={is} by={4} stops={doubling(1, 512)} unit="per second" />
                ) : (
                    <Slider
                        name="Clients"
                        of="concurrency"
                        is={is}
                        by={32}
                        stops={doubling(1, 1024)}
                        hint="each sends its next request when it has its answer"
                    />
                )}
                {is['simulated'] && (
                    <Text name="Simulated" of="simulated" is={is} hint="requests of the simulation; a plan says how many" />
                )}
                <Slider name="Prompt" of="isl" is={is} stops={doubling(32, 65536)} unit="tokens" />
                <Slider name="Answer" of="osl" is={is} stops={doubling(8, 8192)} unit="tokens" />
                <Slider
                    name="In the cache"
                    of="prefix_hit"
                    is={is}
                    by={0}
                    stops={[0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]}
                    hint="share of every prompt that is in the cache"
                />
            </Group>
            <Group name="Precision">
                <Choice name="Arithmetic" of="dtype" is={is} words={served} />
                <Choice
                    name="Weights"
                    of="weights_dtype"
                    is={is}
                    words={[['', 'as stored'], 'fp8', 'int8', 'int4', 'mxfp4']}
                />
                <Choice name="Cache" of="kv_dtype" is={is} words={[['', 'as computed'], 'bf16', 'fp8']} />
            </Group>
            <Group name="Engine">
                <Slider
                    name="Sequences"
                    of="max_num_seqs"
                    is={is}
                    stops={powers(8, 2048)}
                    hint="sequences that run at once"
                />
                <Slider
                    name="Token budget"
                    of="max_num_batched_tokens"
                    is={is}
                    stops={powers(512, 65536)}
                    hint="tokens per iteration"
                />
                <Choice name="Who is next" of="scheduling" is={is} words={[['', 'first come'], 'shortest', 'fair']} />
            </Group>
            <Group name="Objectives">
                <Text name="TTFT, ms" of="slo_ttft" is={is} placeholder="none" />
                <Text name="TPOT, ms" of="slo_tpot" is={is} placeholder="none" />
                <Slider name="GPUs, most" of="gpus" is={is} by={8} stops={powers(1, 512)} hint="of a plan" />
            </Group>
        </>
    );
}

/** A change that the library proposes, as words of the page. */
export function servedChange(c: { key: string; value?: number }, is: Words): { [key: string]: string } {
    if (c.key === 'kv_dtype') return { kv_dtype: 'fp8' };
    if (c.key !== 'disaggregated') return { [c.key]: String(c.value) };
    const ranks: Request = {};
    for (const k of ['tp', 'ep']) if (is[k] && is[k] !== '1') ranks[k] = Number(is[k]);
    const decode = { workers: Number(is['replicas']) || 1, ...ranks };
    return { disaggregated: JSON.stringify({ prefill: { workers: 1, ...ranks }, decode }) };
}

export function serveRequest(is: Words): Request {
    const out = request('serve', is, keys);
    const parallel: Request = {};
    for (const k of ['tp', 'ep', 'dp'])
        if (is[k] && is[k] !== '1' && (k !== 'dp' || is['view'] === 'never')) parallel[k] = value(k, is[k]!);
    const apart = is['disaggregated'] ? value('disaggregated', is['disaggregated']) : null;
    if (apart) {
        out['disaggregated'] = apart; // each side has its own layout and number
        delete out['replicas'];
        delete out['routing'];
    } else if (Object.keys(parallel).length) out['parallel'] = parallel;
    if (Number(is['simulated']) > 0) {
        out['requests'] = Number(is['simulated']); // as many as a plan was judged by
        if (Number(is['warmup']) > 0 && Number(is['warmup']) < Number(is['simulated'])) out['warmup'] = Number(is['warmup']);
    }
    if (!(Number(out['replicas']) > 1)) delete out['routing']; // of one engine it says nothing
    const slo: Request = {};
    for (const of of ['ttft', 'tpot']) if (is[`slo_${of}`]) slo[`${of}_ms`] = value(`slo_${of}`, is[`slo_${of}`]!);
    if (Object.keys(slo).length) out['slo'] = slo;
    return out;
}

export function ServeView(p: { is: Words; of: Catalogue }): JSX.Element {
    const base = serveRequest(p.is),
        byRate = p.is['load'] === 'rate';
    const load: Request = byRate
        ? { rate: value('rate', read(p.is, 'rate') || '4') }
        : { concurrency: value('concurrency', read(p.is, 'concurrency')) };
    const asked = useAnswer<Serve>({ ...base, ...load });
    const advised = useAnswer<Serve>({ ...base, ...load, advice: true }, true);
    const here = Number(byRate ? load['rate'] : load['concurrency']);
    const loads = byRate ? [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128] : powers(1, Math.max(512, here));
    const sweep = useAnswers<Serve>(loads.map((n) => ({ ...base, [byRate ? 'rate' : 'concurrency']: n })));
    const planned = p.of.tasks.has('plan_serve') ? planServeRequest(p.is, base) : null;
    const a = asked.answer;
    const points = sweep.answers
        .map((s, i) => [loads[i] ?? 0, s] as const)
        .filter((x): x is readonly [number, Serve] => (x[1] as Serve | Failure).ok);
    return (
        <>
            <div class="title">
                <h1>
                    {modelName(read(p.is, 'model'))} served by {a?.engine ?? read(p.is, 'engine')} on{' '}
                    {a && a.gpus > 1 ? `${a.gpus} × ` : ''}
                    {gpuTitle(p.of.gpus, read(p.is, 'gpu'))}
                </h1>
                {a && (
                    <span class="quiet">
                        {plural(a.requests, 'request')} in {figure(a.seconds)} s
                    </span>
                )}
            </div>
            <Wrong error={asked.error} />
            {a && (
                <div class={asked.error ? 'stale' : ''}>
                    <Warnings lines={a.warnings} />
                    {!a.stable && (
                        <p class="note wrong">
                            Requests come faster than they are served: waiting times grow for as long as it goes on.
                        </p>
                    )}
                    <Headline a={a} />
                    <div class="grid">
                        <Loads points={points} byRate={byRate} here={here} is={p.is} busy={sweep.busy} />
                        <UnderLoad a={a} of={{ ...base, ...load }} />
                        <div class="stack">
                        <Card
                            name="times"
                            title="What clients see"
                            picture={false}
                            note="ms, with the interval of the mean"
                            table={tableOf(timeColumns, timeRows(a))}
                        >
                            <Sortable columns={timeColumns} rows={timeRows(a)} label="What clients see" />
                            <p class="quiet">
                                {whole(a.steps.count)} iterations, {whole(a.steps.mixed)} with prompts:{' '}
                                {ms(a.steps.decode_ms)} without, {ms(a.steps.mixed_ms)} with them; the host has{' '}
                                {percent(a.steps.host_share)} of it.
                            </p>
                        </Card>
                        {!!advised.answer?.advice?.length && (
                            <Card name="changes" title="What to change" picture={false} note="a click applies it">
                                <ul class="changes">
                                    {advised.answer.advice.map((c) => (
                                        <li key={c.what}>
                                            <div>
                                                <b>{c.what}</b>, {plural(c.gpus, 'GPU')}
                                                <p>
                                                    TTFT {c.ttft_ms !== undefined ? ms(c.ttft_ms) : 'grows'}, TPOT{' '}
                                                    {ms(c.tpot_ms)}, {figure(c.tokens_per_s_per_gpu)} tokens/s/GPU
                                                </p>
                                            </div>
                                            <button
                                                aria-label={`Apply: ${c.what}`}
                                                onClick={() => change(servedChange(c, p.is))}
                                            >
                                                Apply
                                            </button>
                                        </li>
                                    ))}
                                </ul>
                            </Card>
                        )}
                        </div>
                        {p.of.tasks.has('plan_serve') && <ServePlans is={p.is} request={planned} />}
                    </div>
                </div>
            )}
            <Same
                request={asked.request}
                more={[
                    ['What to change', advised.request],
                    ['The plan', planned],
                ]}
            />
        </>
    );
}

function Headline(p: { a: Serve }): JSX.Element {
    const { a } = p,
        ttft = at(a, 'ttft_ms'),
        tpot = at(a, 'tpot_ms');
    const one = (name: string, key: string, v: number): JSX.Element => {
        const t = time(v, 3);
        return (
            <Figure
                name={name}
                value={t.value}
                unit={t.unit}
                remark={
                    <>
                        {interval(at(a, `${key}_low_ms`), at(a, `${key}_high_ms`), v)}; p99 {ms(at(a, `${key}_ms_p99`))}
                    </>
                }
            />
        );
    };
    return (
        <dl class="figures">
            {Number.isFinite(ttft) && one('time to first token', 'ttft', ttft)}
            {Number.isFinite(tpot) && one('time per output token', 'tpot', tpot)}
            <Figure
                name="tokens per second per GPU"
                value={figure(a.tokens_per_s_per_gpu)}
                remark={`${figure(a.requests_per_s)} requests/s in all`}
            />
            {Number.isFinite(tpot) && (
                <Figure
                    name="each client"
                    value={figure(1000 / tpot)}
                    unit="tokens/s"
                    remark="after the first"
                />
            )}
            <Figure
                name="bound by"
                value={a.bound}
                remark={`${figure(a.running_mean)} sequences run on average, ${whole(a.running_max)} at most`}
            />
            <Figure
                name="cache at most"
                value={percent(a.kv.peak_tokens / a.kv.capacity_tokens)}
                mood={a.kv.preemptions ? 'warn' : ''}
                remark={`of ${whole(a.kv.capacity_tokens)} tokens; ${plural(a.kv.preemptions, 'preemption')}`}
            />
            {a.slo_share !== undefined && (
                <Figure
                    name="meet the objectives"
                    value={percent(a.slo_share)}
                    mood={a.slo_met ? 'good' : 'bad'}
                    remark={`${figure(a.goodput_per_s ?? 0)} good requests/s`}
                />
            )}
            {a.energy && (
                <Figure
                    name="energy"
                    value={figure(a.energy.joules_per_token)}
                    unit="J/token"
                    remark={`${figure(a.energy.low_joules)}–${figure(a.energy.high_joules)} J; ${figure(a.energy.watts_per_gpu)} W a GPU; ${figure(a.energy.kwh_per_million_tokens)} kWh a million tokens`}
                />
            )}
            {a.usd_per_million_tokens !== undefined && (
                <Figure
                    name="price"
                    value={`$${figure(a.usd_per_million_tokens)}`}
                    remark="a million tokens of output, at the GPU's list price"
                />
            )}
        </dl>
    );
}
