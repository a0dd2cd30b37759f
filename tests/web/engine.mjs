// engine.mjs: the engine of the page (web/core/engine.ts) with its workers, in Node: engine.mjs WASM PREDICTOR
//
// Node's threads stand in for a browser's workers and a few lines for its fetch; engine, worker and library are the
// page's own. What a browser adds (policy, service worker, real workers) tests/browser looks at.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker as Thread } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const [wasm, predictor] = process.argv.slice(2);
if (!existsSync(wasm) || !existsSync(join(here, '../../web/node_modules'))) {
    console.log('1..0 # SKIP run `make web` first');
    process.exit(0);
}
const { load, text } = await import('./bundle.mjs');
const { split } = await load('predictor.ts');
const folder = mkdtempSync(join(tmpdir(), 'foretell-engine-'));
const worker = join(folder, 'worker.mjs');
writeFileSync(worker, `import { parentPort } from 'node:worker_threads';
globalThis.self = globalThis;
globalThis.postMessage = (message) => parentPort.postMessage(message);
parentPort.on('message', (data) => globalThis.onmessage({ data }));
${await text('worker.ts')}`);
const parts = split(new Uint8Array(readFileSync(predictor)));
const files = {
    'foretell.wasm': readFileSync(wasm),
    'predictor.bin.gz': gzipSync(Buffer.concat([parts.repeating, parts.noisy]), { level: 1 }),
};
let missing = '';
let started = 0;
globalThis.fetch = async (url) => {
    const name = url.pathname.split('/').pop();
    if (name === missing) return new Response('', { status: 404 });
    return new Response(files[name], { headers: { 'content-length': String(files[name].length) } });
};
globalThis.Worker = class {
    constructor() {
        started++;
        this.thread = new Thread(pathToFileURL(worker));
        this.thread.on('message', (data) => this.onmessage?.({ data }));
        this.thread.on('error', (fault) => this.onerror?.({ message: fault.message, preventDefault() {} }));
    }
    postMessage(message) {
        this.thread.postMessage(message);
    }
    terminate() {
        void this.thread.terminate();
    }
};
const { Engine, Superseded } = await load('engine.ts');
const base = new URL('http://localhost/');
const gemm = (m, more = {}) => ({ task: 'kernel', op: 'gemm', m, n: 512, k: 512, gpu: 'h100_sxm', ...more });
const plan = { task: 'plan', model: 'llama-3-70b', gpu: 'h100_sxm', gpus: 1024, global_batch: 4096, seq: 8192, exhaustive: true };

let passed = 0;
let failed = 0;
async function check(name, what) {
    try {
        await what();
        console.log(`ok ${++passed + failed} - ${name}`);
    } catch (fault) {
        console.log(`not ok ${passed + ++failed} - ${name}`);
        for (const line of String(fault.stack ?? fault).slice(0, 1500).split('\n')) console.log(`# ${line}`);
    }
}

console.log('1..10');
const stages = [];
const engine = await Engine.open(base, (progress) => stages.push(progress), { workers: 2 });
await check('progress runs from loading to ready and never back', () => {
    assert.deepEqual([...new Set(stages.map((p) => p.stage))], ['loading', 'starting', 'ready']);
    const loading = stages.filter((p) => p.stage === 'loading');
    assert.ok(loading.every((p, i) => p.loaded <= p.total && (i === 0 || p.loaded >= loading[i - 1].loaded)));
    assert.equal(loading.at(-1).loaded, files['foretell.wasm'].length + files['predictor.bin.gz'].length);
});
await check('a request is answered, as an object or as text, and an error is an answer', async () => {
    const answer = await engine.answer(gemm(512));
    assert.equal(JSON.parse(answer).ok, true);
    assert.equal(await engine.answer(JSON.stringify(gemm(512))), answer);
    assert.equal(JSON.parse(await engine.answer('{')).error.code, 'syntax');
    assert.match(engine.version, /^\d+\.\d+\.\d+$/);
});
await check('a few are answered together, in order, by one worker', async () => {
    const asked = [gemm(96), { task: 'nonsense' }, gemm(97)].map((one) => JSON.stringify(one)), before = started;
    const together = await engine.answers(asked);
    assert.equal(started, before);
    assert.deepEqual(together, await Promise.all(asked.map((one) => engine.answer(one))));
    assert.deepEqual(await engine.answers([]), []);
});
await check('of a channel only the last request is answered', async () => {
    const asked = Array.from({ length: 50 }, (_, i) => engine.answer(gemm(64 + i, { id: i }), { channel: 'slider' }));
    const ends = await Promise.allSettled(asked);
    assert.equal(JSON.parse(ends.at(-1).value).id, 49);
    assert.ok(ends.slice(0, -1).every((end) => end.status === 'rejected' && end.reason instanceof Superseded));
    const [a, b] = await Promise.all([engine.answer(gemm(1), { channel: 'a' }), engine.answer(gemm(2), { channel: 'b' })]);
    assert.notEqual(a, b);
});
await check('a long request is stopped by the next of its channel, and by its signal', async () => {
    const before = started;
    const long = engine.answer(plan, { channel: 'plan' });
    setTimeout(() => void engine.answer(gemm(8), { channel: 'plan' }), 300);
    await assert.rejects(long, Superseded);
    const abort = new AbortController();
    const other = engine.answer(plan, { signal: abort.signal });
    setTimeout(() => abort.abort(), 300);
    await assert.rejects(other, Superseded);
    assert.equal(JSON.parse(await engine.answer(gemm(9))).ok, true);
    assert.ok(started > before, 'no worker was replaced');
});
await check('a batch comes in order, whichever worker answers', async () => {
    const requests = Array.from({ length: 300 }, (_, i) => gemm(1 + 7 * i, { id: i }));
    const ids = [];
    for await (const line of engine.batch(requests, { channel: 'batch' })) ids.push(JSON.parse(line).id);
    assert.deepEqual(ids, requests.map((request) => request.id));
    const none = [];
    for await (const line of engine.batch([])) none.push(line);
    assert.equal(none.length, 0);
});
await check('files reach every worker, packed or not, and are seen again when they change', async () => {
    const config = (layers) => new TextEncoder().encode(JSON.stringify({ model_type: 'gpt2', n_embd: 768, n_layer: layers, n_head: 12 }));
    const step = async () => JSON.parse(await engine.answer({ task: 'train', model: '/mine.json', gpu: 'h100_sxm', seq: 128 })).parameters;
    await engine.put('/mine.json', config(12));
    const small = await step();
    await engine.put('/mine.json', new Uint8Array(gzipSync(config(24))));
    assert.ok(await step() > small);
    engine.remove('/mine.json');
    assert.equal(await step(), undefined);
});
await check('a movement is answered here once its like was quick, by the files of now; one that was not is the last', async () => {
    const config = new TextEncoder().encode(JSON.stringify({ model_type: 'gpt2', n_embd: 768, n_layer: 12, n_head: 12 }));
    const step = { task: 'train', model: '/mine.json', gpu: 'h100_sxm', seq: 128 };
    const requests = [gemm(77), step, { task: 'nonsense' }].map((one) => JSON.stringify(one));
    assert.equal(engine.now(requests), null);
    await engine.put('/mine.json', config);
    await engine.answers(requests);
    assert.equal(engine.now(requests), null, 'nobody said that it is a movement');
    let found = null;
    while (!(found = engine.now(requests))) await engine.answers([JSON.stringify(gemm(76))], { movement: true });
    assert.deepEqual(found, await engine.answers(requests));
    assert.ok(JSON.parse(found[1]).ok);
    engine.remove('/mine.json');
    const quick = [JSON.stringify(gemm(76))];
    while (!(found = engine.now(requests))) await engine.answers(quick, { movement: true });
    assert.deepEqual(found, await engine.answers(requests));
    assert.ok(!JSON.parse(found[1]).ok);
    const long = [JSON.stringify({ task: 'plan', model: 'llama-3-70b', gpu: 'h100_sxm', gpus: 64, global_batch: 256, seq: 4096 })];
    while (!(found = engine.now(long))) await engine.answers(quick, { movement: true });
    assert.equal(engine.now(quick), null);
    await engine.answers(long, { movement: true });
    assert.equal(engine.now(quick), null);
});
await check('what cannot be loaded is said', async () => {
    missing = 'predictor.bin.gz';
    await assert.rejects(Engine.open(base), /predictor\.bin\.gz.*404/);
    missing = '';
    const good = files['predictor.bin.gz'];
    files['predictor.bin.gz'] = gzipSync(Buffer.from('no predictor'));
    await assert.rejects(Engine.open(base), /not a predictor/);
    files['predictor.bin.gz'] = good;
});
await check('a closed engine says so', async () => {
    const waiting = engine.answer(plan);
    engine.close();
    await assert.rejects(waiting, /closed/);
    await assert.rejects(engine.answer(gemm(1)), /closed/);
    assert.equal(engine.now([JSON.stringify(gemm(1))]), null);
});
rmSync(folder, { recursive: true });
process.exit(failed ? 1 : 0);
