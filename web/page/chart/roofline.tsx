// All kernels under the two roofs of the GPU: how much they compute for each byte, how fast they are. Areas are times.
import type { JSX } from 'preact';
import type { Gpu, Kernel } from '../answers';
import { bounds } from '../answers';
import { figure, ms, percent } from '../format';
import { Keys } from '../parts';
import { AxisX, AxisY, Picture } from './picture';
import { logarithmic } from './scale';

interface Dot {
    kernel: Kernel;
    intensity: number;
    tflops: number;
}

/** Kernels that compute nothing stand at the left edge, as fast as they move bytes. */
function dots(kernels: readonly Kernel[]): Dot[] {
    return kernels
        .filter((k) => k.ms > 0 && (k.flops > 0 || k.bytes > 0))
        .map((kernel) => {
            const intensity = kernel.bytes > 0 ? kernel.flops / kernel.bytes : 1e4;
            return { kernel, intensity, tflops: kernel.flops / kernel.ms / 1e9 };
        })
        .filter((d) => d.tflops > 0);
}

export function Roofline(p: {
    kernels: readonly Kernel[];
    gpu: Gpu;
    dtype: string;
    lit?: Kernel | null;
    onLight?: (k: Kernel | null) => void;
}): JSX.Element {
    const all = dots(p.kernels);
    const format = p.dtype.replace('amp_', '');
    const peak = p.gpu.peak_tflops[format] ?? p.gpu.peak_tflops['fp32'] ?? 1;
    const vector = p.gpu.vector_tflops?.['fp32'] ?? p.gpu.peak_tflops['fp32'] ?? 0;
    const bandwidth = p.gpu.memory_gbps / 1e3; // TB/s: with FLOP/B it makes TFLOP/s
    const whole = all.reduce((s, d) => s + d.kernel.total_ms, 0) || 1;
    const xs = all.map((d) => d.intensity),
        ys = all.map((d) => d.tflops);
    const lowX = Math.max(Math.min(...xs, 0.2) / 1.6, 1e-3),
        highX = Math.max(...xs, (peak / bandwidth) * 3) * 1.6;
    const lowY = Math.max(Math.min(...ys, bandwidth * lowX * 2) / 1.8, 1e-4),
        highY = peak * 1.7;
    const top = 22,
        bottom = 268;
    const scales = (w: number) => ({
        x: logarithmic(lowX, highX, 50, w - 8),
        y: logarithmic(lowY, highY, bottom, top),
    });
    const size = (d: Dot): number => (all.length === 1 ? 6 : 2.5 + 15 * Math.sqrt(d.kernel.total_ms / whole));
    const order = [...all].sort((a, b) => b.kernel.total_ms - a.kernel.total_ms);
    return (
        <>
            <Keys
                of={bounds
                    .filter((b) => all.some((d) => d.kernel.bound === b))
                    .map((b) => [b, b === 'overhead' ? 'overhead, latency' : b] as const)}
            />
            <Picture
                height={bottom + 34}
                label={`Roofline of ${all.length} kernels that compute: ${format} peak ${figure(peak)} TFLOP/s, memory ${figure(p.gpu.memory_gbps)} GB/s. The table of kernels has the figures.`}
                hint={(px, py, w) => {
                    const { x, y } = scales(w);
                    let best: Dot | null = null,
                        near = 26;
                    for (const d of order) {
                        const away = Math.hypot(x.at(d.intensity) - px, y.at(d.tflops) - py) - size(d) / 3;
                        if (away < near) [best, near] = [d, away];
                    }
                    p.onLight?.(best?.kernel ?? null);
                    if (!best) return null;
                    const k = best.kernel,
                        roof = Math.min(peak, bandwidth * best.intensity);
                    return {
                        text:
                            `${k.block ?? ''} ${k.name}, ${k.phase}\n${k.op}, ${k.count} × ${ms(k.ms)} = ${ms(k.total_ms)}\n` +
                            `${figure(best.intensity)} FLOP/B, ${figure(best.tflops)} TFLOP/s, ${percent(best.tflops / roof)} of the roof; ${k.bound}`,
                        mark: (
                            <circle class="ring" cx={x.at(best.intensity)} cy={y.at(best.tflops)} r={size(best) + 2} />
                        ),
                    };
                }}
                draw={(w) => {
                    const { x, y } = scales(w);
                    const ridge = peak / bandwidth,
                        low = Math.max(lowX, lowY / bandwidth);
                    return (
                        <>
                            <AxisY scale={y} x={x.from} right={x.to} name="TFLOP/s" />
                            <AxisX scale={x} y={bottom} name="FLOP per byte" />
                            <path
                                class="roof"
                                d={`M${x.at(low)} ${y.at(bandwidth * low)}L${x.at(ridge)} ${y.at(peak)}L${x.to} ${y.at(peak)}`}
                            />
                            {vector > 0 && vector < peak * 0.7 && (
                                <path
                                    class="roof low"
                                    d={`M${x.at(vector / bandwidth)} ${y.at(vector)}L${x.to} ${y.at(vector)}`}
                                />
                            )}
                            <text class="halo" x={x.to} y={y.at(peak) - 6} text-anchor="end">
                                {format} {figure(peak)} TFLOP/s
                            </text>
                            {vector > 0 && vector < peak * 0.7 && (
                                <text
                                    class="dim halo"
                                    x={x.at(vector / bandwidth) + 160 > x.to ? x.to : x.at(vector / bandwidth) + 6}
                                    text-anchor={x.at(vector / bandwidth) + 160 > x.to ? 'end' : 'start'}
                                    y={y.at(vector) + 15}
                                >
                                    fp32 vector {figure(vector)} TFLOP/s
                                </text>
                            )}
                            {order.map((d, i) => (
                                <circle
                                    key={i}
                                    class={`dot ${d.kernel.bound} ${p.lit === d.kernel ? 'lit' : ''}`}
                                    cx={x.at(d.intensity).toFixed(1)}
                                    cy={y.at(d.tflops).toFixed(1)}
                                    r={size(d).toFixed(1)}
                                />
                            ))}
                        </>
                    );
                }}
            />
        </>
    );
}
