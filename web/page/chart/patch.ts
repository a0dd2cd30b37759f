// Pictures that change: the library writes one element to a line, so that two pictures can be held against each other line by
// line. What stayed is left alone, what moved gets its new attributes, and only what is new is parsed: of a slider's movement
// most marks are as they were, or moved.
import { work } from '../work';

interface Kept {
    svg: SVGSVGElement;
    lines: readonly string[];
    elements: Element[];
}
const kept = new WeakMap<Element, Kept>(); // by the place that a picture is in

/** An element without others in it; entities are left to the parser. */
const simple = /^<(\w+)((?: [\w-]+="[^"&]*")*)(?:\/>|>([^<&]*)<\/\w+>)$/;
const attribute = / ([\w-]+)="([^"]*)"/g;

function parsed(markup: string): SVGSVGElement | null {
    const made = document.createElement('template');
    made.innerHTML = markup;
    return made.content.querySelector('svg');
}

function give(element: Element, text: string): void {
    let many = 0;
    for (const [, name, value] of text.matchAll(attribute)) {
        many++;
        if (element.getAttribute(name!) !== value) element.setAttribute(name!, value!);
    }
    if (element.attributes.length === many) return;
    for (const { name } of [...element.attributes]) if (!text.includes(` ${name}="`)) element.removeAttribute(name);
}

/** Whether the element could be made what the line says. */
function patched(element: Element, line: string): boolean {
    const found = simple.exec(line);
    if (!found || found[1] !== element.tagName || element.firstElementChild) return false;
    give(element, found[2]!);
    if ((found[3] ?? '') !== element.textContent) element.textContent = found[3] ?? '';
    return true;
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
    const all = text.replace(/><title>([^<]*)<\/title>/g, ' data-tip="$1">').trimEnd().split('\n');
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
    const { svg, elements } = old;
    head(svg, all[0]!);
    const anew: number[] = [];
    for (let i = 0; i < lines.length; i++) {
        if (i < elements.length && lines[i] === old.lines[i]) continue;
        work.elements++;
        if (i >= elements.length || !patched(elements[i]!, lines[i]!)) anew.push(i);
    }
    for (const gone of elements.splice(lines.length)) gone.remove();
    const made = anew.length ? [...(parsed(`<svg>${anew.map((i) => lines[i]).join('')}</svg>`)?.children ?? [])] : [];
    const live = svg.querySelector(':scope > [data-live]'); // marks of the pointer stay in front
    anew.forEach((i, k) => {
        const fresh = made[k]!;
        if (i < elements.length) elements[i]!.replaceWith(fresh);
        else svg.insertBefore(fresh, live);
        elements[i] = fresh;
    });
    old.lines = lines;
    work.last = performance.now();
    return svg;
}
