// Two or more steps side by side: what was asked differently, what came of it, and why.
import type { JSX } from 'preact';
import type { Request, Step } from '../answers';
import { useAnswer, useAnswers } from '../ask';
import type { Catalogue } from '../catalogue';
import { Bars } from '../chart/bars';
import { StepForm } from '../form/step_form';
import type { Words } from '../form/fields';
import { figure, gib, interval, ms, percent } from '../format';
import { Card, Sortable, tableOf, Wrong, type Column } from '../parts';
import { words } from '../request';
import { Same } from '../same';
import { change } from '../state';
import { most, pin, pins } from './pins';
import { stepRequest } from './step';

interface Cause {
    part: string;
    a_ms: number;
    b_ms: number;
    change_ms: number;
    why?: string;
}
interface KernelChange {
    name: string;
    op: string;
    phase: string;
    block?: string;
    a_launches: number;
    b_launches: number;
    a_ms: number;
    b_ms: number;
    change_ms: number;
}
interface Comparison {
    ok: true;
    asked: { [key: string]: unknown[] };
    answers: {
        name: string;
        ms: number;
        peak_bytes: number;
        speedup?: number;
        change_ms?: number;
        intervals_apart?: boolean;
        work?: number;
        causes?: Cause[];
        kernels?: KernelChange[];
    }[];
}

export function CompareForm(p: { is: Words; of: Catalogue }): JSX.Element {
    return <StepForm is={p.is} of={p.of} />;
}

const short = (r: Request, first: Request | null): string => {
    const said = words(r),
        other = first ? words(first) : {};
    const keys = Object.keys({ ...said, ...other }).filter(
        (k) => !['task', 'detail'].includes(k) && (!first || said[k] !== other[k]),
    );
    return (
        keys
            .map((k) =>
                said[k] === undefined
                    ? `no ${k}`
                    : k === 'model' || k === 'gpu'
                      ? said[k].startsWith('{')
                          ? `own ${k}`
                          : said[k]
                      : `${k} ${said[k]}`,
            )
            .join(', ') || 'the same'
    );
};

export function CompareView(p: { is: Words; of: Catalogue }): JSX.Element {
    const now = stepRequest(p.is),
        kept = pins(p.is).filter((r) => r['task'] === now['task']);
    const all = kept.length ? [...kept, now] : [now];
    const names = all.map((r, i) => (i === 0 ? short(r, null) : short(r, all[0]!)));
    const asked = useAnswer<Comparison>(
        all.length > 1
            ? {
                  task: 'compare',
                  requests: all,
                  names: all.map((_, i) => (i === all.length - 1 ? 'as set now' : `kept ${i + 1}`)),
              }
            : null,
    );
    const steps = useAnswers<Step>(all);
    const c = all.length > 1 ? asked.answer : null;
    const rows = steps.answers
        .map((s, i) => ({ s, i, name: i === all.length - 1 ? 'As set now' : `Kept ${i + 1}` }))
        .filter((r): r is { s: Step; i: number; name: string } => r.s.ok && r.i < all.length);
    const remove = (i: number): void =>
        change({ pins: kept.length > 1 ? JSON.stringify(kept.filter((_, k) => k !== i)) : '' });
    const last = c?.answers[c.answers.length - 1];
    return (
        <>
            <div class="title">
                <h1>Compare</h1>
                <span class="quiet">
                    {kept.length
                        ? 'Change settings: the last row follows, and is set against the first.'
                        : 'Keep what is set, then change it: what differs and why stands here.'}
                </span>
                <span class="tools">
                    <button onClick={() => pin(p.is, now)} disabled={kept.length >= most}>
                        Keep what is set now
                    </button>
                </span>
            </div>
            <Wrong error={asked.error} />
            <div class="grid">
                <Card
                    name="answers"
                    title="Side by side"
                    wide="whole"
                    picture={false}
                    table={() => ({
                        head: ['what', 'settings', 'step_ms', 'low_ms', 'high_ms', 'mfu', 'peak_bytes'],
                        rows: rows.map((r) => [
                            r.name,
                            names[r.i],
                            r.s.step_ms,
                            r.s.low_ms,
                            r.s.high_ms,
                            r.s.mfu,
                            r.s.memory.peak_bytes,
                        ]),
                    })}
                >
                    <div class="scroll" tabIndex={0} role="group" aria-label="Side by side">
                        <table>
                            <thead>
                                <tr>
                                    <th scope="col">Step</th>
                                    <th scope="col" class="wrap">
                                        Settings{all.length > 1 ? ', where they differ from the first' : ''}
                                    </th>
                                    <th scope="col" class="n">
                                        Time
                                    </th>
                                    {all.length > 1 && (
                                        <th scope="col" class="n">
                                            Speed
                                        </th>
                                    )}
                                    <th scope="col" class="n">
                                        MFU
                                    </th>
                                    <th scope="col" class="n">
                                        Peak
                                    </th>
                                    <th scope="col">Bound by</th>
                                    <th scope="col">
                                        <span class="offscreen">Remove</span>
                                    </th>
                                </tr>
                            </thead>
                            <tbody>
                                {rows.map((r) => (
                                    <tr key={r.i}>
                                        <th scope="row">{r.name}</th>
                                        <td class="wrap">{names[r.i]}</td>
                                        <td class="n">
                                            {ms(r.s.step_ms, 4)}
                                            <small class="quiet under">
                                                {interval(r.s.low_ms, r.s.high_ms, r.s.step_ms)}
                                            </small>
                                        </td>
                                        {all.length > 1 && (
                                            <td class="n">
                                                <Speed of={r.i ? c?.answers[r.i] : undefined} />
                                            </td>
                                        )}
                                        <td class="n">{percent(r.s.mfu, 3)}</td>
                                        <td class={`n ${r.s.memory.fits ? '' : 'bad'}`}>
                                            {gib(r.s.memory.peak_bytes)}
                                        </td>
                                        <td>{r.s.regime.bound}</td>
                                        <td>
                                            {r.i < kept.length && (
                                                <button
                                                    class="plain"
                                                    onClick={() => remove(r.i)}
                                                    aria-label={`Remove ${r.name}`}
                                                >
                                                    Remove
                                                </button>
                                            )}
                                        </td>
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                    </div>
                </Card>
                {rows.length > 1 && (
                    <Card
                        name="times"
                        title="Times"
                        table={() => ({ head: ['what', 'step_ms'], rows: rows.map((r) => [r.name, r.s.step_ms]) })}
                    >
                        <Bars
                            name="times"
                            label="Times"
                            rows={rows.map((r) => ({
                                name: r.name,
                                value: r.s.step_ms,
                                look: r.i === all.length - 1 ? 'f0' : 'overhead',
                                text: ms(r.s.step_ms, 4),
                            }))}
                        />
                    </Card>
                )}
                {rows.length > 1 && (
                    <Card
                        name="memories"
                        title="Peaks of memory"
                        table={() => ({
                            head: ['what', 'peak_bytes'],
                            rows: rows.map((r) => [r.name, r.s.memory.peak_bytes]),
                        })}
                    >
                        <Bars
                            name="memories"
                            label="Peaks of memory"
                            rows={rows.map((r) => ({
                                name: r.name,
                                value: r.s.memory.peak_bytes,
                                look: r.s.memory.fits ? (r.i === all.length - 1 ? 'f0' : 'overhead') : 'f6',
                                text: gib(r.s.memory.peak_bytes),
                            }))}
                        />
                    </Card>
                )}
                {last?.causes && (
                    <Card
                        name="causes"
                        title="Why"
                        wide="double"
                        picture={false}
                        note="the first against what is set now"
                        table={tableOf(causeColumns, last.causes)}
                    >
                        <Sortable
                            columns={causeColumns}
                            rows={last.causes.filter((x) => x.a_ms || x.b_ms)}
                            label="Causes"
                        />
                        <p class="quiet">
                            They add up to {ms(last.change_ms ?? 0, 4)}
                            {last.work && last.work !== 1 ? ', for the work of the first' : ''}.
                        </p>
                    </Card>
                )}
                {last?.kernels && (
                    <Card
                        name="kernels"
                        title="Kernels that differ"
                        wide="double"
                        picture={false}
                        table={tableOf(kernelColumns, last.kernels)}
                    >
                        <Sortable columns={kernelColumns} rows={last.kernels} label="Kernels that differ" most={15} />
                    </Card>
                )}
            </div>
            <Same request={asked.request} />
        </>
    );
}

/** For the same work: a step of twice the samples may take twice as long. */
function Speed(p: { of: Comparison['answers'][number] | undefined }): JSX.Element | null {
    if (!p.of?.speedup) return null;
    return (
        <>
            × {figure(p.of.speedup)}
            {!p.of.intervals_apart && <small class="quiet under">intervals overlap</small>}
        </>
    );
}

const change_ = (v: number): string => `${v > 0 ? '+' : v < 0 ? '\u2212' : ''}${ms(Math.abs(v))}`;
const causeColumns: readonly Column<Cause>[] = [
    { name: 'Part', key: 'part', cell: (c) => c.part, by: (c) => c.part },
    { name: 'First', key: 'a_ms', cell: (c) => ms(c.a_ms), by: (c) => c.a_ms, number: true },
    { name: 'Now', key: 'b_ms', cell: (c) => ms(c.b_ms), by: (c) => c.b_ms, number: true },
    { name: 'Change', key: 'change_ms', cell: (c) => change_(c.change_ms), by: (c) => c.change_ms, number: true },
    { name: 'Why', key: 'why', cell: (c) => c.why ?? '', by: (c) => c.why ?? '', wrap: true },
];
const kernelColumns: readonly Column<KernelChange>[] = [
    { name: 'Kernel', key: 'name', cell: (k) => `${k.block ?? ''} ${k.name}`, by: (k) => k.name },
    { name: 'Operator', key: 'op', cell: (k) => k.op, by: (k) => k.op },
    { name: 'Phase', key: 'phase', cell: (k) => k.phase, by: (k) => k.phase },
    {
        name: 'Launches',
        key: 'a_launches',
        cell: (k) => (k.a_launches === k.b_launches ? k.a_launches : `${k.a_launches} → ${k.b_launches}`),
        by: (k) => k.a_launches,
        number: true,
    },
    { name: 'First', key: 'a_ms', cell: (k) => ms(k.a_ms), by: (k) => k.a_ms, number: true },
    { name: 'Now', key: 'b_ms', cell: (k) => ms(k.b_ms), by: (k) => k.b_ms, number: true },
    { name: 'Change', key: 'change_ms', cell: (k) => change_(k.change_ms), by: (k) => k.change_ms, number: true },
];
