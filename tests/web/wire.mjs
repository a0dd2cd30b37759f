// What a first visit fetches: node wire.mjs foretell.wasm PREDICTOR
//
// The predictor goes over the wire without the leaves that no case reaches, and is the same file to the byte behind it. With the
// library it stays under the 5 MB of the page, however often it is fitted anew. Prints TAP.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join as path } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const [wasm, predictor] = process.argv.slice(2);
if (!existsSync(wasm) || !existsSync(path(here, '../../web/node_modules'))) {
    console.log('1..0 # SKIP run make web first');
    process.exit(0);
}
const { load } = await import('./bundle.mjs');
const { most, packed } = await import('../../web/packing.mjs');
const { join, split } = await load('predictor.ts');
const scripts = 80e3; // the page's own scripts and styles, which tests/browser/visit.mjs counts

let said = 0, failed = 0;
function test(name, body) {
    let fault;
    try { body(); } catch (found) { fault = found; }
    console.log(`${fault ? 'not ok' : 'ok'} ${++said} - ${name}`);
    if (!fault) return;
    failed++;
    for (const line of String(fault.message).slice(0, 2000).split('\n')) console.log(`# ${line}`);
}

const file = new Uint8Array(readFileSync(predictor));
const joined = (bytes) => {
    let to = new Uint8Array(0);
    join(bytes, (length) => (to = new Uint8Array(length)));
    return Buffer.from(to);
};
const sent = packed(split(file));

test('the predictor that arrives is the one that was sent', () => {
    assert.ok(joined(new Uint8Array(gunzipSync(sent))).equals(Buffer.from(file)), 'another file');
});
test('leaves that no case reaches are not sent', () => {
    const { repeating, noisy } = split(file);
    assert.ok(repeating.length + noisy.length < 0.8 * file.length, `${repeating.length} and ${noisy.length} of ${file.length} bytes`);
});
test('a leaf that has a value without being reached stops the build', () => {
    const spoilt = Uint8Array.from(file), view = new DataView(spoilt.buffer);
    const count = view.getUint32(40, true), leaves = 64, tests = leaves + 64 * count;
    let tree = 0;
    while (tree < count && spoilt[tests + 16 * tree + 6] !== 255) tree++; // its first test never passes
    assert.ok(tree < count, 'no tree has a test that never passes');
    spoilt[leaves + 64 * tree + 63] = 7;
    assert.throws(() => split(spoilt), /leaf 63 .* no case reaches/);
});
test('a file that is shorter than its header says stops the build', () => {
    assert.throws(() => split(file.subarray(0, file.length - 1)), /header says/);
});
test('what is no predictor, or half of one, is passed through or made whole with zeros', () => {
    const words = new TextEncoder().encode('no predictor, though longer than a header of sixty-four bytes would be');
    const parts = split(words);
    assert.ok(joined(new Uint8Array(Buffer.concat([parts.repeating, parts.noisy]))).equals(Buffer.from(words)));
    const whole = new Uint8Array(gunzipSync(sent));
    for (const share of [0.01, 0.2, 0.6, 0.99]) joined(whole.subarray(0, Math.floor(share * whole.length)));
});
test(`library, predictor and page are under ${most / 1e6} MB`, () => {
    const library = gzipSync(readFileSync(wasm), { level: 9 }).length, over = library + sent.length + scripts - most;
    assert.ok(over <= 0, `${over} bytes too many: the predictor takes ${sent.length}, the library ${library}, the page about ${scripts}.
A predictor with fewer trees (foretell fit) or one that packs better (web/core/predictor.ts) brings it back.`);
});
console.log(`1..${said}`);
process.exit(failed ? 1 : 0);
