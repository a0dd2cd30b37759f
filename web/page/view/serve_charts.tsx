// What serving under load looks like: over the load, over requests, over time.
import type { JSX } from 'preact';
import type { Request } from '../answers';
import { ask } from '../ask';
import { Curves, nearest, type Curve, type Point } from '../chart/curves';
import { Drawn } from '../chart/drawn';
import type { Words } from '../form/fields';
import { figure, ms } from '../format';
import { Card, type Column, type Table } from '../parts';

interface Advice {
    what: string;
    key: string;
    value?: number;
    gpus: number;
    ttft_ms?: number;
    tpot_ms: number;
    tokens_per_s_per_gpu: number;
}
export interface Serve {
    ok: true;
    gpus: number;
    engine: string;
    requests: number;
    seconds: number;
    requests_per_s: number;
    tokens_per_s_per_gpu: number;
    usd_per_million_tokens?: number;
    energy?: {
        joules_per_token: number;
        low_joules: number;
        high_joules: number;
        watts_per_gpu: number;
        kwh_per_million_tokens: number;
    };
    queue_ms?: number;
    running_mean: number;
    running_max: number;
    kv: { capacity_tokens: number; peak_tokens: number; preemptions: number };
    steps: { count: number; decode: number; mixed: number; decode_ms: number; mixed_ms: number; host_share: number };
    bound: string;
    stable: boolean;
    goodput_per_s?: number;
    slo_share?: number;
    slo_met?: boolean;
    advice?: Advice[];
    per_request?: { sent_ms: number; ttft_ms: number; tpot_ms?: number; e2e_ms: number }[];
    course?: { ms: number; waiting: number; running: number; cache_share: number }[];
    warnings?: string[];
    [time: string]: unknown;
}

export const at = (s: Serve, key: string): number => (typeof s[key] === 'number' ? s[key] : NaN);

export function Loads(p: {
    points: readonly (readonly [number, Serve])[];
    byRate: boolean;
    here: number;
    is: Words;
    busy: boolean;
}): JSX.Element {
    const name = p.byRate ? 'requests/s' : 'clients';
    const curve = (title: string, key: string): Curve => ({
        name: title,
        dots: true,
        points: p.points
            .filter(([, s]) => Number.isFinite(at(s, `${key}_ms`)))
            .map(
                ([n, s]): Point => ({
                    x: n,
                    y: at(s, `${key}_ms`),
                    low: at(s, `${key}_low_ms`),
                    high: at(s, `${key}_high_ms`),
                    note: `p99 ${ms(at(s, `${key}_ms_p99`))}`,
                }),
            ),
    });
    const table = () => ({
        head: [
            p.byRate ? 'rate' : 'concurrency',
            'ttft_ms',
            'ttft_ms_p99',
            'tpot_ms',
            'tpot_ms_p99',
            'tokens_per_s_per_gpu',
            'stable',
        ],
        rows: p.points.map(([n, s]) => [
            n,
            s['ttft_ms'],
            s['ttft_ms_p99'],
            s['tpot_ms'],
            s['tpot_ms_p99'],
            s.tokens_per_s_per_gpu,
            s.stable,
        ]),
    });
    const pareto: Curve = {
        name: 'loads',
        dots: true,
        points: p.points
            .filter(([, s]) => at(s, 'tpot_ms') > 0)
            .map(([n, s]) => ({
                x: 1000 / at(s, 'tpot_ms'),
                y: s.tokens_per_s_per_gpu,
                hollow: !s.stable,
                note: `${n} ${name}`,
            })),
    };
    const slo = { ttft: Number(p.is['slo_ttft']), tpot: Number(p.is['slo_tpot']) };
    return (
        <>
            <Card
                name="tpot"
                title="Time per token over the load"
                note={p.busy ? 'asking …' : 'band: interval'}
                table={table}
            >
                <Curves
                    name="tpot"
                    label={`Time per output token over ${name}`}
                    x={name}
                    y="TPOT, ms"
                    logX
                    curves={[curve('TPOT', 'tpot')]}
                    at={p.here}
                    {...(slo.tpot > 0 ? { limit: { y: slo.tpot, name: `objective ${slo.tpot} ms` } } : {})}
                />
            </Card>
            <Card
                name="ttft"
                title="First token over the load"
                note={p.busy ? 'asking …' : 'band: interval'}
                table={table}
            >
                <Curves
                    name="ttft"
                    label={`Time to first token over ${name}`}
                    x={name}
                    y="TTFT, ms"
                    logX
                    logY
                    curves={[curve('TTFT', 'ttft')]}
                    at={p.here}
                    {...(slo.ttft > 0 ? { limit: { y: slo.ttft, name: `objective ${slo.ttft} ms` } } : {})}
                />
            </Card>
            <Card name="pareto" title="Throughput against speed" note="each point a load" table={table}>
                <Curves
                    name="pareto"
                    label="Tokens per second per GPU over tokens per second per client"
                    x="tokens/s of a client"
                    y="tokens/s of a GPU"
                    curves={[pareto]}
                />
            </Card>
        </>
    );
}

const courseTable = async (of: Request): Promise<Table> => {
    const found = await ask<Serve>({ ...of, course: true });
    const rows = found.ok ? (found.course ?? []) : [];
    return {
        head: ['ms', 'waiting', 'running', 'cache_share'],
        rows: rows.map((m) => [m.ms, m.waiting, m.running, m.cache_share]),
    };
};
const requestsTable = async (of: Request): Promise<Table> => {
    const found = await ask<Serve>({ ...of, per_request: true });
    const rows = found.ok ? (found.per_request ?? []) : [];
    return {
        head: ['sent_ms', 'ttft_ms', 'tpot_ms', 'e2e_ms'],
        rows: rows.map((r) => [r.sent_ms, r.ttft_ms, r.tpot_ms, r.e2e_ms]),
    };
};

/** The library's pictures of the load, those of its reports: how long requests take, how fast tokens come, queue and cache. */
export function UnderLoad(p: { a: Serve; of: Request }): JSX.Element {
    const cards = [
        ...(p.a.stable ? [['waits', 'How long requests take', 'share done by then', true] as const] : []),
        ['tokens', 'How fast tokens come', 'share of requests, and of gaps', true] as const,
        ['queue', 'Requests over time', '', false] as const,
        ['cache', 'The cache over time', '', false] as const,
    ];
    return (
        <>
            {cards.map(([name, title, note, requests]) => (
                <Card
                    key={name}
                    name={name}
                    title={title}
                    note={note}
                    table={() => (requests ? requestsTable(p.of) : courseTable(p.of))}
                >
                    <Drawn name={name} of={p.of} spec={{ what: name }} hint={nearest} />
                </Card>
            ))}
        </>
    );
}

interface Row {
    name: string;
    key: string;
    a: Serve;
}
export const timeRows = (a: Serve): Row[] =>
    [
        ['TTFT', 'ttft'],
        ['TPOT', 'tpot'],
        ['ITL', 'itl'],
        ['E2E', 'e2e'],
    ]
        .map(([name, key]) => ({ name: name!, key: key!, a }))
        .filter((r) => Number.isFinite(at(a, `${r.key}_ms`)));
const cell =
    (suffix: string) =>
    (r: Row): number =>
        at(r.a, `${r.key}_${suffix}`);
export const timeColumns: readonly Column<Row>[] = [
    { name: 'Time', key: 'what', cell: (r) => <b>{r.name}</b>, by: (r) => r.name },
    ...(
        [
            ['mean', 'ms'],
            ['low', 'low_ms'],
            ['high', 'high_ms'],
            ['p50', 'ms_p50'],
            ['p90', 'ms_p90'],
            ['p95', 'ms_p95'],
            ['p99', 'ms_p99'],
        ] as const
    ).map(
        ([name, suffix]): Column<Row> => ({
            name,
            key: suffix,
            cell: (r) => figure(cell(suffix)(r)),
            by: cell(suffix),
            number: true,
        }),
    ),
];
