// The page in headless Chromium: node tests/browser/page.mjs FOLDER FORETELL [--update]
//
// FOLDER holds what `make web` builds; it is served from here, under the Content-Security-Policy that `foretell web`
// sends, so that what a strict policy refuses fails here. Every view is opened wide and light, narrow and dark: no message, no
// request off the origin, no violation by axe-core, nothing that stands out of the page, no label over another. Two are held
// against pictures under reference/ (small and blurred: fonts differ from machine to machine), which --update takes anew. What
// each view must show is in views.mjs; shots.mjs takes all of them for people to look at.
// Then the page is driven by mouse and keyboard, and what it shows is held against the program's own answers; at last
// `foretell web` serves it. How long painting and drawing took is printed, not judged.
// Over 400 lines: one visit, one thing after the other.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { axeScope, badLabels } from './labels.mjs';
import { dotsLookAlike, fromLibrary } from './pictures.mjs';
import { fromReference } from './reference.mjs';
import { browserOrSkip, chromium, here, ok, serve, skip, tally } from './start.mjs';
import { config, views } from './views.mjs';

const [folder, foretell, update] = process.argv.slice(2);
if (!existsSync(join(folder, 'index.html')) || !existsSync(join(here, '../../web/node_modules'))) skip('run make web first');
const playwright = await browserOrSkip();
const axe = readFileSync(join(here, 'node_modules/axe-core/axe.min.js'), 'utf8');

const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data:; object-src 'none'; base-uri 'none'";
const { server, origin } = await serve(resolve(folder), { 'content-security-policy': policy });

const asks = request => JSON.parse(spawnSync(foretell, ['batch'], { input: `${JSON.stringify(request)}\n`, encoding: 'utf8' }).stdout);

// Numbers for people (web/page/format.ts).
const web = join(here, '../../web');
const esbuild = createRequire(join(web, 'package.json'))('esbuild');
const made = await esbuild.build({ entryPoints: [join(web, 'page/format.ts')], bundle: true, write: false, format: 'esm' });
const say = await import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString('base64')}`);
for (const [told, expected] of [[say.count(9870), '9870'], [say.count(46900), '46.9 k'], [say.count(8.03e9), '8.03 B'], [say.count(1e12), '1.00 T'],
  [say.ms(0.0123), '12.3 µs'], [say.ms(999.94, 4), '999.9 ms'], [say.ms(36100), '36.1 s'], [say.interval(529.4, 800.2, 620), '529–800 ms'], [say.interval(-11.542, 13.299, 0.878), '\u221211.5–13.3 ms'],
  [say.bytes(2 ** 30), '1.00 GiB'], [say.percent(0.347, 3), '34.7 %'], [say.percent(0.0002), '0 %'], [say.whole(65536), '65\u202f536'], [say.figure(-3.55), '\u22123.55'], [say.figure(NaN), '–']])
  ok(told === expected, `a number is written ${expected}`, told);

const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox'] });
const open = async (width, theme, hash, from = origin) => {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, acceptDownloads: true, serviceWorkers: 'block' });
  const page = await context.newPage();
  const said = [];
  page.on('console', message => { if (!/blocked by Playwright/.test(message.text())) said.push(message.text()); }); // our own block
  page.on('pageerror', error => said.push(error.stack ?? error.message));
  page.on('request', request => { if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(from)) said.push(`asked ${request.url()}`); });
  await page.goto(`${from}/${hash}`);
  await page.waitForSelector('main.body h1', { timeout: 600000 });
  return { context, page, said };
};
// Asked from here: a page under a strict policy evaluates nothing by itself.
const until = async (page, condition, given, most = 600000) => {
  for (const end = Date.now() + most; ; await new Promise(done => setTimeout(done, 40))) {
    if (await page.evaluate(condition, given)) return;
    if (Date.now() > end) throw new Error(`waited in vain for ${condition}`);
  }
};
const go = (page, hash) => page.evaluate(to => { location.hash = to; }, hash);
// All cards there, with their data.
const shown = (page, pictures, tables) => until(page, ([wanted, rows]) =>
  Object.entries(wanted).every(([card, [mark, least]]) => document.querySelectorAll(`[data-card="${card}"] svg.picture ${mark}`).length >= least) &&
  rows.every(card => document.querySelector(`[data-card="${card}"] :is(tbody tr, .changes li)`)), [pictures, tables]);

const looker = await (await browser.newContext()).newPage();
const likeReference = async (page, name, width) => {
  const file = join(here, `reference/${name}.png`);
  const away = await fromReference(looker, (await page.screenshot()).toString('base64'), file, width > 1000 ? 160 : 78, update);
  ok(existsSync(file) && away < 6, `${name}: looks as in the reference`, `${away.toFixed(1)} of 255 away; look at it, then run with --update`);
};
for (const [width, theme] of [[1280, 'light'], [390, 'dark'], [2560, 'dark']]) {
  const { context, page, said } = await open(width, theme, views.step[0]);
  for (const [name, [hash, pictures, tables]] of Object.entries(views)) {
    if (width === 2560 && !['step', 'layout'].includes(name)) continue;
    const what = `${name} at ${width}, ${theme}`;
    await go(page, hash);
    let lacks = '';
    await shown(page, pictures, tables).catch(error => { lacks = error.message; });
    ok(!lacks, `${what}: every card has its data`, lacks || (await page.evaluate(() => document.querySelector('main').innerText)).slice(0, 500));
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    const bad = await page.evaluate(badLabels);
    ok(over <= 0 && !bad.length, `${what}: nothing overlaps or stands out`, [`${over} px`, ...bad].join('\n'));
    if (width === 1280) {
      const lacks = await page.evaluate(() => [...document.querySelectorAll('[data-card]')].flatMap(card => {
        const has = word => [...card.querySelectorAll('header button')].some(b => b.textContent.trim() === word);
        return [card.querySelector('svg.picture') && !(has('SVG') && has('PNG')) && `${card.dataset.card}: no SVG, PNG`,
          card.querySelector('tbody tr') && !has('CSV') && `${card.dataset.card}: no CSV`].filter(Boolean);
      }));
      ok(!lacks.length, `${what}: every picture is there as SVG and PNG, every table as CSV`, lacks.join('\n'));
      const twice = await page.evaluate(() => [...document.querySelectorAll('[data-card]')].flatMap(card =>
        [...card.querySelectorAll('button[aria-label]')].map(b => b.getAttribute('aria-label')).filter((one, i, all) => all.indexOf(one) !== i)));
      ok(!twice.length, `${what}: no two buttons of a card say the same`, twice.join('\n'));
    }
    if (width !== 2560) {
      await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
      await page.evaluate(axe);
      const found = await page.evaluate(scope => axe.run(scope, { resultTypes: ['violations'] }), axeScope);
      ok(!found.violations.length, `${what}: axe finds nothing`,
        found.violations.map(v => `${v.id}: ${v.help}: ${v.nodes[0].html.slice(0, 200)} (${v.nodes.length})`).join('\n'));
    }
    ok(!said.length, `${what}: in silence`, said.splice(0).join('\n'));
    if (['step', 'kernel'].includes(name) && width !== 2560) {
      await page.evaluate(() => { document.querySelectorAll('details').forEach(d => { d.open = innerWidth > 820 && !!d.closest('.side') && !d.classList.contains('more'); }); scrollTo(0, 0); });
      await likeReference(page, `page-${name}-${width}-${theme}`, width);
    }
  }
  if (width === 1280) {
    const paint = await page.evaluate(() => performance.getEntriesByType('paint').find(e => e.name === 'first-contentful-paint')?.startTime);
    console.log(`# first paint after ${paint?.toFixed(0)} ms`);
  }
  const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  ok((paper === 'rgb(255, 255, 255)') === (theme === 'light'), `${theme} at ${width}: has its theme`, paper);
  await page.emulateMedia({ media: 'print' });
  const printed = await page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('h1')).color,
    [...document.querySelectorAll('.tools, .side, .card button')].filter(e => !e.closest('th, td') && e.checkVisibility()).length].join(' '));
  ok(printed === 'rgb(255, 255, 255) rgb(27, 33, 39) 0', `${theme} at ${width}: on paper it is light, with nothing to click`, printed);
  await context.close();
}

// -- driven ------------------------------------------------------------------------------------------
const { context, page, said } = await open(1280, 'light', '#step?model=gpt2&gpu=h100_sxm&batch=4&seq=1024');
const is = key => page.evaluate(k => new URLSearchParams(location.hash.split('?')[1]).get(k), key);
const request = async () => JSON.parse(await page.textContent('[data-same="request"]'));
const figure = name => page.locator('.figures > div', { has: page.locator(`dt:text-is("${name}")`) }).locator('dd.big');
// The figure on the page is that of the program's answer to the request on the page.
const agrees = async what => {
  const of = await request(), answer = asks(of);
  const digits = (await figure('step').locator('> span').first().innerText()).replace(/[^\d.]/g, '');
  const unit = { µs: 1e-3, ms: 1, s: 1e3 }[(await figure('step').locator('small').innerText()).trim()];
  ok(Math.abs(Number(digits) * unit / answer.step_ms - 1) < 2e-3, `${what}: the page shows the program's answer`, `${digits} × ${unit}, ${answer.step_ms} of ${JSON.stringify(of)}`);
  return of;
};
await shown(page, views.step[1], views.step[2]);
await agrees('a step');

await page.focus('#f-batch');
for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight');
await until(page, () => new URLSearchParams(location.hash.split('?')[1]).get('batch') === '12');
ok(true, 'arrow keys move a slider, and the address follows when it rests');
await until(page, () => JSON.parse(document.querySelector('[data-same="request"]')?.textContent || '{}').batch === 12);
await agrees('the keyboard');
const spoken = async () => (await page.textContent('[data-spoken]')).replaceAll('\u202f', '');
await until(page, () => document.querySelector('[data-spoken]')?.textContent.includes(document.querySelector('.figures dd.big > span')?.textContent ?? '?'));
ok(/: step [\d.]+ m?s.*in 9 of 10 cases; .*memory at its peak [\d.]+ GiB, fits/.test(await spoken()), 'a screen reader hears the answer once the slider rests', await spoken());
await page.evaluate(() => document.querySelector('button, a[href], input, select').focus());
await page.keyboard.press('Enter');
await page.keyboard.press('Tab');
ok(await page.evaluate(() => !!document.activeElement.closest('main.body')), 'the first key stop leads past the settings', await page.evaluate(() => document.activeElement.outerHTML.slice(0, 200)));
await page.focus('#f-batch');
await page.evaluate(() => { // one movement, however slow the machine is between keys
  const slider = document.querySelector('#f-batch');
  for (const value of ['5', '6', '7']) { slider.value = value; slider.dispatchEvent(new Event('input', { bubbles: true })); }
});
await until(page, () => new URLSearchParams(location.hash.split('?')[1]).get('batch') === '16'); // the address of its rest
const moved = await is('batch');
await page.keyboard.press('Control+z');
ok(['4', '6', '8', '12'].includes(await is('batch')) && moved !== await is('batch'), 'Ctrl+Z takes the whole movement back', `${moved}, ${await is('batch')}`);
await page.click('text=Redo');
ok(await is('batch') === moved, 'Redo brings it again', await is('batch'));

for (const value of ['0', '9', '3', '14', '6', '1', '11', '2']) // only the newest matters
  await page.$eval('#f-batch', (slider, v) => { slider.value = v; slider.dispatchEvent(new Event('input', { bubbles: true })); }, value);
await until(page, () => JSON.parse(document.querySelector('[data-same="request"]')?.textContent || '{}').batch === 3);
await agrees('a slider that was dragged');

// From the slider's event to the last picture in sight: what it took, and the work that was done, which no machine's speed
// decides. Every movement asks what was not asked before.
const redraw = (at, from) => at.evaluate(async first => {
  const took = [], work = globalThis.foretellWork, slider = document.querySelector('#f-batch');
  const sleep = ms => new Promise(done => setTimeout(done, ms));
  const start = { ...work }, moves = 12;
  for (let i = 0; i < moves; i++) {
    await sleep(450); // what waits for the slider's rest is done
    const before = work.pictures, begin = performance.now();
    slider.value = String(first + i);
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    while (work.pictures === before && performance.now() - begin < 600000) await sleep(1);
    await sleep(60);
    took.push(work.last - begin);
  }
  took.sort((a, b) => a - b);
  // Over all movements: on a busy machine a picture may come late, but never once more.
  const of = what => (work[what] - start[what]) / moves;
  return { median: took[moves >> 1], worst: took[moves - 1], pictures: of('pictures'), elements: of('elements') };
}, from);
const drawn = await redraw(page, 3); // where it stands nothing would be drawn, and waited for in vain
console.log(`# a slider's movement is drawn after ${drawn.median.toFixed(1)} ms in the middle, ${drawn.worst.toFixed(1)} at most, answered in the browser`);
ok(drawn.pictures >= 1 && drawn.pictures <= 10 && drawn.elements < 2500, 'a movement draws each of the five pictures once, and once more with words when the slider rests', JSON.stringify(drawn));

// A drag of forty movements: the answers between are never asked, and no picture is drawn for them.
const dragged = await page.evaluate(async () => {
  const slider = document.querySelector('#f-batch'), before = { ...globalThis.foretellWork };
  for (let i = 0; i < 40; i++) { slider.value = String(3 + i % 9); slider.dispatchEvent(new Event('input', { bubbles: true })); }
  await new Promise(done => setTimeout(done, 900));
  return globalThis.foretellWork.pictures - before.pictures;
});
ok(dragged <= 15, 'of forty movements in one go only the first and the last are drawn, the last once more with words at its marks', dragged);

const { detail: _kernels, ...stepOf } = await request();
const differ = await fromLibrary(page, stepOf, asks);
ok(!differ.length, 'pictures that changed under a slider are those that the library draws', differ.join('\n'));

// What is on the page is what the library draws, element by element.
const shows = await page.evaluate(() => {
  const svg = document.querySelector('[data-card="roofline"] svg.picture');
  return { width: svg.viewBox.baseVal.width, marks: [...svg.querySelectorAll('circle.dot')].map(c => `${c.getAttribute('cx')} ${c.getAttribute('cy')} ${c.getAttribute('r')}`) };
});
const { detail: _detail, ...of } = await request();
const library = asks({ task: 'draw', of, pictures: [{ what: 'roofline', width: shows.width, embed: true, name: 'roofline' }] }).pictures[0];
ok(shows.marks.length > 20 && shows.marks.every(m => { const [x, y, r] = m.split(' '); return library.includes(`cx="${x}" cy="${y}" r="${r}"`); }),
  'a picture on the page is the one that the library draws', shows.marks.slice(0, 3).join('\n'));

const [alike, unlike] = await dotsLookAlike(looker, of, asks);
ok(alike, 'dots that share paths while a slider moves look as they do alone', unlike);

// The pointer: words and a ring at a dot, its row in the table lit; a moment of the memory with what is in it.
const over = async (card, mark) => {
  const target = page.locator(`[data-card="${card}"] svg.picture ${mark}`).first();
  await target.scrollIntoViewIfNeeded();
  await target.hover({ force: true });
  const tip = page.locator(`[data-card="${card}"] .tip`);
  await tip.waitFor({ state: 'visible' });
  return tip.innerText();
};
ok(/TFLOP\/s|GB\/s/.test(await over('roofline', 'circle.dot')) && await page.locator('[data-card="roofline"] [data-live]').count() === 1, 'a dot says what it is');
await over('memory', 'path.area');
await until(page, () => {
  const box = document.querySelector('[data-card="memory"] svg').getBoundingClientRect();
  const event = new PointerEvent('pointermove', { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true });
  document.querySelector('[data-card="memory"] .picturebox').dispatchEvent(event);
  return /weights/.test(document.querySelector('[data-card="memory"] .tip').textContent);
});
ok(true, 'a moment of the memory says what is in it');
ok(/ms/.test(await over('timeline', 'rect.forward')), 'a pass of the timeline says how long it takes');
await page.mouse.move(5, 5);

await page.fill('#f-model', 'qwen3 0.6');
await page.keyboard.press('Enter');
await until(page, () => document.querySelector('h1')?.textContent.includes('qwen3-0.6b'));
ok(await is('model') === 'qwen3-0.6b', 'the search over models takes what is typed', await is('model'));
await until(page, () => JSON.parse(document.querySelector('[data-same="request"]')?.textContent || '{}').model === 'qwen3-0.6b');
await agrees('another model');

await page.waitForSelector('[data-card="changes"] li button');
const before = await page.evaluate(() => location.hash);
await page.click('[data-card="changes"] li button');
await page.waitForSelector('.delta');
ok(await page.evaluate(() => location.hash) !== before, 'a change is applied by a click, and the difference is shown');
await page.click('text=Undo');
ok(await page.evaluate(() => location.hash) === before, 'and undone by another');

const count = () => page.locator('[data-card="kernels"] tbody tr').count();
await page.fill('[aria-label="Filter kernels"]', 'attn backward');
const rows = await page.locator('[data-card="kernels"] tbody tr').allInnerTexts();
ok(rows.length > 0 && rows.every(row => /attn/.test(row) && /backward/.test(row)), 'the table of kernels filters', rows.slice(0, 3).join('\n'));
await page.click('[data-card="kernels"] th button:text("One")');
const order = await page.locator('[data-card="kernels"] th[aria-sort]').innerText();
ok(order.includes('One') && await count() > 0, 'and sorts', order);
await page.fill('[aria-label="Filter kernels"]', '');

const svg = page.locator('[data-card="timeline"] svg.picture');
await svg.focus();
await page.keyboard.press('+');
await page.waitForSelector('text=The whole step');
ok(true, 'the timeline zooms by a key');
await until(page, () => { const words = document.querySelector('[data-card="timeline"] .plot')?.dataset.x?.split(' ') ?? []; return words[0] > 0; });
ok(await page.evaluate(() => document.activeElement?.closest('[data-card]')?.dataset.card === 'timeline'), 'and keeps the focus when it is drawn anew');
await page.keyboard.press('Escape');
await page.waitForSelector('text=The whole step', { state: 'detached' });
const wide = await svg.boundingBox();
await page.mouse.move(wide.x + wide.width * 0.4, wide.y + 90);
await page.mouse.down();
await page.mouse.move(wide.x + wide.width * 0.6, wide.y + 90, { steps: 4 });
await page.mouse.up();
await page.waitForSelector('text=The whole step');
ok(true, 'and by dragging');
await page.click('text=The whole step');

const saved = async (label, pattern) => {
  const [file] = await Promise.all([page.waitForEvent('download'), page.click(`[aria-label="${label}"]`)]);
  const bytes = readFileSync(await file.path());
  ok(pattern.test(bytes.subarray(0, 4096).toString('latin1')), `${label}: ${file.suggestedFilename()}`, bytes.subarray(0, 200).toString('latin1'));
  return bytes;
};
const drawing = (await saved('Roofline of all kernels: save as SVG', /^<svg [^>]*viewBox/)).toString();
ok(!/class=|var\(/.test(drawing) && (drawing.match(/<circle/g) ?? []).length > 20, 'a saved picture needs no style sheet', drawing.slice(0, 300));
const png = await saved('Roofline of all kernels: save as PNG', /^\x89PNG/);
ok(png.length > 5000, 'and has something on it as PNG', png.length);
const table = (await saved('Kernels: save as CSV', /^name,total_ms,op,phase,count/)).toString().trim().split('\r\n');
ok(table.length > 50, 'all kernels are in the table that is saved', table.length);

await page.evaluate(() => { document.querySelector('details.same').open = true; });
const command = await page.textContent('[data-same="command"]');
const told = spawnSync('bash', ['-c', `foretell() { "${foretell}" "$@"; }; ${command}`], { encoding: 'utf8' });
const alone = JSON.parse(told.stdout), asked = asks(await request());
ok(alone.step_ms === asked.step_ms && alone.memory.peak_bytes === asked.memory.peak_bytes, 'the command line gives the same answer', `${command}\n${told.stderr}`);
const call = (await page.textContent('[data-same="python"]')).replace(/print\(([^]*)\)$/, 'print(($1).step_ms)');
const python = spawnSync('python3', ['-c', call], { encoding: 'utf8', env: { ...process.env, PYTHONPATH: join(here, '../../python'), FORETELL_LIBRARY: join(dirname(foretell), 'libforetell.so') } });
ok(Number(python.stdout) === asked.step_ms, 'and so does the Python call', `${call}\n${python.stdout}${python.stderr}`);
const [answer] = await Promise.all([page.waitForEvent('download'), page.click('text=Save as JSON')]);
ok(readFileSync(await answer.path(), 'utf8').trim() === spawnSync(foretell, ['batch'], { input: `${JSON.stringify(await request())}\n`, encoding: 'utf8' }).stdout.trim(),
  'the answer that is saved is the program\'s to the byte');

const link = page.url();
const again = await open(1280, 'dark', link.slice(origin.length + 1));
await again.page.waitForSelector('.figures');
ok(await again.page.innerText('.figures > div:first-child') === await page.innerText('.figures > div:first-child'), 'a link brings it all back');
await again.context.close();

await go(page, '#step');
await page.click('text=Your own config.json');
await page.$eval('textarea.drop', (area, text) => { area.value = text; area.dispatchEvent(new ClipboardEvent('paste', { bubbles: true })); }, JSON.stringify(config)); // at once
await until(page, () => JSON.parse(document.querySelector('[data-same="request"]')?.textContent || '{}').model?.model_type);
await agrees('a config.json that was pasted');
await page.fill('textarea.drop', '{"model_type": ');
await page.locator('textarea.drop').blur();
await page.waitForSelector('.side [role="alert"]');
ok(true, 'a broken config.json is refused with a sentence');

// Addresses that were cut on their way, and those of people who call a GPU by another name.
for (const hash of ['#step?gpu=h100_sxm&model=%7B%22model_type%22', '#step?model=gpt2&gpu=%7B%22base%22', '#kernel?gpu=%7B%22base%22', '#gpu?model=gpt2&gpu=%7B%22base%22', '#gpu?model=gpt2&gpu=h900', '#layout?model=gpt2&gpu=h100_sxm&gpus=0', '#serve?model=gpt2&gpu=h100_sxm&slo_ttft=soon']) {
  await go(page, hash);
  await until(page, view => location.hash.startsWith(view) && document.querySelector('main [role="alert"].note') && document.querySelector('main h1').textContent, hash.split('?')[0]);
  ok(/unknown|JSON|GPU|model|must be/.test(await page.innerText('main [role="alert"].note')) && !said.length, `${decodeURIComponent(hash)}: said to be wrong`, [await page.innerText('main [role="alert"].note'), ...said.splice(0)].join('\n'));
}
await go(page, '#compare?model=gpt2&gpu=h100_sxm&pins=%5Bnull%2C%5B%5D%2C5%5D'); // kept steps that are none
await go(page, '#kernel?op=constructor&gpu=h100_sxm'); // a word that every object knows
await until(page, () => /gemm/.test(document.querySelector('main h1')?.textContent));
ok(!said.length, 'an operator that there is not is taken as the usual one', said.splice(0).join('\n'));
await go(page, '#kernel?gpu=h100_sxm&xm=256&xn=256&xk=256');
await until(page, () => /m 256/.test(document.querySelector('main h1').textContent));
ok(!said.length, 'an address written by hand does not end the page', said.splice(0).join('\n'));
await go(page, '#gpu?model=gpt2&gpu=b200');
await until(page, () => location.hash === '#gpu?model=gpt2&gpu=b200_sxm' && document.querySelector('main h1').textContent.includes('B200') && document.querySelector('#f-gpu')?.value === 'b200_sxm');
ok(true, 'a GPU that an address calls by another name has the catalogue\'s');
await go(page, '#step?model=gpt2&gpu=h100_sxm&tp=7');
await page.waitForSelector('main [role="alert"].note');
ok(/tp|heads|divide/.test(await page.innerText('main [role="alert"].note')) && !/line 1/.test(await page.innerText('main [role="alert"].note')), 'what cannot be is said in the library\'s words', await page.innerText('main [role="alert"].note'));

await page.evaluate(() => { document.querySelector('details.examples').open = true; });
const examples = page.locator('details.examples a'), aims = await examples.count();
await examples.nth(1).click();
await until(page, before => location.hash !== before, '#step?model=gpt2&gpu=h100_sxm&tp=7');
ok(aims >= 4, 'examples lead to settings worth a look', aims);

await go(page, '#serve?model=gpt2&gpu=h100_sxm&isl=64&osl=8&concurrency=4&slo_ttft=50');
await shown(page, { waits: ['polyline.curve', 2], cache: ['polyline.curve', 1] }, ['times']);
const strange = await fromLibrary(page, await request(), asks);
ok(!strange.length, 'distributions, queue and cache under load are the library\'s pictures', strange.join('\n'));

// A change of the config of a model that has a name; then what is chosen, at whose price, and why not others.
await go(page, '#step?model=gpt2&gpu=h100_sxm&task=decode&batch=8&seq=1024');
await page.click('[aria-label^="Apply: pad vocab"]');
await until(page, () => document.querySelector('h1').textContent.includes('gpt2 with vocab_size 50304') && document.querySelector('.figures .delta'));
ok(!await page.locator('main [role="alert"].note').count(), 'a model of the catalogue takes another vocabulary by a click');
await go(page, '#choose?model=gpt2&tokens=1e10&range=8:16&kinds=h100_sxm,v100_sxm_16gb&price=h100_sxm=2.5');
await until(page, () => document.querySelectorAll('[data-card="choices"] tbody tr').length === 4);
const chosen = await page.innerText('main');
ok(/\$2\.50\s+your price/.test(chosen) && /The knee of the front: \d+ × h100_sxm/.test(chosen) && /hyperscaler \$/.test(chosen) && /has no bf16/.test(chosen),
  'a choice has a price of one\'s own beside what clouds ask, the knee, and why others cannot be', chosen);
const days = asks(await request());
await page.click('text=Lay the chosen one out');
await page.waitForSelector('[data-card="plans"] tbody tr');
await until(page, gpus => location.hash.startsWith('#layout') && document.querySelector('h1').textContent.includes(`${gpus} × `), days.chosen.gpus);
ok(Math.abs(asks(await request()).step_ms / days.chosen.step_ms - 1) < 1e-4, 'and is laid out as it was chosen', `${JSON.stringify(await request())}\n${days.chosen.step_ms}`);

// What starts a plan: every file that the library writes of the best one, or of the one that is laid out.
await go(page, '#layout?model=llama-3-8b&gpu=h100_sxm&gpus=16&global_batch=64');
await until(page, () => document.querySelector('[data-launch]') && /llama-3-8b.*"global_batch":64/.test(document.querySelector('[data-answer="The plan"] [data-same="request"]')?.textContent));
const plans = async () => asks(JSON.parse(await page.textContent('[data-answer="The plan"] [data-same="request"]'))).plans;
const starts = (await plans())[0].launch, names = await page.locator('[data-card="launch"] option').evaluateAll(all => all.map(o => o.value));
ok(names.join() === Object.keys(starts).join() && names.length === 6 && await page.textContent('[data-launch]') === starts.megatron.trimEnd(),
  'what starts the best plan is there as text, by all that starts it', `${names}\n${Object.keys(starts)}`);
await page.selectOption('[data-card="launch"] select', 'srun');
await page.waitForSelector('[data-launch="srun"]');
const [script] = await Promise.all([page.waitForEvent('download'), page.click('[aria-label^="Save: Slurm"]')]);
ok(script.suggestedFilename() === 'foretell-srun.sh' && readFileSync(await script.path(), 'utf8') === starts.srun && await is('start') === 'srun',
  'a script of it is saved as the library wrote it', script.suggestedFilename());
await page.locator('[data-card="plans"] tbody tr').nth(1).locator('button').click();
await until(page, before => document.querySelector('[data-launch="srun"]')?.textContent !== before, starts.srun.trimEnd());
ok((await plans())[1].launch.srun.trimEnd() === await page.textContent('[data-launch]'), 'a plan that is applied is the one that is started', await page.textContent('[data-launch]'));
await go(page, '#choose?model=gpt2&tokens=1e12&range=8:8&kinds=h100_sxm&deadline=1h');
await until(page, () => /None meets deadline/.test(document.querySelector('main .wrong:not([role])')?.textContent ?? ''));
ok(/The quickest: 8 × h100_sxm, .* the cheapest:/.test(await page.innerText('main .note.wrong:not([role])')), 'where none is in time the quickest and the cheapest are named');

await go(page, '#gpu?gpu=h100_sxm&model=gpt2');
await page.waitForSelector('[data-card="sheet"] tbody tr');
await page.fill('#g-memory_gbps', '1000');
await page.waitForSelector('.delta');
ok(JSON.parse(await is('gpu')).memory_gbps === 1000, 'a spec of one\'s own is edited live', await is('gpu'));

await go(page, '#step?model=gpt2&gpu=h100_sxm');
await page.waitForSelector('[data-card="kernels"]');
await page.click('text=Compare with …');
await page.selectOption('#f-execution', 'compile');
await page.waitForSelector('[data-card="causes"] tbody tr');
ok(/execution compile/.test(await page.innerText('[data-card="answers"]')), 'two steps stand side by side, with why they differ');

await go(page, '#trace');
await page.setInputFiles('#f-trace', join(here, '../data/traces/small_gpt2_train.json.gz'));
await page.waitForSelector('[data-card="operators"] tbody tr', { timeout: 600000 });
ok(/step as recorded/.test(await page.innerText('main')), 'a trace is read where it was dropped');
const theme = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const light = await theme();
await page.click('text=Theme');
ok(await theme() !== light, 'the theme can be changed');
ok(!said.length, 'driven in silence', said.join('\n'));
await context.close();

// -- served by the program ---------------------------------------------------------------------------
const files = mkdtempSync(join(tmpdir(), 'foretell-page-'));
writeFileSync(join(files, 'config.json'), JSON.stringify(config));
copyFileSync(join(here, '../data/traces/small_gpt2_train.json.gz'), join(files, 'trace.json.gz'));
const program = spawn(foretell, ['web', '--port', '0', '--page', folder, '--files', files], { stdio: ['ignore', 'pipe', 'pipe'] });
const address = await new Promise(done => { let text = ''; program.stdout.on('data', d => { text += d; if (text.includes('\n')) done(text.split('\n')[0].trim().replace(/\/$/, '')); }); program.on('close', () => done('')); });
if (!address) console.log('# no server in this build: its page is not tried');
else {
  const served = await open(1280, 'light', '#step?model=gpt2&gpu=h100_sxm&batch=4&seq=1024', address), at = served.page;
  const loaded = [];
  at.on('request', r => loaded.push(new URL(r.url()).pathname));
  await shown(at, views.step[1], views.step[2]);
  ok(/foretell .* on 127\.0\.0\.1/.test(await at.innerText('.where')), 'the machine that serves the page answers', await at.innerText('.where'));
  const near = async () => /single steps in this browser/.test(await at.innerText('.where')); // written with the view
  for (let i = 0; i < 200 && !await near(); i++) await at.press('#f-batch', i % 2 ? 'ArrowLeft' : 'ArrowRight').then(() => at.waitForTimeout(300));
  ok(await near(), 'and the library follows when the page stands', loaded.join('\n'));
  await at.fill('#f-model-file', 'config.json');
  await at.keyboard.press('Enter');
  await until(at, () => JSON.parse(document.querySelector('[data-same="request"]')?.textContent || '{}').model === 'config.json');
  ok(!await at.locator('main [role="alert"].note').count(), 'a config.json of that machine is read by its path');
  await go(at, views.serve[0]);
  await shown(at, views.serve[1], views.serve[2]);
  ok(loaded.includes('/api/batch') && !await at.locator('main [role="alert"].note').count(), 'a sweep of loads is answered there');
  await go(at, '#trace?file=trace.json.gz');
  await at.waitForSelector('[data-card="operators"] tbody tr', { timeout: 600000 });
  ok(/step as recorded/.test(await at.innerText('main')), 'a trace of that machine is read by its path');
  ok(!served.said.length, 'served in silence', served.said.join('\n'));
  program.kill('SIGINT');
  await new Promise(done => program.on('close', done));
  await served.context.close();
}
rmSync(files, { recursive: true });
await browser.close();
server.close();
console.log(`1..${tally.said}`);
process.exit(tally.failed ? 1 : 0);
