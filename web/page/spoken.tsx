// What a screen reader says when an answer has come: the figures at its top, once settings rest.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { whenShown, work } from './work';

const most = 4; // figures: more would not be listened to
const pause = 3; // times the rest of a slider: whoever holds an arrow key hears the last answer alone

const text = (within: Element, of: string): string => within.querySelector(of)?.textContent?.trim() ?? '';

function figures(): string {
    const view = document.querySelector('main h1')?.textContent?.trim() ?? '';
    const all = [...document.querySelectorAll('main dl.figures:first-of-type > div')].slice(0, most);
    if (!all.length) return '';
    const said = all.map((one) => [`${text(one, 'dt')} ${text(one, 'dd.big')}`, text(one, 'dd.small')].filter(Boolean).join(', '));
    return `${view}: ${said.join('; ')}.`;
}

export function Spoken(): JSX.Element {
    const [words, set] = useState('');
    useEffect(() => {
        let timer: ReturnType<typeof setTimeout> | undefined;
        const leave = whenShown(() => {
            clearTimeout(timer);
            timer = setTimeout(() => set(figures()), pause * work.rest);
        });
        return () => {
            leave();
            clearTimeout(timer);
        };
    }, []);
    return (
        <p class="offscreen" role="status" data-spoken>
            {words}
        </p>
    );
}
