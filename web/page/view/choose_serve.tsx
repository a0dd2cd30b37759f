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
import { read, request } from '../request';
import { Same } from '../same';
import { change } from '../state';
import { servedColumns, wayWords, type Way } from './serve_plans';

interface Choosable extends Way {
    gpu: string;
    fits: boolean;
    verdict: string;
    price?: { usd_per_hour: number; cheapest?: { provider: string; instance: string; date?: string } };
    usd_per_million_tokens?: number;
    days?: number;
    usd?: number;
    front?: boolean;
}
interface Choosing {
    ok: true;
    objective: string;
    found: boolean;
    chosen?: Choosable;
    choices: Choosable[];
    warnings?: string[];
}

const list = (text: string): string[] => text.split(/\s*,\s*/).filter(Boolean);
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
            <Group name="What may be rented">
                <Text
                    name="GPUs"
                    of="kinds"
                    is={is}
                    placeholder="l40s, a100 80, h100, h200"
                    hint="names of the catalogue, with commas"
                />
                <Choice name="Pricing" of="pricing" is={is} words={[['', 'on demand'], 'spot']} />
                <Text
                    name="Providers"
                    of="provider"
                    is={is}
                    placeholder="any"
                    hint="aws, gcp, lambda, …, with commas"
                />
                {job(is) && <Text name="Deadline" of="deadline" is={is} placeholder="none" hint="30d, 12h" />}
            </Group>
        </>
    );
}

function servedRequest(is: Words): Request {
    const { gpu: _, ...out } = request(
        'choose_serve',
        is,
        ['engine', 'dtype', 'isl', 'osl', 'pricing', ...(job(is) ? ['deadline'] : [])].filter((k) => read(is, k)),
    );
    out['gpu'] = is['kinds'] ? list(is['kinds']) : ['l40s', 'a100_sxm_80gb', 'h100_sxm', 'h200_sxm'];
    if (is['provider']) out['provider'] = list(is['provider']);
    if (job(is)) return { ...out, requests: Number(is['requests']) || 1e5 };
    const slo = { ttft_ms: Number(is['slo_ttft']) || 1000, tpot_ms: Number(is['slo_tpot']) || 50 };
    return { ...out, rate: Number(is['rate']) || 4, slo };
}

const dollars = (usd: number | undefined): string => (usd === undefined ? '–' : `$${figure(usd)}`);
const verdicts: { [verdict: string]: string } = {
    chosen: 'chosen',
    memory: 'does not fit',
    refused: 'no engine takes it',
    price_unknown: 'no price is known',
    deadline: 'too late',
    budget: 'too dear',
    speed: 'slower',
    price: 'dearer',
    ttft: 'first tokens come too late',
    tpot: 'tokens come too slowly',
    gpus: 'more GPUs than there may be',
};
const columns: readonly Column<Choosable>[] = [
    { name: 'Kind', key: 'gpu', cell: (c) => c.gpu, by: (c) => c.gpu },
    { name: 'Why', key: 'verdict', cell: (c) => verdicts[c.verdict] ?? c.verdict, by: (c) => c.verdict },
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
        cell: (c) => (c.price?.cheapest ? `${c.price.cheapest.provider}, ${c.price.cheapest.date ?? ''}` : ''),
        by: (c) => c.price?.cheapest?.provider ?? '',
    },
];

function Chosen(p: { best: Choosable }): JSX.Element {
    const { best } = p;
    return (
        <dl class="figures">
            <Figure name="chosen" value={`${whole(best.gpus)} × ${best.gpu}`} remark={wayWords(best)} />
            <Figure
                name="a million tokens"
                value={dollars(best.usd_per_million_tokens)}
                remark={`${dollars(best.price?.usd_per_hour)} an hour${best.price?.cheapest ? `, ${best.price.cheapest.provider} ${best.price.cheapest.date ?? ''}` : ''}`}
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
            {best.slo_share !== undefined && <Figure name="keep the objectives" value={percent(best.slo_share)} />}
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
        : `${figure(Number(p.is['rate']) || 4)} requests/s`;
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
                    {!a.found && <p class="note wrong">None keeps the objectives.</p>}
                    {best && <Chosen best={best} />}
                    <div class="grid">
                        {!!priced.length && (
                            <Card
                                name="prices"
                                title="Dollars of a million tokens"
                                note="the cheapest way of each kind and number"
                                table={tableOf(columns, a.choices)}
                            >
                                <Bars
                                    name="prices"
                                    label="Dollars of a million tokens"
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
                                                note: `${c.gpus} × ${c.gpu}, ${wayWords(c)}`,
                                            })),
                                        },
                                    ]}
                                />
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
                            {best && (
                                <button
                                    onClick={() =>
                                        change(
                                            {
                                                gpu: best.gpu,
                                                tp: String(best.parallel?.['tp'] ?? ''),
                                                replicas: String(best.replicas ?? ''),
                                                load: 'rate',
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
