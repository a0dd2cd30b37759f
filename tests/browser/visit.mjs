// A first visit, and one without a network: node tests/browser/visit.mjs FOLDER
//
// FOLDER holds what `make web` builds. Its size on the wire; examples, and the bar that runs while the predictor comes slowly; a
// config.json and a trace that are dropped; numbers that a click selects; a new release; then the server is stopped, and the page
// opens again and answers what was not asked before.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { asked as fileOf, browserOrSkip, chromium, here, listen, ok, skip, tally, typeOf } from './start.mjs';
import { config } from './views.mjs';
import { most } from '../../web/packing.mjs';

const folder = resolve(process.argv[2]), playwright = await browserOrSkip();
if (!existsSync(join(folder, 'index.html'))) skip('run make web first');

const until = async (page, condition, given, most = 600000) => {
  for (const end = Date.now() + most; ; await new Promise(done => setTimeout(done, 20))) {
    const found = await page.evaluate(condition, given);
    if (found || Date.now() > end) return found;
  }
};

const sizes = readdirSync(folder).map(name => {
  const bytes = readFileSync(join(folder, name));
  return [name, name.endsWith('.gz') ? bytes.length : gzipSync(bytes, { level: 9 }).length];
});
const packed = sizes.reduce((sum, [, bytes]) => sum + bytes, 0);
ok(packed < most, `all files together are under ${most / 1e6} MB on the wire`, [`${packed} bytes`, ...sizes.map(([name, bytes]) => `${name} ${bytes}`)].join('\n'));
console.log(`# ${(packed / 1e6).toFixed(2)} MB on the wire`);

// A plain file server; the predictor comes in five pieces, each when the test has let it go, however slow the machine is.
let asked = 0, let_go = 0, released = false;
/** A later release: other words on the page, and other files of another name for its service worker. */
const newer = (file, bytes) => !released ? bytes
  : file.endsWith('app.js') ? Buffer.from(bytes.toString().replaceAll('Examples', 'Samples'))
  : file.endsWith('service.js') ? Buffer.from(bytes.toString().replace(/[0-9a-f]{16}/, '0123456789abcdef')) : bytes;
const server = createServer(async (request, answer) => {
  asked++;
  const file = fileOf(folder, request);
  if (!file) return void answer.writeHead(404).end();
  const bytes = newer(file, readFileSync(file)), pieces = file.endsWith('predictor.bin.gz') && !request.headers['cache-control'] ? 5 : 1;
  answer.writeHead(200, { 'content-type': typeOf(file), 'content-length': bytes.length });
  for (let at = 0, piece = Math.ceil(bytes.length / pieces), n = 1; at < bytes.length; at += piece, n++) {
    while (pieces > 1 && n > let_go) await new Promise(done => setTimeout(done, 5));
    answer.write(bytes.subarray(at, at + piece));
  }
  answer.end();
});
const { origin } = await listen(server);
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
ok(await until(page, type => JSON.parse(document.querySelector('[data-same="request"]')?.textContent || '{}').model?.model_type === type, config.model_type), 'a config.json that is dropped is the model');
await page.evaluate(() => { location.hash = '#trace'; });
await page.waitForSelector('#f-trace');
await drop('main', 'trace.json.gz', readFileSync(join(here, '../data/traces/small_gpt2_train.json.gz')));
ok(await until(page, () => document.querySelector('[data-card="operators"] tbody tr')), 'a trace that is dropped is read');

// Without a network: the files are kept once the service worker has them all.
ok(await until(page, async () => !!(await navigator.serviceWorker.getRegistration())?.active), 'a service worker keeps the files');
// A new release: pages that are open keep theirs, and it takes over once they are closed.
released = true;
const word = one => one.waitForSelector('main.body h1').then(() => one.innerText('details.examples summary'));
const beside = await context.newPage();
await beside.goto(`${origin}/`);
ok(await word(beside) === 'Examples' && await until(beside, async () => !!(await navigator.serviceWorker.getRegistration())?.waiting), 'a page keeps its version while a new one is fetched');
await beside.close();
await page.close();
let came = '';
for (let i = 0; i < 50 && came !== 'Samples'; i++) {
  const next = await context.newPage();
  await next.goto(`${origin}/`);
  came = await word(next);
  await next.close();
}
ok(came === 'Samples', 'a later visit has the new release', came);
server.closeAllConnections();
await new Promise(done => server.close(done));
asked = 0;
const later = await context.newPage();
later.on('pageerror', error => said.push(error.stack ?? error.message));
await later.goto(`${origin}/#step?model=gpt2&gpu=a100_sxm_80gb&batch=3`);
const opened = await later.waitForSelector('[data-card="roofline"] svg.picture circle.dot', { timeout: 600000 }).then(() => true, () => false);
ok(opened && asked === 0, 'without a network the page opens and answers', asked);
ok(!said.length, 'in silence', said.join('\n'));
console.log(`1..${tally.said}`);
await browser.close();
process.exit(tally.failed ? 1 : 0);
