// Live bytes while the step runs. What there is at a moment is asked for when a pointer first comes by.
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { ask } from '../ask';
import type { Course, Request, Step } from '../answers';
import { gib, ms } from '../format';
import { Drawn, upright } from './drawn';

const names: { [kind: string]: string } = { kv_cache: 'KV cache' };

export async function courseOf(of: Request): Promise<Course | null> {
    const answer = await ask<Step>({ ...of, course: true });
    return answer.ok ? (answer.course ?? null) : null;
}

export function MemoryCurve(p: { of: Request }): JSX.Element {
    const known = useRef<{ of: string; course: Course['memory'] | null }>({ of: '', course: null }).current;
    const learn = (): void => {
        const key = JSON.stringify(p.of);
        if (known.of === key) return;
        Object.assign(known, { of: key, course: null });
        void courseOf(p.of).then((found) => {
            if (known.of === key) known.course = found?.memory ?? null;
        });
    };
    return (
        <Drawn
            name="memory"
            of={p.of}
            spec={{ what: 'memory' }}
            hint={(px, _py, { x, bottom }) => {
                learn();
                const t = x?.back(px) ?? -1,
                    of = known.course;
                if (!x || t < 0 || t > x.high) return null;
                const mark = upright(px, bottom);
                if (!of) return { text: `at ${ms(t, 4)}`, mark };
                let i = of.moments.findIndex((m) => m[0]! > t) - 1;
                if (i < 0) i = of.moments.length - 1;
                const m = of.moments[i]!;
                const rows = of.kinds.map((k, j) => [names[k] ?? k, m[j + 1]!] as const).filter(([, b]) => b > 0);
                const sum = m.slice(1).reduce((s, v) => s + v, 0);
                return {
                    text: `at ${ms(t, 4)}: ${gib(sum, 4)}\n${rows
                        .reverse()
                        .map(([k, b]) => `${k} ${gib(b)}`)
                        .join('\n')}`,
                    mark,
                };
            }}
        />
    );
}
