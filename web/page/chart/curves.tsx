// Curves with their intervals behind them; either axis may be logarithmic, and says so.
import type { JSX } from 'preact';
import { figure } from '../format';
import { Drawn, type Plot } from './drawn';

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
    const nearest = (px: number, py: number, { x, y }: Plot): { c: Curve; q: Point } | null => {
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
                const best = nearest(px, py, plot);
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
                    const best = nearest(px, py, plot);
                    if (best) pick(best.q, best.c);
                },
            })}
        />
    );
}
