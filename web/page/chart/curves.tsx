// Curves with their intervals behind them; either axis may be logarithmic, and says so.
import type { ComponentChildren, JSX } from 'preact';
import { figure } from '../format';
import { Keys } from '../parts';
import { AxisX, AxisY, Picture } from './picture';
import type { Scale } from './scale';
import { linear, logarithmic } from './scale';

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

export function Curves(p: {
    label: string;
    curves: readonly Curve[];
    x: string;
    y: string;
    logX?: boolean;
    logY?: boolean;
    height?: number;
    zero?: boolean;
    at?: number; // where the request stands on x
    limit?: { y: number; name: string };
    extra?: (x: Scale, y: Scale) => ComponentChildren;
    pick?: (point: Point, curve: Curve) => void;
}): JSX.Element {
    const all = p.curves.flatMap((c) => c.points.map((q) => q));
    const xs = all.map((q) => q.x).filter(Number.isFinite);
    const ys = all
        .flatMap((q) => [q.y, q.low ?? q.y, q.high ?? q.y])
        .filter((v) => Number.isFinite(v) && (!p.logY || v > 0));
    if (p.limit && p.limit.y < 3 * Math.max(...ys)) ys.push(p.limit.y);
    const lowX = Math.min(...xs),
        highX = Math.max(...xs),
        lowY = Math.min(...ys),
        highY = Math.max(...ys);
    const top = 24,
        bottom = (p.height ?? 240) - 34;
    const scales = (w: number) => ({
        x: (p.logX ? logarithmic : linear)(lowX, highX > lowX ? highX : lowX + 1, 52, w - 10),
        y: p.logY
            ? logarithmic(lowY / 1.15, highY * 1.15, bottom, top)
            : linear(p.zero === false ? lowY - 0.08 * (highY - lowY) : 0, highY * 1.08 || 1, bottom, top),
    });
    if (!xs.length || !ys.length) return <p class="quiet">There is nothing to draw.</p>;
    const line = (c: Curve, x: Scale, y: Scale): string =>
        c.points
            .map((q, i) => {
                const at = `${x.at(q.x).toFixed(1)} ${y.at(q.y).toFixed(1)}`;
                const before = c.points[i - 1];
                return c.steps && before ? `V${y.at(q.y).toFixed(1)}H${x.at(q.x).toFixed(1)}` : `${i ? 'L' : 'M'}${at}`;
            })
            .join('');
    const band = (c: Curve, x: Scale, y: Scale): string => {
        const with_ = c.points.filter((q) => q.low !== undefined && q.high !== undefined);
        if (with_.length < 2) return '';
        const up = with_.map((q) => `${x.at(q.x).toFixed(1)} ${y.at(q.high!).toFixed(1)}`);
        const down = [...with_]
            .reverse()
            .map((q) => `${x.at(q.x).toFixed(1)} ${y.at(Math.max(q.low!, p.logY ? lowY / 1.15 : 0)).toFixed(1)}`);
        return `M${up.join('L')}L${down.join('L')}Z`;
    };
    return (
        <>
            {p.curves.length > 1 && <Keys of={p.curves.map((c, i) => [`p${i % 8}`, c.name] as const)} />}
            <Picture
                height={bottom + 34}
                label={p.label}
                hint={(px, py, w) => {
                    const { x, y } = scales(w);
                    let best: { c: Curve; q: Point } | null = null,
                        near = 40;
                    for (const c of p.curves)
                        for (const q of c.points) {
                            const away = Math.hypot(x.at(q.x) - px, (y.at(q.y) - py) / 2);
                            if (away < near) [best, near] = [{ c, q }, away];
                        }
                    if (!best) return null;
                    const { c, q } = best;
                    const range =
                        q.low !== undefined && q.high !== undefined ? ` (${figure(q.low)}–${figure(q.high)})` : '';
                    return {
                        text: `${p.curves.length > 1 ? `${c.name}\n` : ''}${p.x} ${figure(q.x, 4)}\n${p.y} ${figure(q.y, 4)}${range}${q.note ? `\n${q.note}` : ''}`,
                        mark: <circle class="ring" cx={x.at(q.x)} cy={y.at(q.y)} r={6} />,
                    };
                }}
                draw={(w) => {
                    const { x, y } = scales(w);
                    return (
                        <>
                            <AxisY scale={y} x={x.from} right={x.to} name={p.y} />
                            <AxisX scale={x} y={bottom} name={p.x} />
                            {p.at !== undefined && p.at >= lowX && p.at <= highX && (
                                <line class="cursor" x1={x.at(p.at)} x2={x.at(p.at)} y1={top} y2={bottom} />
                            )}
                            {p.curves.map((c, i) => (
                                <path key={`b${i}`} class={`band p${i % 8}`} d={band(c, x, y)} />
                            ))}
                            {p.curves.map(
                                (c, i) =>
                                    c.line !== false && (
                                        <path
                                            key={`c${i}`}
                                            class={`curve l${i % 8} ${c.thin ? 'thin' : ''}`}
                                            d={line(c, x, y)}
                                        />
                                    ),
                            )}
                            {p.curves.map(
                                (c, i) =>
                                    c.dots &&
                                    c.points.map((q, k) => (
                                        <circle
                                            key={`d${i}.${k}`}
                                            class={q.hollow ? `ring l${i % 8}` : `p${i % 8}`}
                                            cx={x.at(q.x).toFixed(1)}
                                            cy={y.at(q.y).toFixed(1)}
                                            r={q.hollow ? 3.5 : 3}
                                            {...(p.pick ? { onClick: () => p.pick!(q, c) } : {})}
                                        />
                                    )),
                            )}
                            {p.limit && p.limit.y <= y.high && (
                                <line class="limit" x1={x.from} x2={x.to} y1={y.at(p.limit.y)} y2={y.at(p.limit.y)} />
                            )}
                            {p.limit && p.limit.y <= y.high && (
                                <text class="halo" x={x.from + 6} y={y.at(p.limit.y) - 5}>
                                    {p.limit.name}
                                </text>
                            )}
                            {p.extra?.(x, y)}
                        </>
                    );
                }}
            />
        </>
    );
}
