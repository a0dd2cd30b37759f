// Pictures that change: the library writes one element to a line, so that two pictures can be held against each other
// line by line. What stayed is left alone, what moved gets its new attributes, and only what is new is parsed: of a
// slider's movement most marks are as they were, or moved. Where an axis has a mark more or less, the lines behind it
// are found again.
import { work } from '../work';

interface Kept {
    svg: SVGSVGElement;
    lines: readonly string[];
    elements: Element[];
}
const kept = new WeakMap<Element, Kept>(); // by the place that a picture is in

const attribute = / ([\w-]+)="([^"]*)"/g;
const words = /^>([^<&]*)<\/\w+>$/; // of an element without others in it
const farthest = 24; // lines ahead, in which one that came or went is looked for

function parsed(markup: string): SVGSVGElement | null {
    const made = document.createElement('template');
    made.innerHTML = markup;
    return made.content.querySelector('svg');
}

/** Whether the element of the line `from` could be made that of `to`; entities and elements within are left to the
 *  parser. */
function patched(element: Element, from: string, to: string): boolean {
    const old = from.split('"'),
        now = to.split('"'), // names at even places, values at odd ones, at last what the element says
        last = now.length - 1;
    if (old.length !== now.length) return false;
    for (let i = 0; i < last; i += 2) {
        if (old[i] !== now[i] || now[i]!.includes('>')) return false;
        if (old[i + 1] !== now[i + 1] && now[i + 1]!.includes('&')) return false;
    }
    if (old[last] !== now[last]) {
        const said = words.exec(now[last]!);
        if (!said || element.firstElementChild) return false;
        element.textContent = said[1]!;
    }
    for (let i = 1; i < last; i += 2) {
        if (old[i] === now[i]) continue;
        const name = now[i - 1]!;
        element.setAttribute(name.slice(name.lastIndexOf(' ') + 1, -1), now[i]!);
    }
    return true;
}

/** What stays of a line while its mark moves: element and class. */
function kind(line: string | undefined): string {
    if (line === undefined) return '';
    const at = line.indexOf('class="');
    return line.slice(0, line.indexOf(' ')) + (at < 0 ? '' : line.slice(at, line.indexOf('"', at + 7)));
}

/** How many lines of `list` from `at` on stand before one of that kind; none within reach: Infinity. */
function before(list: readonly string[], at: number, of: string): number {
    for (let i = 1; i < farthest && at + i < list.length; i++) if (kind(list[at + i]) === of) return i;
    return Infinity;
}

/** The elements that stay, each in the place of its new line; null: to be made. The others are taken out. */
function staying(old: Kept, lines: readonly string[]): (Element | null)[] {
    const next: (Element | null)[] = [];
    let j = 0;
    const drop = (many: number): void => {
        for (const end = j + many; j < end; j++) old.elements[j]!.remove();
    };
    for (let i = 0; i < lines.length; i++) {
        const line = lines[i]!;
        if (line !== old.lines[j]) {
            work.elements++;
            const [is, was] = [kind(line), kind(old.lines[j])];
            if (is !== was) {
                const gone = before(old.lines, j, is),
                    came = before(lines, i, was);
                if (gone < Infinity && gone <= came) drop(gone);
                else {
                    if (came === Infinity && j < old.elements.length) drop(1);
                    next.push(null);
                    continue;
                }
            }
            if (line !== old.lines[j] && !patched(old.elements[j]!, old.lines[j]!, line)) {
                drop(1);
                next.push(null);
                continue;
            }
        }
        next.push(old.elements[j++]!);
    }
    drop(old.elements.length - j);
    return next;
}

/** The head of a picture: its size, and its words for who cannot see it; what the page gave it stays. */
function head(svg: SVGSVGElement, line: string): void {
    const set = (name: string, value: string): void => {
        if (svg.getAttribute(name) !== value) svg.setAttribute(name, value);
    };
    if (line.includes('&')) for (const { name, value } of parsed(`${line}</svg>`)?.attributes ?? []) set(name, value);
    else for (const [, name, value] of line.matchAll(attribute)) set(name!, value!);
}

/** The picture in its place. The <svg> element stays while its contents change, so that the focus stays too. Titles of marks
 *  become attributes: the page says them itself, and the browser shall not say them again. */
export function put(place: Element, text: string): SVGSVGElement | null {
    const said = text.includes('<title>') ? text.replace(/><title>([^<]*)<\/title>/g, ' data-tip="$1">') : text;
    const all = said.trimEnd().split('\n');
    const lines = all.slice(1, -1);
    const old = kept.get(place);
    work.pictures++;
    if (!old || old.svg.parentNode !== place) {
        const svg = parsed(all.join('\n'));
        if (!svg) return null;
        place.replaceChildren(svg);
        work.elements += svg.childElementCount;
        if (svg.childElementCount === lines.length) kept.set(place, { svg, lines, elements: [...svg.children] });
        work.last = performance.now();
        return svg;
    }
    const { svg } = old;
    head(svg, all[0]!);
    const elements = staying(old, lines);
    const anew = lines.filter((_, i) => !elements[i]);
    const made = anew.length ? [...(parsed(`<svg>${anew.join('')}</svg>`)?.children ?? [])] : [];
    let after: Element | null = svg.querySelector(':scope > [data-live]'); // marks of the pointer stay in front
    for (let i = lines.length - 1; i >= 0; i--) {
        if (!elements[i]) svg.insertBefore((elements[i] = made.pop()!), after);
        after = elements[i]!;
    }
    Object.assign(old, { lines, elements });
    work.last = performance.now();
    return svg;
}
