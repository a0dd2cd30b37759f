// From what the page shows to what the library is asked, and to the command line and the Python call that ask the same.
import type { Request } from './answers';

type Words = { readonly [key: string]: string };

export const given: Words = {
    model: 'llama-3-8b',
    gpu: 'h100_sxm',
    task: 'train',
    engine: 'vllm',
    isl: '1024',
    osl: '256',
    concurrency: '32',
};
export const read = (is: Words, key: string): string => is[key] ?? given[key] ?? '';

const numbers = new Set([
    'batch',
    'global_batch',
    'seq',
    'isl',
    'osl',
    'concurrency',
    'rate',
    'gpus',
    'top',
    'lora_rank',
    'images',
    'requests',
    'replicas',
    'max_num_seqs',
    'max_num_batched_tokens',
    'gpu_memory_utilization',
    'power_cap_w',
    'quantile',
    'recompute_layers',
    'loss_positions',
    'offload_layers',
    'prefix_hit',
    'tokens',
    'vpp',
    'slo_ttft',
    'slo_tpot',
    'etp',
    'bucket_mib',
    'shard',
]);
const switches = new Set([
    'master_weights',
    'clip_grad',
    'ema',
    'optimizer_in_backward',
    'sp',
    'overlap',
    'tp_overlap',
    'expert_overlap',
]);
/** Degrees first; behind them what has no field of its own, and is set by a change or a plan. */
const axes = ['tp', 'pp', 'vpp', 'dp', 'cp', 'ep', 'zero', 'sp', 'schedule', 'overlap', 'tp_overlap'].concat(
    ['etp', 'reduce_dtype', 'gather_dtype', 'bucket_mib', 'gather', 'expert_dispatch', 'expert_overlap', 'cp_kind', 'shard'],
);
const fabric = ['nodes', 'gpus_per_node', 'interconnect'];

/** A word as a request has it. */
export function value(key: string, text: string): unknown {
    if (text.startsWith('{')) {
        try {
            return JSON.parse(text) as unknown;
        } catch {
            return text;
        }
    }
    if (switches.has(key)) return text === 'true';
    if (numbers.has(key) || axes.slice(0, 7).includes(key) || key === 'nodes' || key === 'gpus_per_node') {
        const number = Number(text);
        return text.trim() !== '' && Number.isFinite(number) ? number : text;
    }
    return text;
}

/** A request of these keys, with the layout and the cluster where there are any. */
export function request(task: string, is: Words, keys: readonly string[], parts: { parallel?: boolean } = {}): Request {
    const out: Request = { task };
    for (const key of ['model', 'gpu', ...keys]) {
        const text = read(is, key);
        if (text !== '') out[key] = value(key, text);
    }
    if (parts.parallel) {
        const parallel: Request = {},
            cluster: Request = {};
        for (const key of axes) if (is[key]) parallel[key] = value(key, is[key]!);
        for (const key of fabric) if (is[key]) cluster[key] = value(key, is[key]!);
        if (Object.keys(parallel).length) out['parallel'] = parallel;
        if (Object.keys(cluster).length && Object.keys(parallel).length) out['cluster'] = cluster;
    }
    return out;
}

/** A request as words of the page. */
export function words(of: Request): { [key: string]: string } {
    const out: { [key: string]: string } = {};
    for (const [key, v] of Object.entries(of)) {
        if ((key === 'parallel' || key === 'cluster') && v && typeof v === 'object')
            Object.assign(out, words(v as Request));
        else out[key] = typeof v === 'object' ? JSON.stringify(v) : String(v);
    }
    return out;
}

/** A change that the library proposes, as words of the page; `is`: those it changes. Of a model it says keys of the
 *  config, which one of the catalogue takes beside its name. */
export function patched(patch: Request, is: Words): { [key: string]: string } {
    const out = words(patch),
        model = patch['model'];
    if (!model || typeof model !== 'object') return out;
    const now = value('model', read(is, 'model'));
    return { ...out, model: JSON.stringify({ ...(typeof now === 'object' ? now : { base: now }), ...model }) };
}

// -- the same elsewhere ----------------------------------------------------------------------------

const quoted = (text: string): string => (/^[\w.,:/@=+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const flags: { [key: string]: string } = {
    global_batch: 'global-batch-size',
    power_cap_w: 'power-cap',
};
const silent = new Set(['task', 'model', 'gpu', 'op', 'course', 'detail', 'advice', 'per_request', 'techniques', 'id']);

function flag(key: string, v: unknown): string[] {
    const name = key.length === 1 ? `-${key}` : `--${flags[key] ?? key.replaceAll('_', '-')}`;
    if (v === true) return [name];
    if (v === false) return [`--no-${name.slice(2)}`];
    if (Array.isArray(v)) return [name, quoted(v.join(','))];
    if (key === 'slo' && v && typeof v === 'object')
        return [
            '--slo',
            Object.entries(v as Request)
                .filter(([k]) => k.endsWith('_ms'))
                .map(([k, n]) => `${k.slice(0, -3)}=${String(n)}ms`)
                .join(','),
        ];
    if (v && typeof v === 'object') // prices, failures
        return [name, quoted(Object.entries(v).map(([k, n]) => `${k}=${String(n)}`).join(','))];
    return [name, quoted(String(v))];
}

function traceLine(of: Request): string {
    const gpus = ((of['gpu'] ?? []) as string[]).flatMap((gpu) => ['--gpu', quoted(gpu)]);
    return ['foretell', 'trace', quoted(String(of['file'])), ...gpus, '--json'].join(' ');
}

/** Commands by task. */
const commands: { [task: string]: string } = {
    ...Object.fromEntries(['train', 'serve', 'plan', 'scale', 'kernel', 'choose'].map((task) => [task, task])),
    plan_serve: 'plan',
    choose_serve: 'choose',
};
/** Keys whose parts are flags by themselves. */
const sections = new Set(['parallel', 'cluster', 'constraints']);

/** Whether a command can be told that: what is no name of the catalogue has no word there. */
function told(of: Request, task: string): boolean {
    const gpu = of['gpu'] ?? [];
    const kinds = Array.isArray(gpu) && commands[task] === 'choose' && gpu.every((one) => typeof one === 'string');
    return (
        task in commands &&
        (typeof gpu === 'string' || kinds) &&
        (typeof of['model'] === 'string' || task === 'kernel') &&
        !of['disaggregated'] &&
        !of['search'] &&
        !(task === 'plan' && of['parallel'])
    );
}

/** The command whose --json is the same answer; what no command asks goes through `batch`. */
export function commandLine(of: Request): string {
    const task = String(of['task']);
    if (task === 'trace') return traceLine(of);
    if (!told(of, task)) return `echo ${quoted(JSON.stringify(of))} | foretell batch`;
    const out = ['foretell', commands[task]!, quoted(String(task === 'kernel' ? of['op'] : of['model']))];
    if (of['gpu']) out.push(...flag('gpu', of['gpu']));
    if (task !== commands[task]) out.push('--task', of['requests'] && !of['slo'] ? 'infer' : 'serve');
    for (const [key, v] of Object.entries(of)) {
        if (silent.has(key)) continue;
        if (sections.has(key))
            for (const [axis, n] of Object.entries(v as Request)) out.push(...flag(axis, n));
        else out.push(...flag(key, v));
    }
    if (of['advice']) out.push('--advice', 'few');
    if (of['detail'] && task === 'train') out.push('--detail', String(of['detail']));
    return [...out, '--json'].join(' ');
}

const python = (v: unknown): string =>
    v === true
        ? 'True'
        : v === false
          ? 'False'
          : v === null
            ? 'None'
            : Array.isArray(v)
              ? `[${v.map(python).join(', ')}]`
              : typeof v === 'object'
                ? `{${Object.entries(v as Request)
                      .map(([k, x]) => `${JSON.stringify(k)}: ${python(x)}`)
                      .join(', ')}}`
                : JSON.stringify(v);

export function pythonCall(of: Request): string {
    const task = String(of['task']);
    const name = ['train', 'serve', 'plan', 'scale', 'kernel', 'infer', 'trace', ...Object.keys(commands)].includes(task)
        ? task
        : ['prefill', 'decode', 'forward'].includes(task)
          ? 'forecast'
          : '';
    if (!name) return `import foretell\nfor answer in foretell.batch([${python(of)}]):\n    print(answer)`;
    const first = of[task === 'kernel' ? 'op' : task === 'trace' ? 'file' : 'model'];
    const rest = Object.entries(of)
        .filter(([k]) => !['task', 'model', 'op', 'file', 'id'].includes(k) || (name === 'forecast' && k === 'task'))
        .map(([k, v]) => `${k === 'pass' ? 'pass_' : k}=${python(v)}`);
    return `import foretell\nprint(foretell.${name}(${[python(first), ...rest].join(', ')}))`;
}
