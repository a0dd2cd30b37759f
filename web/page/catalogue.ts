// What the library knows: models and GPUs, asked once.
import { ask } from './ask';
import type { Gpu, Model } from './answers';

export interface Catalogue {
    models: Model[];
    gpus: Gpu[];
    tasks: Set<string>; // those of the questions below that the library answers
}

const optional: { [task: string]: object } = {
    serve: {},
    plan: {},
    scale: {},
    compare: {},
    choose: {},
    plan_serve: {},
    choose_serve: {},
    trace: {},
};

export async function catalogue(): Promise<Catalogue> {
    const [models, gpus] = await Promise.all([
        ask<{ ok: true; models: Model[] }>({ task: 'models' }),
        ask<{ ok: true; gpus: Gpu[] }>({ task: 'gpus' }),
    ]);
    const tasks = new Set<string>();
    await Promise.all(
        Object.entries(optional).map(async ([task, rest]) => {
            const answer = await ask<{ ok: true }>({ task, ...rest });
            if (answer.ok || !(answer.error.code === 'unknown_name' && answer.error.message.includes('task')))
                tasks.add(task);
        }),
    );
    return { models: models.ok ? models.models : [], gpus: gpus.ok ? gpus.gpus : [], tasks };
}

/** A GPU by name, or the spec that somebody typed over the one it begins with. */
export function gpuOf(gpus: readonly Gpu[], text: string): Gpu | undefined {
    if (!text.startsWith('{')) return gpus.find((g) => g.name === text);
    try {
        const spec = JSON.parse(text) as Partial<Gpu> & { base?: string };
        const base = gpus.find((g) => g.name === spec.base);
        return (
            base && {
                ...base,
                ...spec,
                peak_tflops: { ...base.peak_tflops, ...spec.peak_tflops },
                title: String(spec.name ?? base.title),
            }
        );
    } catch {
        return undefined;
    }
}

export const gpuTitle = (gpus: readonly Gpu[], text: string): string =>
    gpuOf(gpus, text)?.title ?? (text.startsWith('{') ? 'your GPU' : text);

/** The catalogue's name of a GPU that an address calls by another; null: it has that name, or none is like it. */
export async function namedGpu(gpus: readonly Gpu[], text: string): Promise<string | null> {
    if (!text || text.startsWith('{') || /[/.]/.test(text) || gpus.some((g) => g.name === text)) return null;
    const found = await ask<{ ok: true; gpus: Gpu[] }>({ task: 'gpus', name: text });
    return found.ok ? (found.gpus[0]?.name ?? null) : null;
}

export const modelName = (text: string): string => {
    if (!text.startsWith('{')) return text;
    try {
        const config = JSON.parse(text) as { _name_or_path?: string; model_type?: string; base?: string };
        if (!config.model_type && config.base) {
            const { base, ...other } = config as { base: string };
            const changed = Object.entries(other).map(([key, v]) => `${key} ${String(v)}`);
            return changed.length ? `${base} with ${changed.join(', ')}` : base;
        }
        return config._name_or_path || `your ${config.model_type ?? 'model'}`;
    } catch {
        return 'your model';
    }
};
