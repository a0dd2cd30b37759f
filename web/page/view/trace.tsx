// A profiler's trace, dropped here: what regime it ran in, what the GPU waited for, which operators are slower than they
// need be. The file stays on this machine.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { answerer, put, useAnswer } from '../ask';
import type { Bound } from '../answers';
import { bounds } from '../answers';
import type { Catalogue } from '../catalogue';
import { Bars } from '../chart/bars';
import { Check, Group, type Words } from '../form/fields';
import { GpuField, ServerFile } from '../form/subject';
import { figure, interval, ms, percent, time, whole } from '../format';
import { Card, Copy, Figure, Sortable, tableOf, Warnings, Wrong, type Column } from '../parts';
import { read } from '../request';
import { Same } from '../same';

interface Operator {
    name: string;
    class: string;
    calls: number;
    ms: number;
    forecast_ms?: number;
    low_ms?: number;
    high_ms?: number;
    above_ms?: number;
    bound?: string;
    source?: string;
    why?: string;
}
interface Trace {
    ok: true;
    gpu?: string;
    recorded_on?: string;
    steps: number;
    step_ms: number;
    shortest_ms?: number;
    longest_ms?: number;
    bare_step_ms?: number;
    busy_ms?: number;
    kernels?: number;
    regime?: { [b in Bound]: number } & { bound: Bound };
    idle?: { [cause: string]: number };
    gaps?: { ms: number; at_ms: number; cause: string; host?: string; next?: string }[];
    waits?: { call: string; operator: string; count: number; ms: number }[];
    forecasts?: {
        gpu: string;
        how: string;
        step_ms: number;
        low_ms: number;
        high_ms: number;
        speedup?: number;
        guessed?: number;
    }[];
    operators?: Operator[];
    warnings?: string[];
    partial?: boolean;
}

export function TraceForm(p: { is: Words; of: Catalogue }): JSX.Element {
    return (
        <Group name="Forecast for">
            {answerer().files && <ServerFile of="file" is={p.is} hint="trace.json.gz" />}
            <Check name="Another GPU" of="other" is={p.is} hint="the same run on the GPU below" />
            {p.is['other'] === 'true' && <GpuField is={p.is} of={p.of} />}
        </Group>
    );
}

let kept = { name: '', number: 0 }; // the file that was dropped lasts as long as the page

export function TraceView(p: { is: Words; of: Catalogue }): JSX.Element {
    const [file, setFile] = useState(kept);
    const [wrong, setWrong] = useState<{ message: string } | null>(null);
    const there = answerer().files ? (p.is['file'] ?? '') : ''; // a path on the machine that answers
    const asked = useAnswer<Trace>(
        file.number || there
            ? {
                  task: 'trace',
                  file: there || `/trace${file.number}.json`,
                  ...(p.is['other'] === 'true' ? { gpu: [read(p.is, 'gpu')] } : {}),
              }
            : null,
    );
    const take = async (given: File | undefined): Promise<void> => {
        if (!given) return;
        try {
            await put(`/trace${kept.number + 1}.json`, new Uint8Array(await given.arrayBuffer()));
            kept = { name: given.name, number: kept.number + 1 };
            setWrong(null);
            setFile(kept);
        } catch (fault) {
            setWrong({ message: `${given.name} cannot be read: ${(fault as Error).message}` });
        }
    };
    useEffect(() => {
        // Anywhere means anywhere: beside this view, too, where a browser would leave the page for the file.
        const drop = (e: DragEvent): void => {
            e.preventDefault();
            void take(e.dataTransfer?.files[0]);
        };
        addEventListener('drop', drop);
        return () => removeEventListener('drop', drop);
    }, []);
    const a = file.number || there ? asked.answer : null;
    return (
        <div>
            <div class="title">
                <h1>Trace</h1>
                <span class="quiet">
                    {there || file.name || 'of torch.profiler, as JSON or gzipped; it stays on this machine'}
                </span>
            </div>
            <div class="bar">
                <label for="f-trace">Drop a trace anywhere here, or choose one</label>
                <input
                    id="f-trace"
                    type="file"
                    accept=".json,.gz"
                    onChange={(e) => void take(e.currentTarget.files?.[0])}
                />
            </div>
            <Wrong error={wrong ?? (file.number || there ? asked.error : null)} />
            {!file.number && !there && <HowTo />}
            {a && <Report a={a} />}
            {a && asked.request && (
                <Same request={asked.request} shown={{ ...asked.request, file: there || file.name }} />
            )}
        </div>
    );
}

const recording = `from torch.profiler import profile

with profile(record_shapes=True) as profiler:
    for batch in batches:  # three steps are enough
        train_step(batch)
        profiler.step()
profiler.export_chrome_trace("trace.json.gz")`;

function HowTo(): JSX.Element {
    return (
        <section aria-label="How a trace is recorded" class="howto">
            <p>
                What held the steps, what the host did while the GPU waited, which operators take longer than they
                should on that GPU, and how long the same run takes on another. A trace is recorded like this:
            </p>
            <pre tabIndex={0}>{recording}</pre>
            <Copy text={() => recording} label="Copy: how a trace is recorded" plain={false}>
                Copy
            </Copy>
        </section>
    );
}

function Report(p: { a: Trace }): JSX.Element {
    const { a } = p,
        t = time(a.step_ms, 4);
    const idle = Object.entries(a.idle ?? {})
        .filter(([k, v]) => k !== 'total_ms' && v > 0)
        .map(([k, v]) => ({ name: k.replace('_ms', ''), value: v, look: 'overhead', text: ms(v) }));
    return (
        <>
            <Warnings lines={a.warnings} />
            <dl class="figures">
                <Figure
                    name="step as recorded"
                    value={t.value}
                    unit={t.unit}
                    remark={`${a.steps} steps${a.recorded_on ? ` on ${a.recorded_on}` : ''}${a.shortest_ms ? `; ${interval(a.shortest_ms, a.longest_ms ?? 0, a.step_ms)}` : ''}`}
                />
                {a.busy_ms !== undefined && (
                    <Figure
                        name="the GPU is busy"
                        value={percent(a.busy_ms / a.step_ms)}
                        remark={`${ms(a.busy_ms)}, ${whole(a.kernels ?? 0)} kernels`}
                    />
                )}
                {a.regime && (
                    <Figure
                        name="bound by"
                        value={a.regime.bound}
                        remark={bounds
                            .filter((b) => a.regime![b] >= 0.005)
                            .map((b) => `${b} ${percent(a.regime![b])}`)
                            .join(', ')}
                    />
                )}
                {a.forecasts?.map((f) => (
                    <Figure
                        key={f.gpu}
                        name={`on ${f.gpu}`}
                        value={ms(f.step_ms, 4)}
                        remark={`${interval(f.low_ms, f.high_ms, f.step_ms)}${f.speedup ? `, × ${figure(f.speedup)}` : ''}`}
                    />
                ))}
            </dl>
            <div class="grid">
                {!!idle.length && (
                    <Card
                        name="idle"
                        title="What the GPU waits for"
                        table={() => ({ head: ['cause', 'ms'], rows: idle.map((r) => [r.name, r.value]) })}
                    >
                        <Bars name="idle" label="What the GPU waits for" rows={idle} whole={a.step_ms} />
                    </Card>
                )}
                {!!a.gaps?.length && (
                    <Card
                        name="gaps"
                        title="Longest gaps"
                        wide="rest"
                        picture={false}
                        table={tableOf(gapColumns, a.gaps)}
                    >
                        <Sortable columns={gapColumns} rows={a.gaps} label="Longest gaps" first="ms" most={12} />
                    </Card>
                )}
                {!!a.operators?.length && (
                    <Card
                        name="operators"
                        title="Operators"
                        wide="whole"
                        picture={false}
                        note="furthest above their interval first"
                        table={tableOf(operatorColumns, a.operators)}
                    >
                        <Sortable columns={operatorColumns} rows={a.operators} label="Operators" most={30} />
                    </Card>
                )}
            </div>
        </>
    );
}

const gapColumns: readonly Column<NonNullable<Trace['gaps']>[number]>[] = [
    { name: 'Gap', key: 'ms', cell: (g) => ms(g.ms), by: (g) => g.ms, number: true },
    { name: 'At', key: 'at_ms', cell: (g) => ms(g.at_ms), by: (g) => g.at_ms, number: true },
    { name: 'Cause', key: 'cause', cell: (g) => g.cause, by: (g) => g.cause },
    { name: 'The host', key: 'host', cell: (g) => g.host ?? '', by: (g) => g.host ?? '', wrap: true },
    { name: 'Then', key: 'next', cell: (g) => g.next ?? '', by: (g) => g.next ?? '', wrap: true },
];
const operatorColumns: readonly Column<Operator>[] = [
    { name: 'Operator', key: 'name', cell: (o) => o.name, by: (o) => o.name, wrap: true },
    { name: 'Calls', key: 'calls', cell: (o) => whole(o.calls), by: (o) => o.calls, number: true },
    { name: 'Measured', key: 'ms', cell: (o) => ms(o.ms), by: (o) => o.ms, number: true },
    {
        name: 'Forecast',
        key: 'forecast_ms',
        cell: (o) => (o.forecast_ms ? ms(o.forecast_ms) : '–'),
        by: (o) => o.forecast_ms ?? 0,
        number: true,
    },
    {
        name: 'Interval',
        key: 'low_ms',
        cell: (o) =>
            o.low_ms !== undefined && o.high_ms !== undefined
                ? interval(o.low_ms, o.high_ms, o.forecast_ms ?? o.high_ms)
                : '',
        by: (o) => o.low_ms ?? 0,
        number: true,
    },
    {
        name: 'Above it',
        key: 'above_ms',
        cell: (o) => (o.above_ms ? ms(o.above_ms) : ''),
        by: (o) => o.above_ms ?? 0,
        number: true,
    },
    { name: 'Bound by', key: 'bound', cell: (o) => o.bound ?? '', by: (o) => o.bound ?? '' },
    { name: 'Why', key: 'why', cell: (o) => o.why ?? '', by: (o) => o.why ?? '', wrap: true },
];
