// The kernels of a step as a table that sorts and filters.
import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { Kernel, Step } from '../answers';
import { bytes, figure, flops, interval, ms, percent, whole } from '../format';
import { Card, Sortable, tableOf, type Column } from '../parts';

export const columns: readonly Column<Kernel>[] = [
    {
        name: 'Kernel',
        key: 'name',
        cell: (k) => `${k.block ? `${k.block} ` : ''}${k.name}`,
        by: (k) => `${k.block ?? ''} ${k.name}`,
    },
    { name: 'All of them', key: 'total_ms', cell: (k) => ms(k.total_ms), by: (k) => k.total_ms, number: true },
    { name: 'Operator', key: 'op', cell: (k) => k.op + (k.members ? ` (${k.members} in one)` : ''), by: (k) => k.op },
    { name: 'Phase', key: 'phase', cell: (k) => k.phase, by: (k) => k.phase },
    { name: 'Launches', key: 'count', cell: (k) => whole(k.count), by: (k) => k.count, number: true },
    { name: 'One', key: 'ms', cell: (k) => ms(k.ms), by: (k) => k.ms, number: true },
    {
        name: 'Interval',
        key: 'low_ms',
        cell: (k) => interval(k.low_ms, k.high_ms, k.ms),
        by: (k) => k.low_ms,
        number: true,
    },
    { name: '', key: 'high_ms', cell: () => null, by: (k) => k.high_ms },
    {
        name: 'TFLOP/s',
        key: 'tflops',
        cell: (k) => (k.flops > 0 ? figure(k.flops / k.ms / 1e9) : '–'),
        by: (k) => k.flops / k.ms / 1e9,
        number: true,
    },
    {
        name: 'GB/s',
        key: 'gbps',
        cell: (k) => figure(k.bytes / k.ms / 1e6),
        by: (k) => k.bytes / k.ms / 1e6,
        number: true,
    },
    {
        name: 'Bound by',
        key: 'bound',
        cell: (k) => (
            <>
                <i class={`swatch ${k.bound}`} aria-hidden="true" />
                {k.bound}
            </>
        ),
        by: (k) => k.bound,
    },
    { name: 'From', key: 'source', cell: (k) => k.source, by: (k) => k.source },
    {
        name: 'Arithmetic',
        key: 'flops',
        cell: (k) => (k.flops > 0 ? flops(k.flops) : '–'),
        by: (k) => k.flops,
        number: true,
    },
    { name: 'Bytes', key: 'bytes', cell: (k) => bytes(k.bytes), by: (k) => k.bytes, number: true },
];

export function Kernels(p: {
    kernels: readonly Kernel[];
    step: Step;
    lit: Kernel | null;
    light: (k: Kernel | null) => void;
}): JSX.Element {
    const [typed, setTyped] = useState('');
    const box = useRef<HTMLInputElement>(null);
    const rows = useMemo(() => {
        const parts = typed.toLowerCase().split(/\s+/).filter(Boolean);
        return p.kernels.filter((k) =>
            parts.every((w) =>
                `${k.block ?? ''} ${k.name} ${k.op} ${k.phase} ${k.bound} ${k.source}`.toLowerCase().includes(w),
            ),
        );
    }, [p.kernels, typed]);
    const sum = rows.reduce((s, k) => s + k.total_ms, 0);
    const shown = useMemo(() => columns.filter((c) => c.key !== 'high_ms'), []);
    return (
        <Card
            name="kernels"
            title="Kernels"
            wide="whole"
            picture={false}
            note={`${rows.length} of ${p.kernels.length} kinds, ${ms(sum)}, ${percent(sum / p.step.step_ms)} of the step`}
            table={tableOf(columns, rows)}
        >
            <div class="bar">
                <input
                    ref={box}
                    type="search"
                    placeholder="Filter: attn backward memory"
                    aria-label="Filter kernels"
                    value={typed}
                    onInput={(e) => setTyped(e.currentTarget.value)}
                />
            </div>
            <Sortable
                columns={shown}
                rows={rows}
                label="Kernels of the step"
                first="total_ms"
                most={25}
                chosen={(k) => k === p.lit}
                onRow={p.light}
            />
        </Card>
    );
}
