// Which GPUs a training run should rent, and how many: days against dollars. For serving: choose_serve.tsx.
import type { JSX } from 'preact';
import type { Request } from '../answers';
import { ask, useAnswer } from '../ask';
import type { Catalogue } from '../catalogue';
import { modelName } from '../catalogue';
import { Curves, type Curve } from '../chart/curves';
import { Choice, Group, Slider, Text, powers, type Words } from '../form/fields';
import { dtypes } from '../form/step_form';
import { ModelField } from '../form/subject';
import { count, figure, ms, percent, plural, whole } from '../format';
import { Card, Figure, Sortable, tableOf, Warnings, Wrong, type Column } from '../parts';
import { read, request, value } from '../request';
import { Same } from '../same';
import { change } from '../state';
import { ServedForm, ServedView } from './choose_serve';
import { layoutWords, planWords, type Plans } from './plan';
import { CountsGroup, hourly, offerWords, Others, RentGroup, rentKeys, verdictWords, type Rented } from './rent';

interface Choosable extends Rented {
    gpus: number;
    fits: boolean;
    parallel?: { [axis: string]: unknown };
    batch?: number;
    recompute?: string;
    step_ms?: number;
    mfu?: number;
    days?: number;
    low_days?: number;
    high_days?: number;
    gpu_hours?: number;
    usd?: number;
    low_usd?: number;
    high_usd?: number;
    kwh?: number;
    co2_kg?: number;
    goodput?: {
        useful: number;
        restarts: number;
        save_every_s?: number;
        checkpoint_gb?: number;
        least_storage_gbps?: number;
    };
}
interface Choosing {
    ok: true;
    objective: string;
    tokens: number;
    steps: number;
    tokens_per_step: number;
    found: boolean;
    chosen?: Choosable;
    choices: Choosable[];
    knee?: { gpu: string; gpus: number; days: number; dollars: number };
    least_gpus?: number; // where nothing fits
    least_gpu?: string;
    warnings?: string[];
}

const uses = [
    ['', 'training'],
    ['serve', 'serving'],
    ['infer', 'a batch job'],
] as const;

export function ChooseForm(p: { is: Words; of: Catalogue }): JSX.Element {
    const served = p.of.tasks.has('choose_serve') && p.is['use'];
    return (
        <>
            {p.of.tasks.has('choose_serve') && (
                <Group name="What for">
                    <Choice name="GPUs for" of="use" is={p.is} words={uses} />
                </Group>
            )}
            {served ? <ServedForm is={p.is} of={p.of} /> : <TrainedForm is={p.is} of={p.of} />}
        </>
    );
}

export function ChooseView(p: { is: Words; of: Catalogue }): JSX.Element {
    const served = p.of.tasks.has('choose_serve') && p.is['use'];
    return served ? <ServedView is={p.is} of={p.of} /> : <TrainedView is={p.is} of={p.of} />;
}

function TrainedForm(p: { is: Words; of: Catalogue }): JSX.Element {
    const { is } = p;
    return (
        <>
            <Group name="The run">
                <ModelField is={is} of={p.of} />
                <Slider
                    name="Tokens"
                    of="tokens"
                    is={is}
                    by={1e12}
                    stops={[1e9, 1e10, 5e10, 1e11, 2e11, 5e11, 1e12, 2e12, 5e12, 1e13, 1.5e13, 3e13]}
                    hint="of the whole run"
                />
                <Slider name="Sequence" of="seq" is={is} by={4096} stops={powers(512, 131072)} unit="tokens" />
                <Choice name="Precision" of="dtype" is={is} words={dtypes} />
            </Group>
            <RentGroup is={is} kinds="a100 80, h100, h200, b200" several />
            <CountsGroup is={is} bounded>
                <Text
                    name="Failures"
                    of="failures"
                    is={is}
                    placeholder="4e-3"
                    hint="per node and day; none: nothing fails"
                />
            </CountsGroup>
        </>
    );
}

function chooseRequest(is: Words): Request {
    const { gpu: _, ...out } = request(
        'choose',
        is,
        ['seq', 'dtype'].filter((k) => is[k]),
    );
    out['tokens'] = value('tokens', is['tokens'] ?? '1e12');
    out['gpus'] = is['range'] || '8:512';
    const failures = is['failures'];
    if (failures) out['failures'] = Number.isFinite(Number(failures)) ? { rate: Number(failures) } : failures;
    return { ...out, ...rentKeys(is, true) };
}

const dollars = (usd: number): string => `$${count(usd).replace(' k', '\u202fk').replace(' M', '\u202fM')}`;
const columns: readonly Column<Choosable>[] = [
    { name: 'GPUs', key: 'gpus', cell: (c) => whole(c.gpus), by: (c) => c.gpus, number: true },
    { name: 'Kind', key: 'gpu', cell: (c) => c.gpu, by: (c) => c.gpu },
    { name: 'Why', key: 'verdict', cell: verdictWords, by: verdictWords, wrap: true },
    { name: 'Days', key: 'days', cell: (c) => show(c.days), by: (c) => c.days ?? Infinity, number: true },
    {
        name: 'Interval',
        key: 'low_days',
        cell: (c) => (c.low_days !== undefined ? `${figure(c.low_days)}–${figure(c.high_days ?? 0)}` : ''),
        by: (c) => c.low_days ?? Infinity,
        number: true,
    },
    {
        name: 'Dollars',
        key: 'usd',
        cell: (c) => (c.usd !== undefined ? dollars(c.usd) : '–'),
        by: (c) => c.usd ?? Infinity,
        number: true,
    },
    {
        name: '$/GPU/h',
        key: 'usd_per_gpu_hour',
        cell: (c) => show(hourly(c.price)),
        by: (c) => hourly(c.price) ?? Infinity,
        number: true,
    },
    {
        name: 'From',
        key: 'provider',
        cell: (c) => offerWords(c.price),
        by: (c) => offerWords(c.price),
    },
    {
        name: 'Layout',
        key: 'layout',
        cell: (c) => (c.parallel ? layoutWords(c.parallel) : ''),
        by: (c) => (c.parallel ? layoutWords(c.parallel) : ''),
    },
    { name: 'MFU', key: 'mfu', cell: (c) => (c.mfu ? percent(c.mfu, 3) : ''), by: (c) => c.mfu ?? 0, number: true },
    { name: 'MWh', key: 'mwh', cell: (c) => (c.kwh ? figure(c.kwh / 1e3) : ''), by: (c) => c.kwh ?? 0, number: true },
    {
        name: 'CO2, t',
        key: 'co2_kg',
        cell: (c) => (c.co2_kg ? figure(c.co2_kg / 1e3) : ''),
        by: (c) => c.co2_kg ?? 0,
        number: true,
    },
];
const show = (v: number | undefined): string => (v === undefined ? '–' : figure(v));

/** Why there is none, and what would be nearest. */
function none(a: Choosing): string {
    const done = a.choices.filter((c) => c.days !== undefined && c.usd !== undefined);
    const least = (by: (c: Choosable) => number): Choosable => done.reduce((x, y) => (by(y) < by(x) ? y : x));
    const said = (c: Choosable): string =>
        `${whole(c.gpus)} × ${c.gpu}, ${show(c.days)} days, ${dollars(c.usd ?? 0)}`;
    if (done.length)
        return `None meets deadline and budget. The quickest: ${said(least((c) => c.days!))}; the cheapest: ${said(least((c) => c.usd!))}.`;
    const would = a.least_gpus ? ` ${whole(a.least_gpus)} × ${a.least_gpu ?? ''} would hold it.` : '';
    return `None of them can be taken: the table says why.${would}`;
}

function saves(c: Choosable): string {
    const g = c.goodput;
    if (!g) return '';
    const every = g.save_every_s ? `; ${figure(g.checkpoint_gb ?? 0)} GB saved every ${ms(1e3 * g.save_every_s)}` : '';
    const storage = g.least_storage_gbps ? ` by ${figure(g.least_storage_gbps)} GB/s or more` : '';
    return `${figure(g.restarts)} restarts expected${every}${storage}`;
}

/** The plan behind a choice, as the layout view has it: asked again, since a choice does not say its whole request. */
async function layOut(p: { is: Words; of: Catalogue }, a: Choosing, best: Choosable): Promise<void> {
    const longest = p.of.models.find((m) => m.name === read(p.is, 'model'))?.max_position ?? 4096;
    const seq = Number(p.is['seq']) || Math.min(longest, 4096);
    const job = request(
        'plan',
        { ...p.is, gpu: best.gpu },
        ['seq', 'dtype'].filter((k) => p.is[k]),
    );
    const found = await ask<Plans>({
        ...job,
        gpus: best.gpus,
        global_batch: Math.round(a.tokens_per_step / seq),
        top: 1,
    });
    const plan = found.ok ? found.plans[0] : undefined;
    change({ ...(plan ? planWords(plan) : {}), gpu: best.gpu, gpus: String(best.gpus) }, 'layout');
}

function TrainedView(p: { is: Words; of: Catalogue }): JSX.Element {
    const asked = useAnswer<Choosing>(chooseRequest(p.is));
    const a = asked.answer,
        best = a?.chosen;
    const kinds = [...new Set(a?.choices.map((c) => c.gpu) ?? [])];
    const priced = (a?.choices ?? []).filter((c) => c.usd !== undefined && c.days !== undefined);
    const curves: Curve[] = kinds.map((name) => ({
        name,
        dots: true,
        points: priced
            .filter((c) => c.gpu === name)
            .sort((x, y) => x.gpus - y.gpus)
            .map((c) => ({
                x: c.days!,
                y: c.usd!,
                ...(c.low_usd !== undefined && c.high_usd !== undefined ? { low: c.low_usd, high: c.high_usd } : {}),
                hollow: !c.front,
                note: `${whole(c.gpus)} × ${c.gpu}${c.knee ? ', the knee' : ''}${c.front ? '' : ', not on the front'}`,
            })),
    }));
    return (
        <>
            <div class="title">
                <h1>
                    {modelName(read(p.is, 'model'))} on {count(Number(p.is['tokens']) || 1e12)} tokens
                </h1>
                {a && (
                    <span class="quiet">
                        {plural(a.steps, 'step')} of {count(a.tokens_per_step)} tokens
                    </span>
                )}
            </div>
            <Wrong error={asked.error} />
            {asked.busy && !a && !asked.error && (
                <p class="quiet" role="status">
                    Plans for every kind and number of GPUs are being searched …
                </p>
            )}
            {a && (
                <div class={asked.error ? 'stale' : ''}>
                    <Warnings lines={a.warnings} />
                    {!a.found && <p class="note wrong">{none(a)}</p>}
                    {best && (
                        <dl class="figures">
                            <Figure
                                name="chosen"
                                value={`${whole(best.gpus)} × ${best.gpu}`}
                                remark={best.parallel ? layoutWords(best.parallel) : ''}
                            />
                            <Figure
                                name="days"
                                value={show(best.days)}
                                remark={`${show(best.low_days)}–${show(best.high_days)}`}
                            />
                            <Figure
                                name="dollars"
                                value={dollars(best.usd ?? 0)}
                                remark={`${dollars(best.low_usd ?? 0)}–${dollars(best.high_usd ?? 0)}`}
                            />
                            {hourly(best.price) !== undefined && (
                                <Figure
                                    name="a GPU and hour"
                                    value={`$${figure(hourly(best.price)!)}`}
                                    remark={offerWords(best.price)}
                                />
                            )}
                            <Figure
                                name="time that is work"
                                value={percent(best.goodput?.useful ?? 1, 3)}
                                remark={saves(best)}
                            />
                            <Figure
                                name="energy"
                                value={figure((best.kwh ?? 0) / 1e3)}
                                unit="MWh"
                                remark={`${figure((best.co2_kg ?? 0) / 1e3)} t of CO2`}
                            />
                        </dl>
                    )}
                    <div class="grid">
                        {!!priced.length && (
                            <Card
                                name="front"
                                title="Days against dollars"
                                wide="whole"
                                note="rings: something else is both faster and cheaper"
                                table={tableOf(columns, a.choices)}
                            >
                                <Curves
                                    name="front"
                                    label="Dollars over days"
                                    x="days"
                                    y="dollars"
                                    logX
                                    logY
                                    height={320}
                                    curves={curves}
                                />
                                <Others price={best?.price} />
                                {a.knee && (
                                    <p class="quiet">
                                        The knee of the front: {whole(a.knee.gpus)} × {a.knee.gpu}, {figure(a.knee.days)}{' '}
                                        days, {dollars(a.knee.dollars)}.
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
                            {best && (
                                <button onClick={() => void layOut(p, a, best)}>Lay the chosen one out</button>
                            )}
                        </Card>
                    </div>
                </div>
            )}
            <Same request={asked.request} />
        </>
    );
}
