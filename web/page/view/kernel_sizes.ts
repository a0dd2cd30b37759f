// Operators of the kernel view, their sizes as sliders show them, and the request that they make.
import type { Request } from '../answers';
import type { Words } from '../form/fields';
import { read, value } from '../request';

export interface Size {
    key: string;
    name: string;
    by: number;
    most: number;
}
const size = (key: string, name: string, by: number, most: number): Size => ({ key, name, by, most });
const rows = [size('rows', 'Rows', 8192, 65536), size('cols', 'Columns', 4096, 131072)];
export const ops = {
    gemm: [size('m', 'm', 4096, 32768), size('n', 'n', 4096, 32768), size('k', 'k', 4096, 32768)],
    attention: [
        size('batch', 'Batch', 4, 256),
        size('heads', 'Heads', 32, 128),
        size('kv_heads', 'KV heads', 8, 128),
        size('q_len', 'Queries', 2048, 32768),
        size('kv_len', 'Keys', 2048, 131072),
        size('head_dim', 'Head width', 128, 256),
    ],
    moe: [
        size('tokens', 'Tokens', 4096, 65536),
        size('hidden', 'Hidden', 4096, 16384),
        size('inter', 'Inner', 1536, 16384),
        size('topk', 'Of a token', 8, 16),
        size('experts', 'Experts', 128, 512),
    ],
    conv2d: [
        size('n', 'Images', 32, 256),
        size('c', 'Channels', 64, 2048),
        size('h', 'Height', 56, 512),
        size('w', 'Width', 56, 512),
        size('k', 'Filters', 64, 2048),
        size('r', 'Filter height', 3, 11),
        size('s', 'Filter width', 3, 11),
    ],
    rmsnorm: rows,
    layernorm: rows,
    softmax: rows,
    cross_entropy: rows,
    add: [size('numel', 'Elements', 2 ** 26, 2 ** 32)],
    gelu: [size('numel', 'Elements', 2 ** 26, 2 ** 32)],
} satisfies { [op: string]: readonly Size[] };
export type Op = keyof typeof ops;
/** Those that have a backward pass of their own here. */
export const passed: ReadonlySet<string> = new Set(['attention', 'gemm', 'rmsnorm', 'layernorm', 'softmax']);
// Words of the state that are sizes of a kernel have an x before them: `batch` is a step's.
export const word = (key: string): string => `x${key}`;
const known = (op: string): op is Op => Object.hasOwn(ops, op); // an address may say anything: "constructor"
export const opOf = (is: Words): Op => (is['op'] && known(is['op']) ? is['op'] : 'gemm');
/** What the staircase goes over: the size that the address names, or the usual one. */
export const grownOf = (is: Words): Size => {
    const sizes: readonly Size[] = ops[opOf(is)];
    return sizes.find((s) => s.key === is['grow']) ?? (opOf(is) === 'gemm' ? ops.gemm[1] : sizes[0])!;
};
export const valueOf = (is: Words, s: Size): number => Number(is[word(s.key)]) || s.by;

export function kernelRequest(is: Words): Request {
    const op = opOf(is);
    const out: Request = {
        task: 'kernel',
        op,
        gpu: value('gpu', read(is, 'gpu')),
    };
    if (is['dtype']) out['dtype'] = is['dtype'].replace('amp_', '');
    for (const s of ops[op]) out[s.key] = valueOf(is, s);
    if (op === 'attention') out['causal'] = is['xcausal'] !== 'false';
    if (is['xpass'] && passed.has(op)) out['pass'] = is['xpass'];
    return out;
}
