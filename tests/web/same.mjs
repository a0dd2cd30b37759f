// same.mjs: the library as WebAssembly answers as it does natively, byte by byte: same.mjs PROGRAM WASM PREDICTOR [COUNT]
//
// Requests of every task (requests.py) through one instance in this process and through PROGRAM (answer_lines.c). The predictor
// goes the way it goes to a page: packed, unpacked, joined. Left out of the comparison: "search_ms" of plans, a time of
// this machine. Then what is only here: files in memory, predictors that are none, memory that does not grow for ever.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const [program, wasm, predictor, count = '2000'] = process.argv.slice(2);
if (!existsSync(wasm) || !existsSync(join(here, '../../web/node_modules'))) {
    console.log('1..0 # SKIP run `make web` first');
    process.exit(0);
}
const { load } = await import('./bundle.mjs');
const { Library } = await load('library.ts');
const { split } = await load('predictor.ts');
const module = await WebAssembly.compile(readFileSync(wasm));
const file = new Uint8Array(readFileSync(predictor));
const parts = split(file);
const packed = new Uint8Array(Buffer.concat([parts.repeating, parts.noisy]));

let passed = 0;
let failed = 0;
async function check(name, what) {
    try {
        await what();
        passed++;
        console.log(`ok ${passed + failed} - ${name}`);
    } catch (fault) {
        failed++;
        console.log(`not ok ${passed + failed} - ${name}`);
        for (const line of String(fault.message ?? fault).slice(0, 2000).split('\n')) console.log(`# ${line}`);
    }
}
const timeless = (answer) => answer.replace(/"search_ms":[^,}]*/g, '"search_ms":0');
const text = execFileSync('python3', [join(here, 'requests.py'), count], { encoding: 'utf8', maxBuffer: 1 << 28 });
const requests = text.split('\n').slice(0, -1);

console.log('1..5');
const library = await Library.open(module, packed);
await check(`${requests.length} requests are answered as the program answers them`, () => {
    const native = spawnSync(program, { input: text, encoding: 'utf8', maxBuffer: 1 << 30 });
    const expected = native.stdout.split('\n').slice(0, -1);
    assert.equal(expected.length, requests.length, `the program gave ${expected.length} answers to ${requests.length} requests`);
    const other = [];
    for (let i = 0; i < requests.length; i++) {
        const answer = timeless(library.answer(requests[i]));
        const wanted = timeless(expected[i]);
        if (answer === wanted) continue;
        let at = 0;
        while (answer[at] === wanted[at]) at++;
        const from = Math.max(0, at - 60);
        other.push(`${requests[i].slice(0, 300)}\n  program ..${wanted.slice(from, at + 60)}\n  wasm    ..${answer.slice(from, at + 60)}`);
    }
    assert.equal(other.length, 0, `${other.length} differ:\n${other.slice(0, 5).join('\n')}`);
});

await check('a file in memory is read by its path', () => {
    const config = { model_type: 'gpt2', n_embd: 768, n_layer: 12, n_head: 12 };
    const request = (model) => JSON.stringify({ task: 'train', model, gpu: 'h100_sxm', seq: 256 });
    library.put('/mine/config.json', new TextEncoder().encode(JSON.stringify(config)));
    const answer = JSON.parse(library.answer(request('/mine/config.json')));
    assert.equal(answer.ok, true, JSON.stringify(answer));
    assert.equal(answer.step_ms, JSON.parse(library.answer(request(config))).step_ms);
    library.remove('/mine/config.json');
    assert.equal(JSON.parse(library.answer(request('/mine/config.json'))).error.code, 'file');
});

await check('a trace is read from memory', () => {
    const packed = readFileSync(join(here, '../data/traces/small_gpt2_train.json.gz'));
    const request = JSON.stringify({ task: 'trace', file: '/trace.json', gpu: ['h100_sxm'] });
    library.put('/trace.json', new Uint8Array(gunzipSync(packed)));
    const answer = JSON.parse(library.answer(request));
    assert.equal(answer.ok, true, JSON.stringify(answer));
    library.put('/trace.json', new Uint8Array(packed));
    assert.match(library.answer(request), /unpack it first/);
});

await check('what is no predictor is refused', async () => {
    const flipped = packed.slice();
    flipped[packed.length - 5] ^= 1;
    await assert.rejects(Library.open(module, flipped), /checksum/);
    await assert.rejects(Library.open(module, packed.subarray(0, 1000)), /truncated/);
    await assert.rejects(Library.open(module, new Uint8Array(10)), /not a predictor/);
});

await check('asking again takes no more memory', () => {
    const some = requests.slice(0, 200);
    for (const request of some) library.answer(request);
    const before = library.bytes;
    for (let round = 0; round < 3; round++) for (const request of some) library.answer(request);
    assert.ok(library.bytes <= before + (1 << 20), `${before} -> ${library.bytes} bytes`);
});
process.exitCode = failed ? 1 : 0;
