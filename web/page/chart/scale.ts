// Rulers of a picture that the library drew: from a place in it to a figure, and back.

export interface Scale {
    at(value: number): number;
    back(place: number): number;
    low: number;
    high: number;
    from: number;
    to: number;
}

/** From what stands in data-x or data-y: low, high, first and last pixel, linear or log. */
export function scaleOf(text: string | null | undefined): Scale | null {
    const words = text?.split(' ') ?? [];
    const [low, high, from, to] = words.slice(0, 4).map(Number);
    if (words.length !== 5 || low === undefined || high === undefined || from === undefined || to === undefined)
        return null;
    const log = words[4] === 'log';
    const into = (v: number): number => (log ? Math.log(Math.max(v, 1e-300)) : v);
    const a = into(low),
        span = into(high) - a || 1;
    return {
        at: (v) => from + ((into(v) - a) / span) * (to - from),
        back: (p) => {
            const v = a + ((p - from) / (to - from || 1)) * span;
            return log ? Math.exp(v) : v;
        },
        low,
        high,
        from,
        to,
    };
}
