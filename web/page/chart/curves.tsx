// Curves with their intervals behind them; either axis may be logarithmic, and says so.
import type { JSX } from 'preact';
import { figure } from '../format';
import { Drawn, type Hint, type Plot } from './drawn';

export interface Point {
    x: number;
    y: number;
    low?: number;
    high?: number;
    note?: string;
    hollow?: boolean; // drawn as a ring: it does not fit, or is not stable
}
export interface Curve {
    name: string;
    points: readonly Point[];
    dots?: boolean;
    line?: boolean;
    thin?: boolean;
    steps?: boolean;
}

const short = (values: readonly number[]): number[] => values.map((v) => +v.toPrecision(6));

function given(c: Curve): { [key: string]: unknown } {
    const banded = c.points.some((q) => Number.isFinite(q.low) && Number.isFinite(q.high));
    return {
        name: c.name,
        x: short(c.points.map((q) => q.x)),
        y: short(c.points.map((q) => q.y)),
        ...(banded && {
            low: short(c.points.map((q) => (Number.isFinite(q.low) ? q.low! : q.y))),
            high: short(c.points.map((q) => (Number.isFinite(q.high) ? q.high! : q.y))),
        }),
        ...(c.points.some((q) => q.hollow) && { hollow: c.points.map((q) => !!q.hollow) }),
        ...(c.dots && { dots: true }),
        ...(c.line === false && { line: false }),
        ...(c.thin && { thin: true }),
        ...(c.steps && { steps: true }),
    };
}

/** The point of a curve of the library's that is nearest to the pointer: its curve's name in the legend, and its figures. */
export function nearest(px: number, py: number, { svg, x, y }: Plot): Hint | null {
    let best: { at: number; line: Element; cx: number; cy: number } | null = null,
        near = 40;
    svg.querySelectorAll('polyline.curve').forEach((line, at) => {
        for (const pair of (line.getAttribute('points') ?? '').split(' ')) {
            const [cx, cy] = pair.split(',').map(Number) as [number, number];
            const away = Math.hypot(cx - px, (cy - py) / 2);
            if (away < near) [best, near] = [{ at, line, cx, cy }, away];
        }
    });
    if (!best || !x || !y) return null;
    const { at, cx, cy } = best as { at: number; cx: number; cy: number };
    const name = svg.querySelectorAll('rect[class^="p"] + text')[at]?.textContent ?? '';
    const named = [...svg.querySelectorAll('text.dim')].map((text) => text.textContent ?? '');
    const below = named.find((text) => /^(ms|s)\b/.test(text))?.replace(' (logarithmic)', '') ?? '';
    const left = named.find((text) => /^(%|requests)/.test(text)) ?? '';
    return {
        text: `${name ? `${name}\n` : ''}${figure(x.back(cx), 4)} ${below}\n${figure(y.back(cy), 3)} ${left}`,
        mark: { class: 'ring', cx, cy, r: 6 },
    };
}

export function Curves(p: {
    name: string;
    label: string;
    curves: readonly Curve[];
    x: string;
    y: string;
    logX?: boolean;
    logY?: boolean;
    height?: number;
    zero?: boolean;
    rings?: string; // what rings say
    at?: number; // where the request stands on x
    limit?: { y: number; name: string };
    pick?: (point: Point, curve: Curve) => void;
}): JSX.Element {
    const fine = (q: Point): boolean =>
        Number.isFinite(q.x) && Number.isFinite(q.y) && (!p.logX || q.x > 0) && (!p.logY || q.y > 0);
    const curves = p.curves.map((c) => ({ ...c, points: c.points.filter(fine) })).filter((c) => c.points.length);
    if (!curves.length) return <p class="quiet">There is nothing to draw.</p>;
    const closest = (px: number, py: number, { x, y }: Plot): { c: Curve; q: Point } | null => {
        let best: { c: Curve; q: Point } | null = null,
            near = 40;
        for (const c of curves)
            for (const q of c.points) {
                const away = x && y ? Math.hypot(x.at(q.x) - px, (y.at(q.y) - py) / 2) : Infinity;
                if (away < near) [best, near] = [{ c, q }, away];
            }
        return best;
    };
    const { pick } = p;
    return (
        <Drawn
            name={p.name}
            spec={{
                what: 'curves',
                title: p.label,
                x: p.x,
                y: p.y,
                ...(p.logX && { log_x: true }),
                ...(p.logY && { log_y: true }),
                ...(p.zero === false && { zero: false }),
                ...(p.rings && { rings: p.rings }),
                ...(p.height && { height: p.height }),
                ...(p.at !== undefined && Number.isFinite(p.at) && { at: p.at }),
                ...(p.limit && p.limit.y > 0 && { limit: p.limit.y, limit_name: p.limit.name }),
                curves: curves.slice(0, 16).map(given),
            }}
            hint={(px, py, plot) => {
                const best = closest(px, py, plot);
                if (!best) return null;
                const { c, q } = best;
                const range =
                    q.low !== undefined && q.high !== undefined ? ` (${figure(q.low)}–${figure(q.high)})` : '';
                return {
                    text: `${curves.length > 1 ? `${c.name}\n` : ''}${p.x} ${figure(q.x, 4)}\n${p.y} ${figure(q.y, 4)}${range}${q.note ? `\n${q.note}` : ''}`,
                    mark: { class: 'ring', cx: plot.x!.at(q.x), cy: plot.y!.at(q.y), r: 6 },
                };
            }}
            {...(pick && {
                pick: (px: number, py: number, plot: Plot): void => {
                    const best = closest(px, py, plot);
                    if (best) pick(best.q, best.c);
                },
            })}
        />
    );
}
