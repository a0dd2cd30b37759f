// The frame of every picture: as wide as its place, described for who cannot see it, with words at the pointer.
import type { ComponentChildren, JSX } from 'preact';
import { useCallback, useRef, useState } from 'preact/hooks';
import { useWidth } from '../parts';
import type { Scale, Tick } from './scale';
import { ticks } from './scale';

export interface Hint {
    text: string;
    mark?: ComponentChildren; // drawn over the picture
}

export function Picture(p: {
    label: string;
    height: number | ((width: number) => number);
    draw: (width: number, height: number) => ComponentChildren;
    hint?: (x: number, y: number, width: number, height: number) => Hint | null;
    keys?: (event: KeyboardEvent) => boolean; // it can be driven by keys: true where one did something
    drag?: { start: (x: number, width: number) => void; move: (x: number, width: number) => void; end: () => void };
}): JSX.Element {
    const [here, width] = useWidth<HTMLDivElement>();
    const [tip, setTip] = useState<{ x: number; y: number; hint: Hint } | null>(null);
    const dragging = useRef(false);
    const height = typeof p.height === 'function' ? p.height(width) : p.height;
    const place = useCallback(
        (event: PointerEvent): [number, number] => {
            const box = (event.currentTarget as Element).getBoundingClientRect();
            return [
                ((event.clientX - box.left) / box.width) * width,
                ((event.clientY - box.top) / box.height) * height,
            ];
        },
        [width, height],
    );
    const move = (event: PointerEvent): void => {
        const [x, y] = place(event);
        if (dragging.current) p.drag?.move(x, width);
        const hint = p.hint?.(x, y, width, height) ?? null;
        setTip(hint && { x, y, hint });
    };
    const down = (event: PointerEvent): void => {
        if (!p.drag || event.button !== 0 || event.pointerType === 'touch') return;
        dragging.current = true;
        (event.currentTarget as Element).setPointerCapture(event.pointerId);
        p.drag.start(place(event)[0], width);
    };
    const up = (): void => {
        if (dragging.current) p.drag?.end();
        dragging.current = false;
    };
    return (
        <div class="picturebox" ref={here}>
            {width > 0 && (
                <svg
                    class="picture"
                    viewBox={`0 0 ${width} ${height}`}
                    role="img"
                    aria-label={p.label}
                    tabindex={p.keys ? 0 : -1}
                    onPointerMove={move}
                    onPointerLeave={() => setTip(null)}
                    onPointerDown={down}
                    onPointerUp={up}
                    onKeyDown={(event) => {
                        if (p.keys?.(event)) event.preventDefault();
                    }}
                >
                    {p.draw(width, height)}
                    {tip?.hint.mark && <g data-live>{tip.hint.mark}</g>}
                </svg>
            )}
            {!width && <svg class="picture" viewBox="0 0 10 10" height={height} aria-hidden="true" />}
            {tip && <Tip x={tip.x} y={tip.y} width={width} text={tip.hint.text} />}
        </div>
    );
}

function Tip(p: { x: number; y: number; width: number; text: string }): JSX.Element {
    const right = p.x > p.width * 0.6;
    return (
        <div
            class="tip"
            aria-hidden="true"
            ref={(e) => {
                if (!e) return;
                e.style.left = right ? 'auto' : `${p.x + 12}px`;
                e.style.right = right ? `${p.width - p.x + 12}px` : 'auto';
                e.style.top = `${p.y + 14}px`;
            }}
        >
            {p.text}
        </div>
    );
}

/** Marks below; `name` says what is measured, with its unit. */
export function AxisX(p: {
    scale: Scale;
    y: number;
    name: string;
    top?: number;
    apart?: number;
    marks?: readonly Tick[];
}): JSX.Element {
    const { scale, y } = p;
    return (
        <g aria-hidden="true">
            {(p.marks ?? ticks(scale, p.apart ?? 64)).map((t) => {
                const x = scale.at(t.value);
                return (
                    <g key={t.value}>
                        {p.top !== undefined && <line class="gridline" x1={x} x2={x} y1={p.top} y2={y} />}
                        <text
                            class="dim"
                            x={x}
                            y={y + 15}
                            text-anchor={x > scale.to - 12 ? 'end' : x < scale.from + 8 ? 'start' : 'middle'}
                        >
                            {t.text}
                        </text>
                    </g>
                );
            })}
            <line class="axis" x1={scale.from} x2={scale.to} y1={y} y2={y} />
            <text class="dim" x={scale.to} y={y + 31} text-anchor="end">
                {p.name}
                {scale.log ? ' (logarithmic)' : ''}
            </text>
        </g>
    );
}

/** Marks at the left; the name stands above them. */
export function AxisY(p: { scale: Scale; x: number; right: number; name: string; apart?: number }): JSX.Element {
    const { scale } = p;
    return (
        <g aria-hidden="true">
            {ticks(scale, p.apart ?? 40).map((t) => {
                const y = scale.at(t.value);
                return (
                    <g key={t.value}>
                        <line class="gridline" x1={p.x} x2={p.right} y1={y} y2={y} />
                        <text class="dim" x={p.x - 6} y={y + 4} text-anchor="end">
                            {t.text}
                        </text>
                    </g>
                );
            })}
            <text class="dim" x={0} y={scale.to - 9}>
                {p.name}
                {scale.log ? ' (logarithmic)' : ''}
            </text>
        </g>
    );
}

/** One path of many boxes: a thousand cost what one does. */
export class Boxes {
    private parts: string[] = [];
    add(x: number, y: number, width: number, height: number): void {
        this.parts.push(
            `M${x.toFixed(1)} ${y.toFixed(1)}h${width.toFixed(1)}v${height.toFixed(1)}h${(-width).toFixed(1)}z`,
        );
    }
    get path(): string {
        return this.parts.join('');
    }
    get empty(): boolean {
        return this.parts.length === 0;
    }
}
