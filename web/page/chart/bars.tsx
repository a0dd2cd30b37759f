// Bars with their figures: one row for each part, and no table that says it again.
import type { JSX } from 'preact';
import { percent } from '../format';
import { Picture } from './picture';

export interface Bar {
    name: string;
    value: number;
    look: string;
    text: string;
}

const step = 21;

export function Bars(p: { rows: readonly Bar[]; whole?: number; label: string }): JSX.Element {
    const most = Math.max(...p.rows.map((r) => r.value), 1e-12);
    const names = 8 + 6.6 * Math.max(...p.rows.map((r) => r.name.length), 4),
        texts = 10 + 6.6 * Math.max(...p.rows.map((r) => r.text.length), 4);
    const last = p.whole ? 54 : 0;
    return (
        <Picture
            height={step * p.rows.length + 4}
            label={`${p.label}: ${p.rows.map((r) => `${r.name} ${r.text}`).join(', ')}`}
            draw={(w) => {
                const from = Math.min(names, w * 0.4),
                    to = Math.max(w - last - texts, from + 30);
                return p.rows.map((r, i) => (
                    <g key={r.name}>
                        <text class="dim" x={0} y={i * step + 14}>
                            {r.name}
                        </text>
                        <rect class="track" x={from} y={i * step + 3} width={to - from} height={14} />
                        <rect
                            class={r.look}
                            x={from}
                            y={i * step + 3}
                            width={Math.max((r.value / most) * (to - from), r.value > 0 ? 0.8 : 0)}
                            height={14}
                        />
                        <text x={w - last} y={i * step + 14} text-anchor="end">
                            {r.text}
                        </text>
                        {p.whole && (
                            <text class="dim" x={w} y={i * step + 14} text-anchor="end">
                                {percent(r.value / p.whole)}
                            </text>
                        )}
                    </g>
                ));
            }}
        />
    );
}
