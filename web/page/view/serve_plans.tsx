// Plans for serving: which layout, how many engines, apart or together meet the objectives. A plan is asked for where
// there are some.
import type { JSX } from 'preact';
import type { Request } from '../answers';
import { useAnswer } from '../ask';
import type { Words } from '../form/fields';
import { figure, interval, ms, percent, plural, whole } from '../format';
import { Card, Copy, Sortable, tableOf, Wrong, type Column } from '../parts';
import { value } from '../request';
import { change } from '../state';
import { laidOut, Launch } from './launch';
import { layoutWords } from './plan';

type Axes = { [axis: string]: unknown };
export interface Way {
    fits?: boolean;
    parallel?: Axes;
    disaggregated?: { prefill: Axes; decode: Axes };
    replicas?: number;
    max_num_seqs?: number;
    max_num_batched_tokens?: number;
    gpus?: number;
    rate?: number;
    slo_share?: number;
    ttft_ms?: number;
    ttft_low_ms?: number;
    ttft_high_ms?: number;
    tpot_ms?: number;
    tpot_low_ms?: number;
    tpot_high_ms?: number;
    tokens_per_s_per_gpu?: number;
    energy?: { joules_per_token: number; kwh_per_million_tokens: number };
    loses_by?: string;
    request?: Request;
    launch?: { [engine: string]: string };
}
interface ServePlan {
    ok: true;
    objective: string;
    candidates: number;
    simulations: number;
    fits: boolean;
    plans: Way[];
    losers: Way[];
    least_gpus?: number;
}

const engines = (n: unknown, axes: Axes): string => {
    const layout = layoutWords(axes);
    return Number(n ?? 1) > 1 ? `${String(n)} × ${layout}` : layout;
};
export const wayWords = (w: Way): string =>
    w.fits === false
        ? '–'
        : w.disaggregated
        ? `prompts ${engines(w.disaggregated.prefill['workers'], w.disaggregated.prefill)}; answers ${engines(w.disaggregated.decode['workers'], w.disaggregated.decode)}`
        : engines(w.replicas, w.parallel ?? {});
const lost: { [why: string]: string } = {
    memory: 'it does not fit',
    ttft: 'first tokens come too late',
    tpot: 'tokens come too slowly',
    e2e: 'answers take too long',
    gpus: 'more GPUs than there may be',
    more_gpus: 'it takes more GPUs',
};

const within = (v: number, low = 0, high = 0): JSX.Element => (
    <>
        {ms(v)}
        <small class="quiet under">{interval(low, high, v)}</small>
    </>
);

export const servedColumns: readonly Column<Way>[] = [
    { name: 'Engines', key: 'layout', cell: (w) => wayWords(w), by: (w) => wayWords(w) },
    { name: 'GPUs', key: 'gpus', cell: (w) => whole(w.gpus ?? NaN), by: (w) => w.gpus ?? 0, number: true },
    { name: 'Requests/s', key: 'rate', cell: (w) => figure(w.rate ?? NaN), by: (w) => w.rate ?? 0, number: true },
    {
        name: 'TTFT',
        key: 'ttft_ms',
        cell: (w) => (w.ttft_ms === undefined ? '–' : within(w.ttft_ms, w.ttft_low_ms, w.ttft_high_ms)),
        by: (w) => w.ttft_ms ?? Infinity,
        number: true,
    },
    {
        name: 'TPOT',
        key: 'tpot_ms',
        cell: (w) => (w.tpot_ms === undefined ? '–' : within(w.tpot_ms, w.tpot_low_ms, w.tpot_high_ms)),
        by: (w) => w.tpot_ms ?? Infinity,
        number: true,
    },
    {
        name: 'Kept',
        key: 'slo_share',
        cell: (w) => (w.slo_share === undefined ? '–' : percent(w.slo_share)),
        by: (w) => w.slo_share ?? 0,
        number: true,
    },
    {
        name: 'Tokens/s/GPU',
        key: 'tokens_per_s_per_gpu',
        cell: (w) => figure(w.tokens_per_s_per_gpu ?? NaN),
        by: (w) => w.tokens_per_s_per_gpu ?? 0,
        number: true,
    },
];

/** What an engine that prefills or decodes is given. */
const side = (axes: Axes): Axes =>
    Object.fromEntries(Object.entries(axes).filter(([k, n]) => k === 'workers' || Number(n) > 1));

/** The settings of a plan, as the form has them. */
export function servedWords(w: Way): { [key: string]: string } {
    const axis = (k: string): string => (Number(w.parallel?.[k] ?? 1) > 1 ? String(w.parallel![k]) : '');
    const apart = w.disaggregated && { prefill: side(w.disaggregated.prefill), decode: side(w.disaggregated.decode) };
    return {
        tp: axis('tp'),
        ep: axis('ep'),
        replicas: (w.replicas ?? 1) > 1 ? String(w.replicas) : '',
        routing: (w.replicas ?? 1) > 1 ? String(w.request?.['routing'] ?? 'least_loaded') : '', // as plans are judged
        disaggregated: apart ? JSON.stringify(apart) : '',
        max_num_seqs: w.max_num_seqs ? String(w.max_num_seqs) : '',
        max_num_batched_tokens: w.max_num_batched_tokens ? String(w.max_num_batched_tokens) : '',
        simulated: w.request?.['requests'] ? String(w.request['requests']) : '',
        warmup: w.request?.['warmup'] ? String(w.request['warmup']) : '',
        ...(w.rate ? { load: 'rate', rate: String(+w.rate.toPrecision(6)) } : {}),
    };
}

/** The best ways to meet the objectives; null where none is given. */
export function planServeRequest(is: Words, base: Request): Request | null {
    if (base['slo'] === undefined) return null;
    const parallel = base['parallel'] as Axes | undefined,
        rest = { ...base };
    for (const searched of ['replicas', 'routing', 'disaggregated', 'requests', 'warmup', 'parallel', 'max_num_seqs'])
        delete rest[searched];
    delete rest['max_num_batched_tokens'];
    return {
        ...rest,
        task: 'plan_serve',
        gpus: Number(is['gpus']) || 8 * (Number(parallel?.['tp']) || 1),
        top: 5,
        ...(is['load'] === 'rate' ? { rate: value('rate', is['rate'] ?? '4') } : {}),
        ...(typeof rest['engine'] === 'string' ? { emit: [rest['engine']] } : {}),
    };
}

export function ServePlans(p: { is: Words; request: Request | null }): JSX.Element {
    const slo = p.request !== null,
        most = Number(p.request?.['gpus'] ?? 0);
    const asked = useAnswer<ServePlan>(p.request, true);
    const a = slo ? asked.answer : null;
    const started = a ? laidOut(a.plans, servedWords, p.is) : undefined;
    const columns: readonly Column<Way>[] = [
        ...servedColumns,
        {
            name: 'Use',
            key: 'apply',
            cell: (w) => (
                <span class="tools">
                    <button onClick={() => change(servedWords(w))} aria-label={`Serve it so: ${wayWords(w)}`}>
                        Apply
                    </button>
                    <Copy
                        text={() => Object.values(w.launch ?? {})[0] ?? JSON.stringify(w.request)}
                        label={`Copy what starts: ${wayWords(w)}`}
                    >
                        Copy
                    </Copy>
                </span>
            ),
        },
    ];
    return (
        <>
            <Card
                name="plans"
                title="Plans that meet the objectives"
                wide="whole"
                picture={false}
                note={
                    a
                        ? `${a.objective === 'gpus' ? 'fewest GPUs' : 'most requests'}, ${plural(most, 'GPU')} at most; ${whole(a.candidates)} ways in ${whole(a.simulations)} simulations`
                        : slo && asked.busy
                          ? 'searching …'
                          : ''
                }
                table={tableOf(servedColumns, a?.plans ?? [])}
            >
                {!slo && <p class="quiet">Give an objective among the settings, and the best ways to keep it are searched.</p>}
                {slo && <Wrong error={asked.error} />}
                {a && !a.fits && (
                    <p class="note wrong">
                        Nothing keeps them on {plural(most, 'GPU')}
                        {a.least_gpus ? `; ${plural(a.least_gpus, 'GPU')} would do` : ''}.
                    </p>
                )}
                {!!a?.plans.length && <Sortable columns={columns} rows={a.plans} label="Plans for serving" />}
                {!!a?.losers.length && (
                    <details class="more">
                        <summary>Why not others</summary>
                        <ul class="plainlist">
                            {a.losers.slice(0, 8).map((w, i) => (
                                <li key={i}>
                                    {wayWords(w)}, {plural(w.gpus ?? 1, 'GPU')}: {lost[w.loses_by ?? ''] ?? w.loses_by}
                                </li>
                            ))}
                        </ul>
                    </details>
                )}
            </Card>
            {started?.launch && <Launch is={p.is} of={wayWords(started)} files={started.launch} wide="whole" />}
        </>
    );
}
