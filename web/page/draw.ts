// Pictures are drawn by the library (task "draw"), here as in reports: the page says what, and how wide its place is. What
// is wanted in one go of one request is asked together, so that the step is forecast once for all of its pictures.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ask } from './ask';
import type { Request } from './answers';
import { moving, together, work } from './work';

export type Spec = { what: string; [key: string]: unknown };
interface Drawings {
    ok: true;
    pictures: string[];
}
interface Wanted {
    spec: Spec;
    done: (svg: string | null) => void;
}

const most = 32; // of one request
const queues = new Map<string, Wanted[]>(); // by what they are drawn of

async function flush(key: string, of: Request | null): Promise<void> {
    const list = queues.get(key)!;
    queues.delete(key);
    const drawn = async (some: readonly Wanted[]): Promise<void> => {
        const request: Request = { task: 'draw', ...(of ? { of } : {}), pictures: some.map((w) => w.spec) };
        work.asked = performance.now();
        const answer = await ask<Drawings>(request).catch(() => null);
        work.came = performance.now();
        if (answer?.ok) some.forEach((w, i) => w.done(answer.pictures[i] ?? null));
        else if (some.length > 1) for (const one of some) await drawn([one]); // one that cannot be takes no other along
        else some[0]?.done(null);
    };
    for (let at = 0; at < list.length; at += most) await drawn(list.slice(at, at + most));
}

/** The picture as SVG; null where it cannot be drawn. */
function draw(of: Request | null, spec: Spec): Promise<string | null> {
    const key = of ? JSON.stringify(of) : '';
    return new Promise((done) => {
        let list = queues.get(key);
        if (!list) {
            queues.set(key, (list = []));
            queueMicrotask(() => void flush(key, of));
        }
        list.push({ spec, done });
    });
}

/** The newest picture that is there; null asks nothing. Those that a slider leaves behind are never asked, and one that is
 *  out of sight waits until the slider rests. While it moves, marks have no words of their own: nobody points at them. */
export function useDrawn(of: Request | null, spec: Spec | null, inSight: boolean): string {
    const [svg, set] = useState('');
    const slot = useRef({ wanted: '', of, spec, shown: '', plain: false, under: false }).current;
    const key = spec ? JSON.stringify([of, spec]) : '';
    useLayoutEffect(() => {
        Object.assign(slot, { wanted: key, of, spec });
        if (!key) return;
        const next = async (): Promise<void> => {
            if (slot.under) return;
            slot.under = true;
            while (slot.spec && (slot.wanted !== slot.shown || (slot.plain && !moving()))) {
                const asked = slot.wanted,
                    plain = moving();
                const wanted = draw(slot.of, plain ? { ...slot.spec, plain } : slot.spec);
                await together(wanted, (found) => found !== null && set(found));
                Object.assign(slot, { shown: asked, plain });
            }
            slot.under = false;
        };
        if (inSight) void next();
        const later = setTimeout(() => void next(), work.rest);
        return () => clearTimeout(later);
    }, [key, inSight]);
    return svg;
}
