// A first visit, and one without a network: node tests/browser/visit.mjs FOLDER
//
// FOLDER holds what `make web` builds. Its size on the wire; examples, and the bar that runs while the predictor comes slowly; a
// config.json and a trace that are dropped; numbers that a click selects; then the server is stopped, and the page opens again and
// answers what was not asked before.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { config } from './views.mjs';

const here = dirname(fileURLToPath(import.meta.url)), folder = resolve(process.argv[2]);
const skip = why => { console.log(`1..0 # SKIP ${why}`); process.exit(0); };
const chromium = ['chromium', 'chromium-browser', 'google-chrome'].map(n => spawnSync('sh', ['-c', `command -v ${n}`], { encoding: 'utf8' }).stdout.trim()).find(Boolean);
if (!chromium) skip('no chromium');
if (!existsSync(join(here, 'node_modules/playwright-core'))) skip('run scripts/setup test first');
if (!existsSync(join(folder, 'index.html'))) skip('run make web first');
const playwright = await import('playwright-core');

let number = 0, failed = 0;
const ok = (fine, what, why = '') => {
  console.log(`${fine ? 'ok' : 'not ok'} ${++number} - ${what}`);
  if (!fine) { failed++; console.log(`# ${String(why).replaceAll('\n', '\n# ')}`); }
};
const until = async (page, condition, given, most = 60000) => {
  for (const end = Date.now() + most; ; await new Promise(done => setTimeout(done, 20))) {
    const found = await page.evaluate(condition, given);
    if (found || Date.now() > end) return found;
  }
};

const packed = readdirSync(folder).reduce((sum, name) => {
  const bytes = readFileSync(join(folder, name));
  return sum + (name.endsWith('.gz') ? bytes.length : gzipSync(bytes, { level: 9 }).length);
}, 0);
ok(packed < 5e6, 'all files together are under 5 MB on the wire', packed);

// A plain file server; the predictor comes in five pieces, each when the test has let it go, however slow the machine is.
const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.svg': 'image/svg+xml', '.wasm': 'application/wasm' };
let asked = 0, let_go = 0;
const server = createServer(async (request, answer) => {
  asked++;
  const file = join(folder, normalize(new URL(request.url, 'http://x').pathname).replace(/\/$/, '/index.html'));
  if (!file.startsWith(folder) || !existsSync(file)) return void answer.writeHead(404).end();
  const bytes = readFileSync(file), pieces = file.endsWith('predictor.bin.gz') && !request.headers['cache-control'] ? 5 : 1;
  answer.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream', 'content-length': bytes.length });
  for (let at = 0, piece = Math.ceil(bytes.length / pieces), n = 1; at < bytes.length; at += piece, n++) {
    while (pieces > 1 && n > let_go) await new Promise(done => setTimeout(done, 5));
    answer.write(bytes.subarray(at, at + piece));
  }
  answer.end();
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
context.setDefaultTimeout(120000);
const page = await context.newPage(), said = [];
page.on('pageerror', error => said.push(error.stack ?? error.message));

await page.goto(`${origin}/`);
const seen = [0];
for (let_go = 1; let_go < 5; let_go++) {
  const filled = await until(page, last => {
    const bar = document.querySelector('progress');
    return bar?.hasAttribute('value') && bar.value / bar.max > last && bar.value / bar.max;
  }, seen.at(-1));
  if (!filled) break;
  seen.push(filled);
}
let_go = 5;
ok(seen.length === 5 && seen.at(-1) < 1, 'a bar runs while the predictor comes', seen.join(' '));
await page.waitForSelector('main.body h1');
ok(await page.evaluate(() => document.querySelector('details.examples').open) && await page.locator('.examples a').count() >= 4, 'a first visit is shown examples');
await page.waitForSelector('.figures dd.big');

// A click selects a figure, without its unit: it can be copied as it is.
await page.click('.figures dd.big > span');
const selected = await page.evaluate(() => getSelection().toString());
ok(selected.trim() !== '' && !/[a-z]/i.test(selected), 'a click selects a figure alone', selected);

const drop = (at, name, bytes) => page.evaluate(([where, file, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(atob(text), c => c.charCodeAt(0))], file));
  document.querySelector(where).dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
}, [at, name, bytes.toString('base64')]);
await drop('#f-model', 'config.json', Buffer.from(JSON.stringify(config)));
ok(await until(page, type => JSON.parse(document.querySelector('[data-same="request"]').textContent).model.model_type === type, config.model_type), 'a config.json that is dropped is the model');
await page.evaluate(() => { location.hash = '#trace'; });
await page.waitForSelector('#f-trace');
await drop('main', 'trace.json.gz', readFileSync(join(here, '../data/traces/small_gpt2_train.json.gz')));
ok(await until(page, () => document.querySelector('[data-card="operators"] tbody tr')), 'a trace that is dropped is read');

// Without a network: the files are kept once the service worker has them all.
ok(await until(page, async () => !!(await navigator.serviceWorker.getRegistration())?.active), 'a service worker keeps the files');
server.closeAllConnections();
await new Promise(done => server.close(done));
asked = 0;
const later = await context.newPage();
later.on('pageerror', error => said.push(error.stack ?? error.message));
await later.goto(`${origin}/#step?model=gpt2&gpu=a100_sxm_80gb&batch=3`);
const opened = await later.waitForSelector('[data-card="roofline"] svg.picture circle.dot', { timeout: 60000 }).then(() => true, () => false);
ok(opened && asked === 0, 'without a network the page opens and answers', asked);
ok(!said.length, 'in silence', said.join('\n'));
console.log(`1..${number}`);
await browser.close();
process.exit(failed ? 1 : 0);
