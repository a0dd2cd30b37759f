// The plan that would be best on so many GPUs, those behind it, and why not others.
import type { JSX } from 'preact';
import type { Request } from '../answers';
import { Curves } from '../chart/curves';
import type { Words } from '../form/fields';
import { figure, gib, interval, joules, ms, percent, plural, time, whole } from '../format';
import { Card, Figure, Sortable, tableOf, Warnings, type Column } from '../parts';
import { request, value, words } from '../request';
import { laidOut, Launch, type Launches } from './launch';

type Axes = { [axis: string]: unknown };
export interface Plan {
    parallel: Axes;
    batch: number;
    micro_batches: number;
    recompute: string;
    step_ms: number;
    low_ms?: number;
    high_ms?: number;
    mfu?: number;
    tokens_per_s_per_gpu?: number;
    memory?: { peak_bytes: number; reserved_bytes: number; capacity_bytes: number; fits: boolean };
    energy?: { joules_per_step: number; low_joules: number; high_joules: number; tokens_per_joule?: number };
    chance_best?: number;
    request?: Request;
    launch?: Launches;
    behind_ms?: number;
    causes?: { part: string; change_ms: number }[];
    short_bytes?: number;
    remedy?: string;
}
export interface Plans {
    ok: true;
    framework: string;
    candidates: number;
    fit: number;
    tight: number;
    too_large: number;
    forecast: number;
    proof?: string;
    fits: boolean;
    least_gpus?: number;
    plans: Plan[];
    runners_up?: Plan[];
    would_fit?: Plan[];
    pareto?: Plan[];
    sensitivity?: { what: string; best_plan: number; step_ms: number[] }[];
    warnings?: string[];
}
/** The best plan of a number of GPUs. */
interface OfGpus extends Partial<Plan> {
    gpus: number;
    fits: boolean;
    front?: boolean;
}
export interface Numbers {
    ok: true;
    by_gpus?: OfGpus[];
}
export const layoutWords = (p: Axes): string =>
    ['tp', 'pp', 'vpp', 'cp', 'ep', 'dp']
        .filter((k) => Number(p[k] ?? 1) > 1)
        .map((k) => `${k} ${String(p[k])}`)
        .concat(Number(p['zero'] ?? 0) > 0 ? [`zero ${String(p['zero'])}`] : [], p['sp'] ? ['sp'] : [])
        .join(', ') || 'one GPU';

/** With what else tells two ways apart that have one layout. */
const wayWords = (q: Pick<Plan, 'parallel' | 'batch' | 'recompute'>): string =>
    `${layoutWords(q.parallel)}, batch ${q.batch}${q.recompute === 'none' ? '' : `, recompute ${q.recompute}`}`;

/** What the page is set to where somebody takes a plan. */
export function planWords(q: Plan): { [key: string]: string } {
    const said = words(q.request ?? { parallel: q.parallel, batch: q.batch, recompute: q.recompute });
    const clear = Object.fromEntries(
        ['tp', 'pp', 'vpp', 'cp', 'ep', 'dp', 'zero', 'sp', 'schedule', 'recompute', 'overlap', 'tp_overlap']
            .concat(['etp', 'reduce_dtype', 'gather_dtype', 'bucket_mib', 'gather', 'expert_dispatch', 'expert_overlap'])
            .map((k) => [k, '']),
    );
    for (const k of ['task', 'model', 'gpu']) delete said[k];
    for (const k of ['tp', 'pp', 'vpp', 'cp', 'ep', 'dp']) if (said[k] === '1') said[k] = '';
    if (said['zero'] === '0') said['zero'] = '';
    if (said['sp'] === 'false') said['sp'] = '';
    if (said['schedule'] === '1f1b' || said['schedule'] === 'interleaved') said['schedule'] = '';
    if (said['recompute'] === 'none') said['recompute'] = '';
    return { ...clear, ...said };
}

export const ranksOf = (is: Words): number => ['tp', 'pp', 'cp', 'dp'].reduce((n, k) => n * (Number(is[k]) || 1), 1);

export function planRequest(is: Words): Request {
    const gpus = is['gpus'] ? value('gpus', is['gpus']) : ranksOf(is) > 1 ? ranksOf(is) : 64;
    const out = request(
        'plan',
        is,
        ['seq', 'dtype', 'optimizer', 'master_weights'].filter((k) => is[k]),
    );
    out['gpus'] = gpus;
    out['global_batch'] = is['global_batch'] ? value('global_batch', is['global_batch']) : 4 * (Number(gpus) || 1);
    if (is['framework']) out['framework'] = is['framework'];
    if (is['least']) out['objective'] = is['least'];
    if (is['margin']) out['constraints'] = { memory_margin: Number(is['margin']) };
    if (is['interconnect']) out['cluster'] = { interconnect: is['interconnect'] };
    return { ...out, top: 8, emit: ['all'] };
}

/** The same on fewer and on more GPUs. */
export function numbersRequest(plan: Request): Request {
    const { emit: _, ...rest } = plan;
    return { ...rest, top: 1, by_gpus: true };
}

/** What the allocator holds: by that a plan fits or not, and is on the front. */
const held = (q: Plan): number => q.memory?.reserved_bytes ?? 0;

const why = (q: Plan): string =>
    (q.causes ?? []).map((c) => `${c.part} ${c.change_ms > 0 ? '+' : '\u2212'}${ms(Math.abs(c.change_ms))}`).join(', ');

/** Time against GPUs: what more of them would save. */
function AgainstGpus(p: { rows: readonly OfGpus[] }): JSX.Element {
    const fit = p.rows.filter((q) => q.fits),
        none = p.rows.filter((q) => !q.fits).map((q) => whole(q.gpus));
    return (
        <Card
            name="numbers"
            title="Time against GPUs"
            note={`the best plan of each number${none.length ? `; nothing fits on ${none.join(', ')}` : ''}`}
            table={() => ({
                head: ['gpus', 'fits', 'layout', 'step_ms', 'tokens_per_s_per_gpu', 'front'],
                rows: p.rows.map((q) => [
                    q.gpus,
                    q.fits,
                    q.parallel ? layoutWords(q.parallel) : '',
                    q.step_ms,
                    q.tokens_per_s_per_gpu,
                    q.front,
                ]),
            })}
        >
            <Curves
                name="numbers"
                rings="rings: fewer are as fast"
                label="Step time over GPUs"
                x="GPUs"
                y="step, s"
                logX
                logY
                curves={[
                    {
                        name: 'plans',
                        dots: true,
                        points: fit.map((q) => ({
                            x: q.gpus,
                            y: (q.step_ms ?? NaN) / 1e3,
                            hollow: !q.front,
                            note: `${wayWords(q as Plan)}; ${figure(q.tokens_per_s_per_gpu ?? 0)} tokens/s/GPU`,
                        })),
                    },
                ]}
            />
        </Card>
    );
}

export function PlanCards(p: {
    is: Words;
    of: Plans;
    request: Request;
    numbers: Numbers | null;
    busy: boolean;
    apply: (q: Plan) => void;
}): JSX.Element {
    const { of } = p,
        best = of.plans[0],
        started = laidOut(of.plans, planWords, p.is),
        numbers = p.numbers?.by_gpus ?? [],
        by = p.request['objective'];
    const columns: readonly Column<Plan>[] = [
        { name: 'Layout', key: 'layout', cell: (q) => layoutWords(q.parallel), by: (q) => layoutWords(q.parallel) },
        { name: 'Batch', key: 'batch', cell: (q) => q.batch, by: (q) => q.batch, number: true },
        { name: 'Recompute', key: 'recompute', cell: (q) => q.recompute, by: (q) => q.recompute },
        { name: 'Step', key: 'step_ms', cell: (q) => ms(q.step_ms, 4), by: (q) => q.step_ms, number: true },
        {
            name: 'Interval',
            key: 'low_ms',
            cell: (q) => interval(q.low_ms ?? 0, q.high_ms ?? 0, q.step_ms),
            by: (q) => q.low_ms ?? 0,
            number: true,
        },
        { name: 'MFU', key: 'mfu', cell: (q) => percent(q.mfu ?? 0, 3), by: (q) => q.mfu ?? 0, number: true },
        {
            name: 'Peak',
            key: 'peak_bytes',
            cell: (q) => gib(q.memory?.peak_bytes ?? 0),
            by: (q) => q.memory?.peak_bytes ?? 0,
            number: true,
        },
        {
            name: 'Energy',
            key: 'joules_per_step',
            cell: (q) => (q.energy ? joules(q.energy.joules_per_step) : ''),
            by: (q) => q.energy?.joules_per_step ?? 0,
            number: true,
        },
        {
            name: 'Best with',
            key: 'chance_best',
            cell: (q) => percent(q.chance_best ?? 0),
            by: (q) => q.chance_best ?? 0,
            number: true,
        },
        {
            name: 'Use',
            key: 'apply',
            cell: (q) => (
                <button onClick={() => p.apply(q)} aria-label={`Lay it out so: ${wayWords(q)}`}>
                    Apply
                </button>
            ),
        },
    ];
    const t = best ? time(best.step_ms, 4) : null;
    const lesser = [
        ...(of.runners_up ?? []).map((q) => ({ q, text: `${ms(q.behind_ms ?? 0)} behind: ${why(q)}` })),
        ...(of.would_fit ?? []).map((q) => ({
            q,
            text: `would take ${ms(q.step_ms, 4)}, but lacks ${gib(q.short_bytes ?? 0)}${q.remedy ? `; ${q.remedy} fits` : ''}`,
        })),
    ];
    return (
        <section aria-label="Plan" class={`plan ${p.busy ? 'stale' : ''}`}>
            <div class="title">
                <h1>Plan for {whole(Number(p.request['gpus']))} GPUs</h1>
                <span class="quiet">
                    {of.framework}, global batch {whole(Number(p.request['global_batch']))}: {whole(of.candidates)}{' '}
                    layouts, {whole(of.forecast)} forecast, {whole(of.too_large)} too large
                    {of.proof === 'optimal' ? '; nothing that was left out can be better' : ''}
                </span>
            </div>
            <Warnings lines={of.warnings} />
            {!of.fits && (
                <p class="note wrong">
                    Nothing fits{of.least_gpus ? `; ${plural(of.least_gpus, 'GPU')} would do` : ''}.
                </p>
            )}
            {best && t && (
                <dl class="figures">
                    <Figure
                        name="best layout"
                        value={layoutWords(best.parallel)}
                        remark={`batch ${best.batch}, ${plural(best.micro_batches, 'micro-batch', 'micro-batches')}, recompute ${best.recompute}`}
                    />
                    <Figure
                        name="step"
                        value={t.value}
                        unit={t.unit}
                        remark={interval(best.low_ms ?? 0, best.high_ms ?? 0, best.step_ms)}
                    />
                    <Figure
                        name="model FLOP utilisation"
                        value={percent(best.mfu ?? 0, 3)}
                        remark={`${figure(best.tokens_per_s_per_gpu ?? 0)} tokens/s/GPU`}
                    />
                    <Figure
                        name="chance that it is the best"
                        value={percent(best.chance_best ?? 0)}
                        remark="given how sure the forecasts are"
                    />
                </dl>
            )}
            <div class="grid">
                {!!of.plans.length && (
                    <Card
                        name="plans"
                        title="Best plans"
                        wide="double"
                        picture={false}
                        table={tableOf(columns.slice(0, -1), of.plans)}
                    >
                        <Sortable columns={columns} rows={of.plans} label="Best plans" />
                    </Card>
                )}
                {!!of.pareto?.length && (
                    <Card
                        name="pareto"
                        title="Time against memory"
                        note={`what nothing beats in both${by === 'energy' ? ', or draws less' : ''}`}
                        table={() => ({
                            head: ['layout', 'step_ms', 'reserved_bytes', 'peak_bytes'],
                            rows: of.pareto!.map((q) => [
                                wayWords(q),
                                q.step_ms,
                                q.memory?.reserved_bytes,
                                q.memory?.peak_bytes,
                            ]),
                        })}
                    >
                        <Curves
                            name="pareto"
                            label="Step time over reserved memory"
                            x="reserved, GiB"
                            y="step, s"
                            zero={false}
                            curves={[
                                {
                                    name: 'plans',
                                    dots: true,
                                    line: by !== 'energy',
                                    points: [...of.pareto]
                                        .sort((x, y) => held(x) - held(y) || y.step_ms - x.step_ms)
                                        .map((q) => ({
                                            x: held(q) / 2 ** 30,
                                            y: q.step_ms / 1e3,
                                            note: wayWords(q),
                                        })),
                                },
                            ]}
                        />
                    </Card>
                )}
                {numbers.some((q) => q.fits) && <AgainstGpus rows={numbers} />}
                {started?.launch && (
                    <Launch is={p.is} of={wayWords(started)} files={started.launch} wide="ample" />
                )}
                {!!lesser.length && (
                    <Card
                        name="whynot"
                        title="Why not"
                        wide="ample"
                        picture={false}
                        table={() => ({
                            head: ['layout', 'step_ms', 'why'],
                            rows: lesser.map(({ q, text }) => [wayWords(q), q.step_ms, text]),
                        })}
                    >
                        <ul class="changes">
                            {lesser.map(({ q, text }, i) => (
                                <li key={i}>
                                    <div>
                                        <b>{wayWords(q)}</b>
                                        <p>{text}</p>
                                    </div>
                                    <button
                                        onClick={() => p.apply(q)}
                                        aria-label={`Lay it out so: ${wayWords(q)}`}
                                    >
                                        Apply
                                    </button>
                                </li>
                            ))}
                            {(of.sensitivity ?? []).map((s) => (
                                <li key={s.what}>
                                    <div>
                                        <b>With {s.what}</b>
                                        <p>
                                            plan {s.best_plan + 1} is best, {ms(s.step_ms[s.best_plan] ?? 0, 4)}
                                        </p>
                                    </div>
                                </li>
                            ))}
                        </ul>
                    </Card>
                )}
            </div>
        </section>
    );
}
