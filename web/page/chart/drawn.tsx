// The place of a picture that the library draws: as wide as its card, with words at the pointer, driven by keys and by
// dragging where its owner says so.
import type { JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Request } from '../answers';
import { useDrawn, type Spec } from '../draw';
import { useWidth } from '../parts';
import { put } from './patch';
import { scaleOf, type Scale } from './scale';

export interface Plot {
    svg: SVGSVGElement;
    x: Scale | null;
    y: Scale | null;
    bottom: number;
}
export interface Hint {
    text: string;
    mark?: { [attribute: string]: string | number }; // of a circle or a line over the picture
}

const namespace = 'http://www.w3.org/2000/svg';
/** What a mark's <title> said. */
export const titleOf = (target: EventTarget | null): string =>
    target instanceof SVGElement ? (target.dataset['tip'] ?? '') : '';

/** A mark that follows the pointer: the last child, not part of what is saved. */
function mark(svg: SVGSVGElement, of: Hint['mark'] | null, kind: string): void {
    let live = svg.querySelector(`:scope > [data-live="${kind}"]`);
    if (!of) return void live?.remove();
    if (!live) {
        live = document.createElementNS(namespace, 'cx' in of ? 'circle' : 'width' in of ? 'rect' : 'line');
        live.setAttribute('data-live', kind);
        svg.append(live);
    }
    for (const [name, value] of Object.entries(of)) live.setAttribute(name, String(value));
}

/** Whether it is on the screen, or nearly. */
function useSight(here: { current: Element | null }): boolean {
    const [is, set] = useState(true);
    useLayoutEffect(() => {
        const watch = new IntersectionObserver(([entry]) => set(!!entry?.isIntersecting), { rootMargin: '120px' });
        if (here.current) watch.observe(here.current);
        return () => watch.disconnect();
    }, []);
    return is;
}

export const upright = (x: number, bottom: number): NonNullable<Hint['mark']> => ({
    class: 'cursor',
    x1: x,
    x2: x,
    y1: 0,
    y2: bottom,
});

export function Drawn(p: {
    name: string; // of the picture in the page
    of?: Request | null;
    spec: Spec | null;
    note?: string; // more words for who cannot see it
    hint?: (x: number, y: number, plot: Plot, target: EventTarget | null) => Hint | null;
    pick?: (x: number, y: number, plot: Plot) => void;
    keys?: (event: KeyboardEvent, plot: Plot) => boolean; // true where one did something
    drag?: (from: number, to: number, plot: Plot) => void; // a stretch of x was drawn over
    ready?: (plot: Plot) => void;
}): JSX.Element {
    const [here, width] = useWidth<HTMLDivElement>();
    const inSight = useSight(here);
    const place = useRef<HTMLDivElement>(null),
        tip = useRef<HTMLDivElement>(null);
    const plot = useRef<Plot | null>(null),
        pulled = useRef<number | null>(null);
    const text = useDrawn(
        p.of ?? null,
        width > 0 && p.spec ? { ...p.spec, name: p.name, width: Math.max(width, 160), embed: true } : null,
        inSight,
    );
    useLayoutEffect(() => {
        const svg = text && place.current ? put(place.current, text) : null;
        if (!svg) return;
        const ruled = svg.querySelector('.plot'),
            axis = svg.querySelector('line.axis');
        plot.current = {
            svg,
            x: scaleOf(ruled?.getAttribute('data-x')),
            y: scaleOf(ruled?.getAttribute('data-y')),
            bottom: Number(axis?.getAttribute('y1') ?? svg.viewBox.baseVal.height),
        };
        const stop = p.keys ? '0' : '-1';
        if (svg.getAttribute('tabindex') !== stop) svg.setAttribute('tabindex', stop);
        if (p.note) svg.setAttribute('aria-label', `${svg.getAttribute('aria-label') ?? ''} ${p.note}`);
        p.ready?.(plot.current);
    }, [text]);
    const at = (event: PointerEvent): [number, number] => {
        const svg = plot.current!.svg,
            box = svg.getBoundingClientRect(),
            view = svg.viewBox.baseVal;
        return [
            ((event.clientX - box.left) / (box.width || 1)) * view.width,
            ((event.clientY - box.top) / (box.height || 1)) * view.height,
        ];
    };
    const quiet = (): void => {
        if (tip.current) tip.current.hidden = true;
        if (plot.current) mark(plot.current.svg, null, 'hint');
    };
    const move = (event: PointerEvent): void => {
        const now = plot.current,
            box = tip.current;
        if (!now || !box) return;
        const [x, y] = at(event),
            wide = now.svg.viewBox.baseVal.width;
        if (pulled.current !== null) {
            const [a, b] = [Math.min(pulled.current, x), Math.max(pulled.current, x)];
            mark(now.svg, { class: 'select', x: a, width: b - a, y: 0, height: now.bottom }, 'pull');
        }
        const said = titleOf(event.target);
        const hint = p.hint ? p.hint(x, y, now, event.target) : said ? { text: said } : null;
        if (!hint) return quiet();
        const right = x > wide * 0.6;
        box.textContent = hint.text;
        box.hidden = !hint.text;
        box.style.left = right ? 'auto' : `${x + 12}px`;
        box.style.right = right ? `${wide - x + 12}px` : 'auto';
        box.style.top = `${y + 14}px`;
        mark(now.svg, hint.mark ?? null, 'hint');
    };
    const down = (event: PointerEvent): void => {
        if (!p.drag || !plot.current || event.button !== 0 || event.pointerType === 'touch') return;
        pulled.current = at(event)[0];
        (event.currentTarget as Element).setPointerCapture(event.pointerId);
    };
    const up = (event: PointerEvent): void => {
        const from = pulled.current,
            now = plot.current;
        pulled.current = null;
        if (!now) return;
        const [x, y] = at(event);
        mark(now.svg, null, 'pull');
        if (from !== null && Math.abs(x - from) > 6) p.drag?.(from, x, now);
        else p.pick?.(x, y, now);
    };
    return (
        <div
            class="picturebox"
            ref={here}
            onPointerMove={move}
            onPointerLeave={quiet}
            onPointerDown={down}
            onPointerUp={up}
            onKeyDown={(event) => {
                if (plot.current && p.keys?.(event, plot.current)) event.preventDefault();
            }}
        >
            <div ref={place} />
            <div class="tip" aria-hidden="true" hidden ref={tip} />
        </div>
    );
}
