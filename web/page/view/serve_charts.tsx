// What serving under load looks like: over the load, over requests, over time.
import type { JSX } from 'preact';
import { Curves, type Curve, type Point } from '../chart/curves';
import type { Words } from '../form/fields';
import { figure, ms } from '../format';
import { Card, type Column } from '../parts';

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
                note={p.busy ? 'asking …' : 'band: interval of the mean'}
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
                note={p.busy ? 'asking …' : 'band: interval of the mean'}
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
                    label="Tokens per second of a GPU over tokens per second of a client"
                    x="tokens/s of a client"
                    y="tokens/s of a GPU"
                    curves={[pareto]}
                />
            </Card>
        </>
    );
}

function distribution(values: readonly number[]): Point[] {
    const sorted = values.filter(Number.isFinite).sort((x, y) => x - y),
        most = 160;
    const step = Math.max(1, Math.floor(sorted.length / most));
    return sorted
        .map((x, i) => ({ x, y: (100 * (i + 1)) / sorted.length }))
        .filter((_, i) => i % step === 0 || i === sorted.length - 1);
}

export function Distributions(p: { a: Serve }): JSX.Element | null {
    const rows = p.a.per_request;
    if (!rows?.length) return null;
    const table = () => ({
        head: ['sent_ms', 'ttft_ms', 'tpot_ms', 'e2e_ms'],
        rows: rows.map((r) => [r.sent_ms, r.ttft_ms, r.tpot_ms, r.e2e_ms]),
    });
    return (
        <>
            <Card name="cdf" title="How long requests take" note="share of them that took no longer" table={table}>
                <Curves
                    name="cdf"
                    label="Distribution of first token and whole request"
                    x="ms"
                    y="% of requests"
                    logX
                    curves={[
                        { name: 'first token', points: distribution(rows.map((r) => Math.max(r.ttft_ms, 1e-3))) },
                        { name: 'whole request', points: distribution(rows.map((r) => r.e2e_ms)) },
                    ]}
                />
            </Card>
            <Card name="cdftpot" title="How fast tokens come" note="mean of each request" table={table}>
                <Curves
                    name="cdftpot"
                    label="Distribution of time per output token"
                    x="TPOT, ms"
                    y="% of requests"
                    curves={[{ name: 'TPOT', points: distribution(rows.map((r) => r.tpot_ms ?? NaN)) }]}
                />
            </Card>
        </>
    );
}

export function OverTime(p: { a: Serve }): JSX.Element {
    const c = p.a.course!;
    const table = () => ({
        head: ['ms', 'waiting', 'running', 'cache_share'],
        rows: c.map((m) => [m.ms, m.waiting, m.running, m.cache_share]),
    });
    return (
        <>
            <Card name="queue" title="Requests over time" table={table}>
                <Curves
                    name="queue"
                    label="Requests that run and that wait, over time"
                    x="s"
                    y="requests"
                    curves={[
                        { name: 'running', points: c.map((m) => ({ x: m.ms / 1e3, y: m.running })) },
                        { name: 'waiting', points: c.map((m) => ({ x: m.ms / 1e3, y: m.waiting })) },
                    ]}
                />
            </Card>
            <Card name="cache" title="The cache over time" table={table}>
                <Curves
                    name="cache"
                    label="Share of the cache that is used, over time"
                    x="s"
                    y="% of the cache"
                    curves={[{ name: 'used', points: c.map((m) => ({ x: m.ms / 1e3, y: 100 * m.cache_share })) }]}
                />
            </Card>
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
