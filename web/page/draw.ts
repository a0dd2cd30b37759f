// Pictures are drawn by the library (task "draw"), here as in reports: the page says what, and how wide its place is. What
// is wanted in one go of one request is asked together, so that the step is forecast once for all of its pictures.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ask, work } from './ask';
import type { Request } from './answers';

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
 *  out of sight waits until the slider rests. */
export function useDrawn(of: Request | null, spec: Spec | null, inSight: boolean): string {
    const [svg, set] = useState('');
    const slot = useRef({ wanted: '', of, spec, shown: '', under: false }).current;
    const key = spec ? JSON.stringify([of, spec]) : '';
    useLayoutEffect(() => {
        Object.assign(slot, { wanted: key, of, spec });
        if (!key || key === slot.shown || slot.under) return;
        const next = async (): Promise<void> => {
            slot.under = true;
            while (slot.spec && slot.wanted !== slot.shown) {
                const asked = slot.wanted;
                const found = await draw(slot.of, slot.spec);
                slot.shown = asked;
                if (found !== null) set(found);
            }
            slot.under = false;
        };
        if (inSight) return void next();
        const later = setTimeout(() => void (slot.under || next()), work.rest);
        return () => clearTimeout(later);
    }, [key, inSight]);
    return svg;
}
