// Rulers: from a figure to a place in a picture, and the marks on the way.
import { figure } from '../format';

export interface Scale {
    at(value: number): number;
    back(place: number): number;
    low: number;
    high: number;
    from: number;
    to: number;
    log: boolean;
}

export function linear(low: number, high: number, from: number, to: number): Scale {
    const span = high - low || 1;
    return {
        at: (v) => from + ((v - low) / span) * (to - from),
        back: (p) => low + ((p - from) / (to - from || 1)) * span,
        low,
        high: low + span,
        from,
        to,
        log: false,
    };
}

export function logarithmic(low: number, high: number, from: number, to: number): Scale {
    const a = Math.log(Math.max(low, 1e-300)),
        span = Math.log(Math.max(high, 1e-300)) - a || 1;
    return {
        at: (v) => from + ((Math.log(Math.max(v, 1e-300)) - a) / span) * (to - from),
        back: (p) => Math.exp(a + ((p - from) / (to - from || 1)) * span),
        low,
        high,
        from,
        to,
        log: true,
    };
}

export interface Tick {
    value: number;
    text: string;
}

/** Round marks, at most one every `apart` pixels. */
export function ticks(s: Scale, apart = 70): Tick[] {
    const most = Math.max(2, Math.floor(Math.abs(s.to - s.from) / apart));
    return s.log ? logTicks(s, most) : linearTicks(s, most);
}

function linearTicks(s: Scale, most: number): Tick[] {
    const raw = (s.high - s.low) / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((f) => f >= raw * 0.999) ?? raw;
    const places = Math.max(
        0,
        -Math.floor(Math.log10(step) + 1e-9) + (step / 10 ** Math.floor(Math.log10(step)) === 2.5 ? 1 : 0),
    );
    const out: Tick[] = [];
    for (let k = Math.ceil(s.low / step - 1e-9); k * step <= s.high * (1 + 1e-9) + 1e-12; k++) {
        const value = k * step;
        out.push({
            value,
            text: Math.abs(value) >= 1e5 ? short(value) : value === 0 ? '0' : value.toFixed(Math.min(places, 9)),
        });
    }
    return out;
}

function short(value: number): string {
    for (const [size, unit] of [
        [1e12, 'T'],
        [1e9, 'G'],
        [1e6, 'M'],
        [1e3, 'k'],
    ] as const)
        if (Math.abs(value) >= size) return figure(value / size, 3).replace(/\.0+$/, '') + unit;
    return figure(value, 3);
}

function logTicks(s: Scale, most: number): Tick[] {
    const decades = Math.log10(s.high / s.low);
    const steps = decades * 3 <= most ? [1, 2, 5] : [1];
    const every = steps.length > 1 ? 1 : Math.max(1, Math.ceil(decades / most));
    const out: Tick[] = [];
    for (let d = Math.floor(Math.log10(s.low)); d <= Math.ceil(Math.log10(s.high)); d++)
        for (const step of steps) {
            const value = step * 10 ** d;
            if (value < s.low * 0.999 || value > s.high * 1.001 || ((d % every) + every) % every) continue;
            out.push({
                value,
                text:
                    value >= 1e4
                        ? short(value)
                        : value >= 1e-3
                          ? String(+value.toPrecision(3))
                          : value.toExponential(0),
            });
        }
    return out;
}
