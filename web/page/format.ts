// Numbers for people: three or four digits, the unit that fits, never a bare figure.
import type { Energy } from './answers';

const minus = '\u2212';

/** So many significant digits, no exponent for what people read, thin spaces in thousands. */
export function figure(value: number, digits = 3): string {
    if (!Number.isFinite(value)) return '–';
    if (value === 0) return '0';
    const size = Math.abs(value);
    if (size >= 1e15 || size < 1e-6) return value.toExponential(digits - 1).replace('-', minus);
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    const rounded = size >= 10 ** digits ? Math.round(value) : value;
    let text = rounded.toFixed(Math.min(places, 8));
    if (text.includes('.') && places > digits) text = text.replace(/0+$/, '').replace(/\.$/, '');
    const [whole = '', part] = text.split('.');
    const grouped = whole.length > 4 + (value < 0 ? 1 : 0) ? whole.replace(/\B(?=(\d{3})+$)/g, '\u202f') : whole;
    return (part ? `${grouped}.${part}` : grouped).replace('-', minus);
}

export interface Scaled {
    value: string;
    unit: string;
    factor: number;
}

function scaled(value: number, steps: readonly (readonly [number, string])[], digits: number): Scaled {
    const size = Math.abs(value);
    const step = steps.find(([from]) => size >= from) ?? steps[steps.length - 1]!;
    const factor = step[0] || 1;
    return { value: figure(value / factor, digits), unit: step[1], factor };
}

const times = [
    [86400e3, 'd'],
    [3600e3 * 2, 'h'],
    [1e4, 's'],
    [1, 'ms'],
    [1e-3, 'µs'],
    [1e-6, 'ns'],
] as const;
const factors: Record<string, number> = { d: 86400e3, h: 3600e3, s: 1e3, ms: 1, µs: 1e-3, ns: 1e-6 };

/** Milliseconds in the unit that fits. */
export function time(ms: number, digits = 3): Scaled {
    const unit = (times.find(([from]) => Math.abs(ms) >= from) ?? [1, 'ms'])[1];
    const factor = ms === 0 ? 1 : factors[unit]!;
    return { value: figure(ms / factor, digits), unit: ms === 0 ? 'ms' : unit, factor };
}

export const ms = (value: number, digits = 3): string => {
    const t = time(value, digits);
    return `${t.value} ${t.unit}`;
};

/** The interval in the unit of its middle: "529–800 ms"; of its ends where those are much farther out. */
export function interval(low: number, high: number, middle = high, digits = 3): string {
    const ends = Math.max(Math.abs(low), Math.abs(high));
    const { factor, unit } = time(ends >= 10 * Math.abs(middle) ? ends : middle, digits);
    return `${figure(low / factor, digits)}–${figure(high / factor, digits)} ${unit}`;
}

/** Joules in the unit that fits. */
export function joules(value: number, digits = 3): string {
    const found = [[1e9, 'GJ'], [1e6, 'MJ'], [1e3, 'kJ']].find(([from]) => Math.abs(value) >= (from as number));
    const [factor, unit] = (found ?? [1, 'J']) as [number, string];
    return `${figure(value / factor, digits)} ${unit}`;
}

/** Energy of a step, in a sentence. */
export function energyWords(e: Energy): string {
    const work = e.tokens_per_joule ?? e.samples_per_joule,
        unit = e.tokens_per_joule !== undefined ? 'tokens' : 'samples';
    return (
        `A GPU draws ${figure(e.watts_per_gpu)} W, ${figure(e.node_watts_per_gpu)} W with its share of the node: ` +
        `${joules(e.joules_per_step)} (${joules(e.low_joules)}–${joules(e.high_joules)}) a step` +
        `${work ? `, ${figure(work)} ${unit} a joule` : ''}.`
    );
}

export const gib = (bytes: number, digits = 3): string => `${figure(bytes / 2 ** 30, digits)} GiB`;
export function bytes(value: number, digits = 3): string {
    const s = scaled(
        value,
        [
            [2 ** 40, 'TiB'],
            [2 ** 30, 'GiB'],
            [2 ** 20, 'MiB'],
            [2 ** 10, 'KiB'],
            [0, 'B'],
        ],
        digits,
    );
    return `${s.value} ${s.unit}`;
}
/** 8.03 B: parameters and tokens as the field writes them. */
export function count(value: number, digits = 3): string {
    if (Math.abs(value) < 1e4) return figure(value, digits); // 9870, not 9.87 k
    const s = scaled(
        value,
        [
            [1e12, 'T'],
            [1e9, 'B'],
            [1e6, 'M'],
            [1e3, 'k'],
        ],
        digits,
    );
    return `${s.value} ${s.unit}`;
}
export const flops = (value: number): string => {
    const s = scaled(
        value,
        [
            [1e18, 'EFLOP'],
            [1e15, 'PFLOP'],
            [1e12, 'TFLOP'],
            [1e9, 'GFLOP'],
            [1e6, 'MFLOP'],
            [0, 'FLOP'],
        ],
        3,
    );
    return `${s.value} ${s.unit}`;
};
export const percent = (share: number, digits = 2): string => {
    const value = 100 * share;
    return `${figure(Math.abs(value) < 0.05 ? 0 : value, Math.abs(value) < 10 ? digits : Math.max(digits, 2))} %`;
};
export const signed = (text: string): string => (text.startsWith(minus) || text === '0' ? text : `+${text}`);
/** A count, every digit of it. */
export const whole = (value: number): string => figure(Math.round(value), 15).replace(/\.0+$/, '');
export const plural = (n: number, one: string, many = `${one}s`): string => `${whole(n)} ${n === 1 ? one : many}`;
