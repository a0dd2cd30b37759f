// A movement's answers before the page is drawn anew. Drawing form, figures and pictures first, to learn what they ask,
// takes longer than the library does: so a view says what settings will be asked as, it is asked at once, in one go and
// of one worker or, where that is quick, of this thread (core/near.ts), and what comes is drawn together, once and in one
// frame.
import { useLayoutEffect } from 'preact/hooks';
import type { Request } from './answers';
import { askNow, askTexts, foresee } from './ask';
import { inSight } from './draw';
import { moving, work } from './work';

type Words = { readonly [key: string]: string };
/** What a view asks of settings, and what its pictures are drawn of. */
export type Foresight = (is: Words) => { asks: readonly Request[]; of: Request };

interface Drawn {
    ok: boolean;
    pictures: string[];
    answer?: unknown;
}

let view: Foresight | null = null; // of the view that is shown

/** `of`: a function that stays the same. */
export function useForesight(of: Foresight): void {
    useLayoutEffect(() => {
        view = of;
        return () => {
            if (view === of) view = null;
        };
    }, [of]);
}

/** Asks what `is` will need where `before` is shown; true: it is there. Null where the view does not say. */
export function ahead(is: Words, before: Words): Promise<void> | true | null {
    if (!view) return null;
    const { asks, of } = view(is);
    const places = inSight(JSON.stringify(view(before).of));
    const pictures = places.map((place) => place.ask);
    const base = JSON.stringify(of);
    // One forecast for figures and pictures, where the figures are those of what is drawn.
    const answer = pictures.length > 0 && asks.some((ask) => JSON.stringify(ask) === base);
    const drawing = pictures.length ? { task: 'draw', of, pictures, ...(answer && { answer }) } : null;
    const others = asks.map((ask) => JSON.stringify(ask)).filter((key) => !answer || key !== base);
    const keys = drawing ? [...others, JSON.stringify(drawing)] : others;
    work.asked = performance.now();
    const came = (texts: readonly string[]): void => {
        work.came = performance.now();
        const found = new Map<string, unknown>();
        others.forEach((key, i) => found.set(key, JSON.parse(texts[i]!)));
        const drawn = drawing ? (JSON.parse(texts.at(-1)!) as Drawn) : null; // of what cannot be, figures are asked alone
        if (drawn?.ok && drawn.answer) found.set(base, drawn.answer);
        if (drawn?.ok)
            places.forEach(({ spec, ask }, i) =>
                found.set(JSON.stringify([of, spec]), { svg: drawn.pictures[i], plain: ask !== spec }),
            );
        foresee(found);
    };
    const texts = moving() ? askNow(keys) : null;
    if (!texts) return askTexts(keys, true).then(came);
    came(texts);
    return true;
}
