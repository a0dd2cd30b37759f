// Bars with their figures: one row for each part, and no table that says it again.
import type { JSX } from 'preact';
import { percent } from '../format';
import { Drawn } from './drawn';

export interface Bar {
    name: string;
    value: number;
    look: string;
    text: string;
}

export function Bars(p: { name: string; rows: readonly Bar[]; whole?: number; label: string }): JSX.Element {
    const rows = p.rows.map((r) => ({ ...r, text: p.whole ? `${r.text}, ${percent(r.value / p.whole)}` : r.text }));
    return <Drawn name={p.name} spec={rows.length ? { what: 'bars', title: p.label, rows } : null} />;
}
