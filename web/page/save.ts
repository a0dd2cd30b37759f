// What the page shows as files and on the clipboard: pictures, tables, answers.

function download(name: string, blob: Blob): void {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export const saveText = (name: string, text: string, type = 'text/plain'): void =>
    download(name, new Blob([text], { type }));

const looks = [
    'fill',
    'stroke',
    'stroke-width',
    'stroke-dasharray',
    'stroke-linejoin',
    'fill-opacity',
    'stroke-opacity',
    'opacity',
    'font-family',
    'font-size',
    'font-weight',
    'text-anchor',
    'paint-order',
] as const;

/** A picture that looks the same without the page: what its classes say, as attributes. */
export function standalone(svg: SVGSVGElement): string {
    const copy = svg.cloneNode(true) as SVGSVGElement;
    const of = [svg, ...svg.querySelectorAll<SVGElement>('*')],
        to = [copy, ...copy.querySelectorAll<SVGElement>('*')];
    of.forEach((element, i) => {
        const style = getComputedStyle(element),
            into = to[i]!;
        for (const look of looks) {
            const value = style.getPropertyValue(look);
            if ((value && value !== 'none') || look === 'fill') into.setAttribute(look, value);
        }
        into.removeAttribute('class');
    });
    const { width, height } = svg.viewBox.baseVal;
    const paper = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    for (const [key, value] of Object.entries({ width, height, fill: getComputedStyle(document.body).backgroundColor }))
        paper.setAttribute(key, String(value));
    copy.querySelectorAll('[data-live]').forEach((mark) => mark.remove()); // marks that follow the pointer
    copy.insertBefore(paper, copy.firstChild);
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    copy.setAttribute('width', String(width));
    copy.setAttribute('height', String(height));
    return new XMLSerializer().serializeToString(copy);
}

export const saveSvg = (name: string, svg: SVGSVGElement): void =>
    saveText(`${name}.svg`, standalone(svg), 'image/svg+xml');

export async function savePng(name: string, svg: SVGSVGElement, scale = 2): Promise<void> {
    const { width, height } = svg.viewBox.baseVal;
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext('2d')!;
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/png'));
    if (blob) download(`${name}.png`, blob);
}

const cell = (value: unknown): string => {
    const text = value === undefined || value === null ? '' : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
export const csv = (head: readonly string[], rows: readonly (readonly unknown[])[]): string =>
    [head, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
export const saveCsv = (name: string, head: readonly string[], rows: readonly (readonly unknown[])[]): void =>
    saveText(`${name}.csv`, csv(head, rows), 'text/csv');

export async function copy(text: string): Promise<boolean> {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        const area = document.createElement('textarea'); // pages served without encryption have no clipboard
        area.value = text;
        area.className = 'offscreen';
        document.body.append(area);
        area.select();
        const done = document.execCommand('copy');
        area.remove();
        return done;
    }
}
