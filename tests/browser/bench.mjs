// How long the page takes, in headless Chromium: node tests/browser/bench.mjs FOLDER FORETELL
//
// First paint of a first visit; from a slider's event to the last picture in sight, answered
// in the browser and by `foretell web`, and what it takes of processors, which other programs on the machine hardly change. Every
// movement asks for what was not asked before.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize, resolve } from 'node:path';

const [given, foretell] = process.argv.slice(2), folder = resolve(given);
const chromium = ['chromium', 'chromium-browser', 'google-chrome'].map(n => spawnSync('sh', ['-c', `command -v ${n}`], { encoding: 'utf8' }).stdout.trim()).find(Boolean);
const playwright = await import('playwright-core').catch(() => null);
if (!chromium || !playwright || !existsSync(join(folder, 'index.html'))) {
  console.log('the page: not measured (make web, scripts/setup test)');
  process.exit(0);
}
const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.svg': 'image/svg+xml', '.wasm': 'application/wasm' };
const server = createServer((asked, answer) => {
  const file = join(folder, normalize(new URL(asked.url, 'http://x').pathname).replace(/\/$/, '/index.html'));
  if (!file.startsWith(folder) || !existsSync(file)) return void answer.writeHead(404).end();
  answer.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
  answer.end(readFileSync(file));
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox'] });
const movements = Number(process.env.MOVEMENTS ?? 48);

async function measure(origin, who) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, serviceWorkers: 'block' });
  const page = await context.newPage();
  await page.goto(`${origin}/#step?model=gpt2&gpu=h100_sxm&batch=4&seq=1024`);
  await page.waitForSelector('[data-card="timeline"] svg.picture rect', { timeout: 60000 });
  const { paint, shown } = await page.evaluate(() => ({ paint: performance.getEntriesByType('paint').find(e => e.name === 'first-contentful-paint')?.startTime, shown: performance.now() }));
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable');
  const spent = async () => Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map(m => [m.name, m.value]));
  await new Promise(done => setTimeout(done, 3000)); // what waits for a slider's rest is done
  const before = await spent();
  // A drag: movement after movement, each as soon as the last is drawn, so that nothing is counted but what a drag costs.
  const rows = await page.evaluate(async many => {
    const out = [], work = globalThis.foretellWork;
    const slider = document.querySelector('#f-batch'), length = document.querySelector('#f-seq');
    const put = (field, value) => { field.value = value; field.dispatchEvent(new Event('input', { bubbles: true })); };
    let drawn = () => {}; // no turning round and round: that would be counted
    new MutationObserver(() => drawn()).observe(document.querySelector('[data-card="timeline"] svg.picture'), { childList: true });
    const places = Number(slider.max), rest = work.rest;
    work.rest = 1e6; // a drag that goes on
    for (let i = 0; i < many; i++) {
      const seen = work.pictures, begin = performance.now();
      if (i % places === places - 1) put(length, String(Math.max(1, Number(length.value) - 1)));
      else put(slider, String((Number(slider.value) + 1) % (places + 1)));
      await Promise.race([new Promise(done => { drawn = done; }), new Promise(done => setTimeout(done, 3000))]);
      await new Promise(requestAnimationFrame);
      if (work.pictures > seen) out.push([work.last - begin, work.asked - begin, work.came - work.asked, work.last - work.came]);
    }
    work.rest = rest;
    return out;
  }, movements);
  const after = await spent(), each = key => (1e3 * (after[key] - before[key])) / rows.length;
  rows.sort((a, b) => a[0] - b[0]);
  const least = k => Math.min(...rows.map(r => r[k])), at = share => rows[Math.min(rows.length - 1, Math.floor(share * rows.length))][0];
  console.log(`${who}: first paint ${paint.toFixed(0)} ms, first pictures ${shown.toFixed(0)} ms; ${rows.length} movements drawn after ${least(0).toFixed(1)} ms at least, ` +
    `${at(0.5).toFixed(1)} in the middle, ${at(0.95).toFixed(1)} at the 95th percentile; of processors each takes ${each('ThreadTime').toFixed(1)} ms on the page's thread, ` +
    `${each('ProcessTime').toFixed(1)} with its workers (script ${each('ScriptDuration').toFixed(1)}, style and layout ${(each('LayoutDuration') + each('RecalcStyleDuration')).toFixed(1)} as the clock ran)`);
  await context.close();
}
await measure(`http://127.0.0.1:${server.address().port}`, 'the page, answered in the browser');
if (foretell) {
  const program = spawn(foretell, ['web', '--port', '0', '--page', folder], { stdio: ['ignore', 'pipe', 'ignore'] });
  const address = await new Promise(done => { let text = ''; program.stdout.on('data', d => { text += d; if (text.includes('\n')) done(text.split('\n')[0].trim().replace(/\/$/, '')); }); program.on('close', () => done('')); });
  if (address) await measure(address, 'the page, answered by the server');
  program.kill('SIGINT');
}
await browser.close();
server.close();
