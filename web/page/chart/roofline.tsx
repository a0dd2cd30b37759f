// Kernels under the two roofs of the GPU. The dot nearest to the pointer is named, and lit in the table of kernels.
import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Request } from '../answers';
import { Drawn, titleOf, type Plot } from './drawn';

export function Roofline(p: {
    of: Request;
    lit?: number; // place among the kernels of the answer; -1: none
    onLight?: (kernel: number) => void;
}): JSX.Element {
    const plot = useRef<Plot | null>(null),
        told = useRef(-1);
    const light = (): void => {
        const svg = plot.current?.svg;
        svg?.querySelector('.dot.lit')?.classList.remove('lit');
        if (p.lit !== undefined && p.lit >= 0) svg?.querySelector(`[data-at="${p.lit}"]`)?.classList.add('lit');
    };
    useLayoutEffect(light, [p.lit]);
    return (
        <Drawn
            name="roofline"
            of={p.of}
            spec={{ what: 'roofline' }}
            ready={(now) => {
                plot.current = now;
                light();
            }}
            hint={(x, y, { svg }) => {
                let best: SVGCircleElement | null = null,
                    near = 26;
                for (const dot of svg.querySelectorAll<SVGCircleElement>('circle.dot')) {
                    const size = dot.r.baseVal.value;
                    const away = Math.hypot(dot.cx.baseVal.value - x, dot.cy.baseVal.value - y) - size / 3;
                    if (away < near) [best, near] = [dot, away];
                }
                const kernel = Number(best?.dataset['at'] ?? -1);
                if (kernel !== told.current) p.onLight?.((told.current = kernel));
                if (!best) return null;
                const { cx, cy, r } = best;
                return {
                    text: titleOf(best).replaceAll(', ', '\n'),
                    mark: { class: 'ring', cx: cx.baseVal.value, cy: cy.baseVal.value, r: r.baseVal.value + 2 },
                };
            }}
        />
    );
}
