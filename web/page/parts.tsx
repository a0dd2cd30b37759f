// Pieces that all views are made of: figures, cards with their files, tables that sort, what went wrong.
import type { ComponentChildren, JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { copy, saveCsv, savePng, saveSvg } from './save';

export function Figure(p: {
    name: string;
    value: string;
    unit?: string;
    remark?: ComponentChildren;
    mood?: string;
    delta?: ComponentChildren;
}): JSX.Element {
    return (
        <div>
            <dt>{p.name}</dt>
            <dd class={`big ${p.mood ?? ''} ${p.value.length > 9 ? 'long' : ''}`}>
                <span>{p.value}</span>
                {p.unit && <small> {p.unit}</small>}
                {p.delta}
            </dd>
            {p.remark && <dd class="small">{p.remark}</dd>}
        </div>
    );
}

/** How much less or more than before. */
export function Delta(p: { now: number; before: number | undefined; goodIsLess?: boolean }): JSX.Element | null {
    if (p.before === undefined || !(p.before > 0) || Math.abs(p.now / p.before - 1) < 5e-4) return null;
    const change = p.now / p.before - 1;
    const good = change < 0 === (p.goodIsLess ?? true);
    const text =
        Math.abs(change) >= 1
            ? `×${(p.now / p.before).toPrecision(3)}`
            : `${change < 0 ? '\u2212' : '+'}${(100 * Math.abs(change)).toPrecision(2)} %`;
    return <span class={`delta ${good ? 'good' : 'bad'}`}>{text}</span>;
}

export interface Table {
    head: readonly string[];
    rows: readonly (readonly unknown[])[];
}

/** A picture or a table with its name, what it says, and its files. */
export function Card(p: {
    title: string;
    note?: ComponentChildren;
    name: string;
    table?: () => Table | Promise<Table>;
    picture?: boolean;
    wide?: 'whole' | 'double' | 'ample' | 'rest'; // ample: of two columns on wide screens; rest: beside what stands at the left
    tools?: ComponentChildren;
    children: ComponentChildren;
}): JSX.Element {
    const here = useRef<HTMLElement>(null);
    const svg = (): SVGSVGElement | null => here.current?.querySelector('svg.picture') ?? null;
    const each = (save: (name: string, svg: SVGSVGElement) => void) => (): void => {
        const found = svg();
        if (found) save(`foretell-${p.name}`, found);
    };
    const table = useRef(p.table);
    table.current = p.table;
    const header = (): JSX.Element => (
        <header>
            <h2 id={`h-${p.name}`}>{p.title}</h2>
            <span class="tools">
                {p.tools}
                {p.picture !== false && (
                    <button class="plain" aria-label={`${p.title}: save as SVG`} onClick={each(saveSvg)}>
                        SVG
                    </button>
                )}
                {p.picture !== false && (
                    <button
                        class="plain"
                        aria-label={`${p.title}: save as PNG`}
                        onClick={each((n, s) => void savePng(n, s))}
                    >
                        PNG
                    </button>
                )}
                {p.table && (
                    <button
                        class="plain"
                        aria-label={`${p.title}: save as CSV`}
                        onClick={() =>
                            void Promise.resolve(table.current!()).then((t) =>
                                saveCsv(`foretell-${p.name}`, t.head, t.rows),
                            )
                        }
                    >
                        CSV
                    </button>
                )}
            </span>
            {p.note && <p>{p.note}</p>}
        </header>
    );
    return (
        <section class={`card ${p.wide ?? ''}`} ref={here} aria-labelledby={`h-${p.name}`} data-card={p.name}>
            {useMemo(header, [p.name, p.title, p.note, p.tools, p.picture, !p.table])}
            {p.children}
        </section>
    );
}

/** How wide a picture may be: measured, so that its text has the page's size whatever the screen's. */
export function useWidth<E extends HTMLElement>(): [{ current: E | null }, number] {
    const here = useRef<E>(null);
    const [width, set] = useState(0);
    useLayoutEffect(() => {
        const element = here.current;
        if (!element) return;
        const measure = (): void => set(Math.floor(element.clientWidth));
        measure();
        const watch = new ResizeObserver(measure);
        watch.observe(element);
        return () => watch.disconnect();
    }, []);
    return [here, width];
}

export interface Column<T> {
    name: string;
    key: string; // of a CSV file
    cell: (row: T) => ComponentChildren;
    by?: (row: T) => number | string; // what it is sorted by, and what a CSV file has
    number?: boolean;
    wrap?: boolean;
}

export const tableOf =
    <T,>(columns: readonly Column<T>[], rows: readonly T[]) =>
    (): Table => ({
        head: columns.map((c) => c.key),
        rows: rows.map((row) => columns.map((c) => (c.by ? c.by(row) : c.cell(row)))),
    });

export function Sortable<T>(p: {
    columns: readonly Column<T>[];
    rows: readonly T[];
    label: string;
    first?: string;
    most?: number;
    chosen?: (row: T) => boolean;
    onRow?: (row: T | null) => void;
}): JSX.Element {
    const [sort, setSort] = useState<{ key: string; down: boolean } | null>(
        p.first ? { key: p.first, down: true } : null,
    );
    const [all, setAll] = useState(false);
    const rows = useMemo(() => {
        const by = p.columns.find((c) => c.key === sort?.key)?.by;
        if (!by || !sort) return p.rows;
        const order = sort.down ? -1 : 1;
        return [...p.rows].sort((a, b) => {
            const x = by(a),
                y = by(b);
            return (
                order * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)))
            );
        });
    }, [p.rows, sort, p.columns]);
    const most = p.most ?? 40,
        shown = all ? rows : rows.slice(0, most);
    return (
        <>
            <div class={`scroll ${all ? 'all' : ''}`} tabIndex={0} role="group" aria-label={p.label}>
                <table>
                    <thead>
                        <tr>
                            {p.columns.map((c) => {
                                const is = sort?.key === c.key;
                                const order = {
                                    'aria-sort': (is ? (sort.down ? 'descending' : 'ascending') : undefined) as
                                        | 'ascending'
                                        | undefined,
                                };
                                return (
                                    <th key={c.key} class={c.number ? 'n' : ''} scope="col" {...(is ? order : {})}>
                                        {c.by ? (
                                            <button
                                                onClick={() =>
                                                    setSort({ key: c.key, down: is ? !sort.down : !!c.number })
                                                }
                                            >
                                                {c.name}
                                                {is ? (sort.down ? ' ▾' : ' ▴') : ''}
                                            </button>
                                        ) : (
                                            c.name
                                        )}
                                    </th>
                                );
                            })}
                        </tr>
                    </thead>
                    <tbody>
                        {shown.map((row, i) => (
                            <tr
                                key={i}
                                class={p.chosen?.(row) ? 'chosen' : ''}
                                onMouseEnter={() => p.onRow?.(row)}
                                onMouseLeave={() => p.onRow?.(null)}
                            >
                                {p.columns.map((c) => (
                                    <td key={c.key} class={`${c.number ? 'n' : ''} ${c.wrap ? 'wrap' : ''}`}>
                                        {c.cell(row)}
                                    </td>
                                ))}
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {rows.length > most && (
                <button class="plain" onClick={() => setAll(!all)}>
                    {all ? `The first ${most} alone` : `All ${rows.length} rows, ${rows.length - most} more`}
                </button>
            )}
        </>
    );
}

export function Warnings(p: { lines: readonly string[] | undefined }): JSX.Element | null {
    if (!p.lines?.length) return null;
    return (
        <div class="note" role="note">
            <ul>
                {p.lines.map((line) => (
                    <li key={line}>{line}</li>
                ))}
            </ul>
        </div>
    );
}

// The page asks line by line, which nobody who looks at it has written: "line 1, gpu" is "gpu".
const place = (where: string | undefined): string => (where ?? '').replace(/^line \d+, (?!column)/, '');

export function Wrong(p: { error: { message: string; where?: string } | null }): JSX.Element {
    return (
        <div role="alert" class={p.error ? 'note wrong' : 'offscreen'}>
            {p.error && (
                <>
                    {p.error.message}
                    {place(p.error.where) ? <span class="quiet"> ({place(p.error.where)})</span> : null}
                </>
            )}
        </div>
    );
}

export function Copy(p: {
    text: () => string;
    children: ComponentChildren;
    label?: string;
    plain?: boolean;
}): JSX.Element {
    const [done, set] = useState(false);
    const go = async (): Promise<void> => {
        if (!(await copy(p.text()))) return;
        set(true);
        setTimeout(() => set(false), 1200);
    };
    return (
        <button
            class={p.plain === false ? '' : 'plain'}
            onClick={() => void go()}
            {...(p.label ? { 'aria-label': p.label } : {})}
        >
            {done ? 'Copied' : p.children}
        </button>
    );
}
