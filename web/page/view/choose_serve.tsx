// Which GPUs should be rented for serving under load, or for a number of requests that nobody waits for.
import type { JSX } from 'preact';
import type { Request } from '../answers';
import { useAnswer } from '../ask';
import type { Catalogue } from '../catalogue';
import { modelName } from '../catalogue';
import { Bars } from '../chart/bars';
import { Curves } from '../chart/curves';
import { Choice, doubling, Group, Slider, Text, type Words } from '../form/fields';
import { served } from '../form/step_form';
import { ModelField } from '../form/subject';
import { count, figure, interval, ms, percent, whole } from '../format';
import { Card, Figure, Sortable, tableOf, Warnings, Wrong, type Column } from '../parts';
import { read, request, value } from '../request';
import { Same } from '../same';
import { change } from '../state';
import { CountsGroup, offerWords, Others, RentGroup, rentKeys, verdictWords, type Rented } from './rent';
import { servedColumns, servedWords, wayWords, type Way } from './serve_plans';

type Choosable = Rented &
    Way & {
        fits: boolean;
        usd_per_million_tokens?: number;
        kwh_per_million_tokens?: number;
        kg_co2_per_million_tokens?: number;
        days?: number;
        usd?: number;
        fewer?: Way & { gpus: number; needs_network: boolean; usd_per_hour?: number };
    };
interface Choosing {
    ok: true;
    objective: string;
    found: boolean;
    chosen?: Choosable;
    choices: Choosable[];
    knee?: { gpu: string; gpus: number; tpot_ms?: number; days?: number; usd_per_million_tokens?: number };
    warnings?: string[];
}

const job = (is: Words): boolean => is['use'] === 'infer';

export function ServedForm(p: { is: Words; of: Catalogue }): JSX.Element {
    const { is } = p;
    return (
        <>
            <Group name="What is served">
                <ModelField is={is} of={p.of} />
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
                <Choice name="Precision" of="dtype" is={is} words={served} />
                <Slider name="Prompt" of="isl" is={is} stops={doubling(32, 65536)} unit="tokens" />
                <Slider name="Answer" of="osl" is={is} stops={doubling(8, 8192)} unit="tokens" />
                {job(is) ? (
                    <Slider
                        name="Requests"
                        of="requests"
                        is={is}
                        by={1e5}
                        stops={[1e3, 1e4, 1e5, 1e6, 1e7, 1e8]}
                        hint="of the whole job"
                    />
                ) : (
                    <Slider name="Requests/s" of="rate" is={is} by={4} stops={doubling(1, 512)} unit="per second" />
                )}
            </Group>
            {!job(is) && (
                <Group name="Objectives">
                    <Text name="TTFT, ms" of="slo_ttft" is={is} placeholder="1000" />
                    <Text name="TPOT, ms" of="slo_tpot" is={is} placeholder="50" />
                </Group>
            )}
            <RentGroup is={is} kinds="l40s, a100 80, h100, h200" />
            <CountsGroup is={is} bounded={job(is)} />
        </>
    );
}

function servedRequest(is: Words): Request {
    const out: Request = {
        ...request(
            'choose_serve',
            is,
            ['engine', 'dtype', 'isl', 'osl'].filter((k) => read(is, k)),
        ),
        gpu: ['l40s', 'a100_sxm_80gb', 'h100_sxm', 'h200_sxm'],
        ...rentKeys(is, job(is)),
    };
    if (job(is)) return { ...out, requests: value('requests', is['requests'] ?? '1e5') };
    const slo = { ttft_ms: value('slo_ttft', ttftOf(is)), tpot_ms: value('slo_tpot', tpotOf(is)) };
    return { ...out, rate: value('rate', rateOf(is)), slo };
}
const ttftOf = (is: Words): string => is['slo_ttft'] ?? '1000';
const tpotOf = (is: Words): string => is['slo_tpot'] ?? '50';
const rateOf = (is: Words): string => is['rate'] ?? '4';

const dollars = (usd: number | undefined): string => (usd === undefined ? '–' : `$${figure(usd)}`);
const columns: readonly Column<Choosable>[] = [
    { name: 'Kind', key: 'gpu', cell: (c) => c.gpu, by: (c) => c.gpu },
    { name: 'Why', key: 'verdict', cell: verdictWords, by: verdictWords, wrap: true },
    {
        name: '$/M tokens',
        key: 'usd_per_million_tokens',
        cell: (c) => dollars(c.usd_per_million_tokens),
        by: (c) => c.usd_per_million_tokens ?? Infinity,
        number: true,
    },
    {
        name: '$/h',
        key: 'usd_per_hour',
        cell: (c) => dollars(c.price?.usd_per_hour),
        by: (c) => c.price?.usd_per_hour ?? Infinity,
        number: true,
    },
    ...(servedColumns as readonly Column<Choosable>[]),
    {
        name: 'From',
        key: 'provider',
        cell: (c) => offerWords(c.price),
        by: (c) => offerWords(c.price),
    },
    {
        name: 'kWh/M',
        key: 'kwh_per_million_tokens',
        cell: (c) => figure(c.kwh_per_million_tokens ?? NaN),
        by: (c) => c.kwh_per_million_tokens ?? Infinity,
        number: true,
    },
];

function Chosen(p: { best: Choosable }): JSX.Element {
    const { best } = p;
    return (
        <dl class="figures">
            <Figure name="chosen" value={`${whole(best.gpus ?? 1)} × ${best.gpu}`} remark={wayWords(best)} />
            <Figure
                name="a million tokens"
                value={dollars(best.usd_per_million_tokens)}
                remark={`${dollars(best.price?.usd_per_hour)} an hour, ${offerWords(best.price)}`}
            />
            {best.ttft_ms !== undefined && (
                <Figure
                    name="time to first token"
                    value={ms(best.ttft_ms)}
                    remark={interval(best.ttft_low_ms ?? 0, best.ttft_high_ms ?? 0, best.ttft_ms)}
                />
            )}
            {best.tpot_ms !== undefined && (
                <Figure
                    name="time per output token"
                    value={ms(best.tpot_ms)}
                    remark={interval(best.tpot_low_ms ?? 0, best.tpot_high_ms ?? 0, best.tpot_ms)}
                />
            )}
            {best.fewer && (
                <Figure
                    name="fewer GPUs"
                    value={`${whole(best.fewer.gpus)} × ${best.gpu}`}
                    remark={`${wayWords(best.fewer)}; ${
                        best.fewer.usd_per_hour ? `${dollars(best.fewer.usd_per_hour)} an hour` : 'not for rent this way'
                    }${best.fewer.needs_network ? ', needs a network' : ''}`}
                />
            )}
            {best.slo_share !== undefined && <Figure name="meet the objectives" value={percent(best.slo_share)} />}
            {best.kwh_per_million_tokens !== undefined && (
                <Figure
                    name="energy per million tokens"
                    value={figure(best.kwh_per_million_tokens)}
                    unit="kWh"
                    remark={`${figure(best.kg_co2_per_million_tokens ?? 0)} kg of CO2, with node and building`}
                />
            )}
            {best.days !== undefined && (
                <Figure name="the whole job" value={dollars(best.usd)} remark={`${figure(24 * best.days)} hours`} />
            )}
        </dl>
    );
}

export function ServedView(p: { is: Words; of: Catalogue }): JSX.Element {
    const asked = useAnswer<Choosing>(servedRequest(p.is));
    const a = asked.answer,
        best = a?.chosen;
    const priced = (a?.choices ?? []).filter((c) => c.usd_per_million_tokens !== undefined);
    const load = job(p.is)
        ? `${count(Number(p.is['requests']) || 1e5)} requests`
        : `${figure(Number(rateOf(p.is)))} requests/s`;
    return (
        <>
            <div class="title">
                <h1>
                    {modelName(read(p.is, 'model'))} for {load}
                </h1>
            </div>
            <Wrong error={asked.error} />
            {asked.busy && !a && !asked.error && (
                <p class="quiet" role="status">
                    Engines on every kind of GPU are being tried under this load: up to a minute …
                </p>
            )}
            {a && (
                <div class={asked.error ? 'stale' : ''}>
                    <Warnings lines={a.warnings} />
                    {!a.found && (
                        <p class="note wrong">
                            {job(p.is) ? 'None of them can be taken' : 'None meets the objectives'}: the table says why.
                        </p>
                    )}
                    {best && <Chosen best={best} />}
                    <div class="grid">
                        {!!priced.length && (
                            <Card
                                name="prices"
                                title="Dollars per million tokens"
                                note="the cheapest way of each kind and number"
                                table={tableOf(columns, a.choices)}
                            >
                                <Bars
                                    name="prices"
                                    label="Dollars per million tokens"
                                    rows={priced.slice(0, 24).map((c) => ({
                                        name: `${c.gpus} × ${c.gpu}`,
                                        value: c.usd_per_million_tokens!,
                                        look: c.verdict === 'chosen' ? 'f0' : 'overhead',
                                        text: dollars(c.usd_per_million_tokens),
                                    }))}
                                />
                            </Card>
                        )}
                        {priced.length > 1 && (
                            <Card
                                name="front"
                                title={job(p.is) ? 'Hours against dollars' : 'Speed against dollars'}
                                note="rings: something else is both faster and cheaper"
                                table={tableOf(columns, a.choices)}
                            >
                                <Curves
                                    name="front"
                                    label={job(p.is) ? 'Dollars over hours' : 'Dollars over time per output token'}
                                    x={job(p.is) ? 'hours' : 'TPOT, ms'}
                                    y={job(p.is) ? '$' : '$ per million tokens'}
                                    curves={[
                                        {
                                            name: 'ways',
                                            dots: true,
                                            line: false,
                                            points: priced.map((c) => ({
                                                x: job(p.is) ? 24 * (c.days ?? NaN) : (c.tpot_ms ?? NaN),
                                                y: job(p.is) ? (c.usd ?? NaN) : c.usd_per_million_tokens!,
                                                hollow: !c.front,
                                                note: `${c.gpus} × ${c.gpu}, ${wayWords(c)}${c.knee ? ', the knee' : ''}`,
                                            })),
                                        },
                                    ]}
                                />
                                <Others price={best?.price} />
                                {a.knee && (
                                    <p class="quiet">
                                        The knee of the front: {whole(a.knee.gpus)} × {a.knee.gpu},{' '}
                                        {a.knee.days !== undefined
                                            ? `${figure(24 * a.knee.days)} hours`
                                            : ms(a.knee.tpot_ms ?? NaN)}
                                        , {dollars(a.knee.usd_per_million_tokens)} a million tokens.
                                    </p>
                                )}
                            </Card>
                        )}
                        <Card
                            name="choices"
                            title="All of them"
                            wide="whole"
                            picture={false}
                            note={`${a.choices.length} kinds and numbers`}
                            table={tableOf(columns, a.choices)}
                        >
                            <Sortable
                                columns={columns}
                                rows={a.choices}
                                label="All choices"
                                most={30}
                                chosen={(c) => c.verdict === 'chosen'}
                            />
                            {best && !job(p.is) && (
                                <button
                                    onClick={() =>
                                        change(
                                            {
                                                ...servedWords(best),
                                                gpu: best.gpu,
                                                load: 'rate',
                                                rate: rateOf(p.is),
                                                slo_ttft: ttftOf(p.is),
                                                slo_tpot: tpotOf(p.is),
                                            },
                                            'serve',
                                        )
                                    }
                                >
                                    Serve on the chosen one
                                </button>
                            )}
                        </Card>
                    </div>
                </div>
            )}
            <Same request={asked.request} />
        </>
    );
}
