// Pictures are drawn by the library (task "draw"), here as in reports: the page says what, and how wide its place is. What
// is wanted in one go of one request is asked together, so that the step is forecast once for all of its pictures.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ask, known } from './ask';
import type { Request } from './answers';
import { atRest, moving, together, work } from './work';

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

interface Place {
    wanted: string;
    of: Request | null;
    spec: Spec | null;
    shown: string; // the key of the picture that is there
    plain: boolean;
    under: boolean;
    text: string;
    inSight: boolean;
}
const places = new Set<Place>();

/** Pictures on the screen that are drawn of `key`: what they are, and what is asked for now. */
export function inSight(key: string): { spec: Spec; ask: Spec }[] {
    const plain = moving();
    return [...places]
        .filter((place) => place.inSight && place.spec && place.of && JSON.stringify(place.of) === key)
        .map(({ spec }) => ({ spec: spec!, ask: plain ? { ...spec!, plain } : spec! }));
}

/** The newest picture that is there; null asks nothing. Those that a slider leaves behind are never asked, and one that is
 *  out of sight waits until the slider rests. While it moves, marks have no words of their own: nobody points at them. */
export function useDrawn(of: Request | null, spec: Spec | null, inSight: boolean): string {
    const [, again] = useState(0);
    const place = useRef<Place>({
        wanted: '',
        of,
        spec,
        shown: '',
        plain: false,
        under: false,
        text: '',
        inSight,
    }).current;
    const key = spec ? JSON.stringify([of, spec]) : '';
    const there = key && key !== place.shown && !place.under ? known<{ svg: string; plain: boolean }>(key) : undefined;
    if (there?.svg) Object.assign(place, { shown: key, text: there.svg, plain: there.plain });
    useLayoutEffect(() => {
        places.add(place);
        return () => void places.delete(place);
    }, []);
    useLayoutEffect(() => {
        Object.assign(place, { wanted: key, of, spec, inSight });
        if (!key) return;
        const next = async (): Promise<void> => {
            if (place.under) return;
            place.under = true;
            while (place.spec && (place.wanted !== place.shown || (place.plain && !moving()))) {
                const asked = place.wanted,
                    plain = moving();
                const wanted = draw(place.of, plain ? { ...place.spec, plain } : place.spec);
                await together(wanted, (found) => {
                    if (found === null) return;
                    place.text = found;
                    again((n) => n + 1);
                });
                Object.assign(place, { shown: asked, plain });
            }
            place.under = false;
        };
        if (inSight) void next();
        return atRest(() => void next());
    }, [key, inSight]);
    return place.text;
}
