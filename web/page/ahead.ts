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
    const requests = [...asks, ...(pictures.length ? [{ task: 'draw', of, pictures }] : [])];
    const keys = requests.map((request) => JSON.stringify(request));
    work.asked = performance.now();
    const came = (texts: readonly string[]): void => {
        work.came = performance.now();
        const found = new Map<string, unknown>();
        asks.forEach((_, i) => found.set(keys[i]!, JSON.parse(texts[i]!)));
        const drawn = pictures.length ? (JSON.parse(texts.at(-1)!) as { ok: boolean; pictures: string[] }) : null;
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
