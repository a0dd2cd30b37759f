// How long the page takes, in headless Chromium: node tests/browser/bench.mjs FOLDER FORETELL
//
// First paint of a first visit; from a slider's event to the end of the frame in which step and interval, timeline, roofline and
// memory all show what it asked for, answered in the browser and by `foretell web`; and what that takes of processors, part by part,
// which other programs on the machine hardly change; how long after a movement that comes to rest nothing changes any more. Every
// movement asks for what was not asked before, and all pictures are in sight. The screen's clock is switched off: at 60 frames a second what is ready waits for the next one, up to 16.7 ms more
// (CLOCK=60 measures with it).
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium, serve } from './start.mjs';

const [given, foretell] = process.argv.slice(2), folder = resolve(given);
const playwright = await import('playwright-core').catch(() => null);
if (!chromium || !playwright || !existsSync(join(folder, 'index.html'))) {
  console.log('the page: not measured (make web, scripts/setup test)');
  process.exit(0);
}
const { server, origin: home } = await serve(folder);
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox', ...(process.env.CLOCK ? [] : ['--disable-gpu-vsync', '--disable-frame-rate-limit'])] });
const movements = Number(process.env.MOVEMENTS ?? 48);

// A drag, in the page: a movement, its frame, 40 ms in which the screen gets it, the next.
async function drag(many) {
  const out = [], work = globalThis.foretellWork;
  const slider = document.querySelector('#f-batch'), length = document.querySelector('#f-seq');
  const put = (field, value) => { field.value = value; field.dispatchEvent(new Event('input', { bubbles: true })); };
  const painted = () => new Promise(done => requestAnimationFrame(() => { // a message is heard once the frame is laid out and painted
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(0);
  }));
  const places = ['.figures', ...['timeline', 'roofline', 'memory'].map(card => `[data-card="${card}"] svg.picture`)].map(at => document.querySelector(at));
  const fresh = new Set();
  let all = () => {};
  for (const place of places)
    new MutationObserver(() => { if (fresh.add(place).size === places.length) all(); }).observe(place, { childList: true, characterData: true, attributes: place !== places[0], subtree: true });
  const stops = Number(slider.max), rest = work.rest, says = () => places[0].textContent;
  work.rest = 1e6; // a drag that goes on
  for (let i = 0; i < many + 2; i++) {
    const before = says();
    await new Promise(done => setTimeout(done, 40));
    fresh.clear();
    const drawn = new Promise((done, fail) => { all = done; setTimeout(() => fail(new Error('not drawn within 600 s')), 600000); });
    const begin = performance.now();
    if (i % stops === stops - 1) put(length, String(Math.max(1, Number(length.value) - 1)));
    else put(slider, String((Number(slider.value) + 1) % (stops + 1)));
    await drawn;
    const there = performance.now(), end = await painted();
    if (says() === before) throw new Error('a frame shows what was before');
    if (i > 1) out.push([end - begin, work.asked - begin, work.came - work.asked, there - work.came, end - there]); // the first two warm up
  }
  work.rest = rest;
  return out;
}

// Behind the drag, in the page: movements that come to rest. Until nothing is drawn any more, also what is out of sight: words at
// the marks, the table of kernels, advice, the address; without what a screen reader hears.
async function rests(many) {
  const took = [], slider = document.querySelector('#f-batch'), sleep = ms => new Promise(done => setTimeout(done, ms));
  for (let i = 0; i < many; i++) {
    const begin = performance.now();
    let last = begin;
    const watch = new MutationObserver(all => { if (!all.every(one => one.target.closest?.('[data-spoken]') ?? one.target.parentElement?.closest('[data-spoken]'))) last = performance.now(); });
    watch.observe(document.querySelector('main'), { childList: true, characterData: true, attributes: true, subtree: true });
    slider.value = String((Number(slider.value) + 1) % (Number(slider.max) + 1));
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    while (performance.now() - last < 400 || performance.now() - begin < 600) await sleep(20);
    watch.disconnect();
    took.push(last - begin);
  }
  return took.sort((a, b) => a - b)[many >> 1];
}

// Processor time of each movement by part, of what Chromium says of itself: each piece without those inside it.
const parts = { ParseHTML: 'parsing', UpdateLayoutTree: 'style', Layout: 'layout', PrePaint: 'paint', Paint: 'paint', Layerize: 'paint', Commit: 'paint', RasterTask: 'raster', RunTask: 'other' };
function byPart(trace, many) {
  const names = new Map(), threads = new Map(), sum = {};
  for (const e of trace.traceEvents) {
    const thread = `${e.pid} ${e.tid}`;
    if (e.name === 'thread_name') names.set(thread, e.args.name);
    else if (e.ph === 'X' && e.dur !== undefined) threads.set(thread, [...(threads.get(thread) ?? []), e]);
  }
  for (const [thread, events] of threads) {
    const name = names.get(thread) ?? '', open = [];
    if (!/CrRendererMain|DedicatedWorker|ThreadPool|CompositorTile/.test(name)) continue;
    events.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
    for (const e of events) {
      while (open.length && open.at(-1).end <= e.ts) open.pop();
      const part = name.includes('Worker thread') ? 'library' : /ThreadPool|Tile/.test(name) ? parts[e.name] === 'raster' ? 'raster' : null : parts[e.name] ?? (/Function|Microtasks|Event|Fire/.test(e.name) ? 'script' : open.at(-1)?.part ?? 'other');
      if (part) sum[part] = (sum[part] ?? 0) + (e.tdur ?? 0);
      const over = open.at(-1);
      if (over?.part) sum[over.part] -= e.tdur ?? 0;
      open.push({ end: e.ts + e.dur, part });
    }
  }
  return ['library', 'script', 'parsing', 'style', 'layout', 'paint', 'raster'].map(part => `${part} ${((sum[part] ?? 0) / 1e3 / many).toFixed(1)}`).join(', ');
}

async function measure(origin, who) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 1440 }, serviceWorkers: 'block' });
  const page = await context.newPage();
  await page.goto(`${origin}/#step?model=gpt2&gpu=h100_sxm&batch=4&seq=1024`);
  await page.waitForSelector('[data-card="timeline"] svg.picture rect', { timeout: 600000 });
  const shown = await page.evaluate(() => performance.now());
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable');
  const spent = async () => Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map(m => [m.name, m.value]));
  await new Promise(done => setTimeout(done, 3000)); // what waits for a slider's rest is done, and when it was painted is said
  const paint = await page.evaluate(() => performance.getEntriesByType('paint').find(e => e.name === 'first-contentful-paint').startTime);
  const before = await spent(), rows = await page.evaluate(drag, movements), after = await spent();
  const each = key => ((1e3 * (after[key] - before[key])) / (rows.length + 2)).toFixed(1);
  const at = (share, k = 0) => rows.map(r => r[k]).sort((a, b) => a - b)[Math.min(rows.length - 1, Math.floor(share * rows.length))].toFixed(1);
  console.log(`${who}: first paint ${paint.toFixed(0)} ms, first pictures ${shown.toFixed(0)} ms; ${rows.length} movements, each to the end of its frame: median ${at(0.5)} ms, 95th percentile ${at(0.95)}, least ${at(0)}`);
  console.log(`  of the median: asked ${at(0.5, 1)}, answered ${at(0.5, 2)}, put in place ${at(0.5, 3)}, laid out and painted ${at(0.5, 4)} ms; processor time ${each('ThreadTime')} ms on the page's thread, ${each('ProcessTime')} with workers and raster`);
  await new Promise(done => setTimeout(done, 1000));
  console.log(`  all else of a movement that comes to rest, also what is out of sight, ${(await page.evaluate(rests, 7)).toFixed(0)} ms after its event, ${await page.evaluate(() => globalThis.foretellWork.rest)} of which it waits`);
  await browser.startTracing(page, { categories: ['devtools.timeline', 'disabled-by-default-devtools.timeline'] });
  await page.evaluate(drag, 16);
  console.log(`  processor time by part, ms of a movement: ${byPart(JSON.parse((await browser.stopTracing()).toString()), 18)}`);
  await context.close();
}
await measure(home, 'the page, answered in the browser');
if (foretell) {
  const program = spawn(foretell, ['web', '--port', '0', '--page', folder], { stdio: ['ignore', 'pipe', 'ignore'] });
  const address = await new Promise(done => { let text = ''; program.stdout.on('data', d => { text += d; if (text.includes('\n')) done(text.split('\n')[0].trim().replace(/\/$/, '')); }); program.on('close', () => done('')); });
  if (address) await measure(address, 'the page, answered by the server');
  program.kill('SIGINT');
}
await browser.close();
server.close();
