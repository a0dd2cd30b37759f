// Pages of --html in headless Chromium: node tests/browser/check.mjs FORETELL [--update]
//
// Every page is made by the program under test and opened wide and light, narrow and dark; two of them in all four ways.
// It must load without a message, an error or a request; every picture must hold its data; nothing may stand out of the
// page, and no label over another; axe-core must find nothing serious. Pictures of one page are kept under reference/ to be looked at; what is compared
// with them is the layout (reference/layout.json: where sections begin and how high they are), because fonts differ
// from machine to machine. --update writes both anew.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { axeScope, badLabels } from './labels.mjs';
import { browserOrSkip, chromium, here, ok, tally } from './start.mjs';

const [foretell, update] = [process.argv[2], process.argv.includes('--update')];

const playwright = await browserOrSkip();
const axe = readFileSync(join(here, 'node_modules/axe-core/axe.min.js'), 'utf8');

const pages = {
  train: 'train gpt2 --gpu h200_sxm -b 8',
  many: 'train llama-3-70b --gpu h100_sxm --tp 8 --pp 4 --dp 2 --global-batch-size 32 --zero 1',
  full: 'train llama-3-8b --gpu l4 -b 4 --seq 4096', // does not fit
  vision: 'train resnet-50 --gpu a100_sxm_80gb -b 64',
  scale: 'scale llama-3-8b --gpu h100_sxm --gpus 64',
  infer: 'infer llama-3-8b --gpu h100_sxm --isl 1024 --osl 128',
  kernel: 'kernel gemm -m 4096 -n 4096 -k 4096 --gpu h100_sxm',
  gpus: 'kernel softmax --rows 4096 --cols 4096 --gpu h100_sxm --gpu a100_sxm_80gb --gpu mi300x',
  sweep: 'kernel gemm -m 512 -k 1024 --sweep n=64:8192:64 --gpu h100_sxm',
  boards: 'train gpt2 --gpu h100_sxm --gpu a100_sxm_80gb --gpu mi300x',
  range: 'train gpt2 --gpu h100_sxm --sweep batch=1:32:x2',
  ranges: 'infer gpt2 --gpu h100_sxm --gpu l4 --sweep seq=256:1024:256',
  compare: `compare ${['eager', 'compiled'].map(name => join(here, '../../examples/requests', `${name}.json`)).join(' ')}`,
  largest: 'largest --gpu h100_sxm --gpus 8',
  huge: 'train llama-3.1-405b --gpu h100_sxm --gpus 16384 --tp 8 --pp 16 --sp --zero 1 --seq 8192 --global-batch-size 2048 -x fused',
};
// Pictures that each page must hold, with what must be in them at least.
const step = ['phases', 'timeline', 'roofline', 'memory', 'layers', 'classes', 'scaling', 'intervals'];
const pictures = {
  train: step, many: [...step, 'stages'], full: step, vision: step,
  scale: ['scaling', 'parts'], infer: ['steps', 'rates', 'prefills', 'roofline'], kernel: ['roofline', 'intervals'],
  gpus: ['gpus', 'intervals'], sweep: ['sweep', 'rates'], boards: ['gpus', 'intervals'], range: ['sweep'], ranges: ['sweep'],
  huge: [...step, 'stages'], compare: ['times', 'memories'], largest: ['fits', 'phases', 'classes'],
};
const marks = {
  phases: ['rect title', 3], timeline: ['rect title', 20], roofline: ['circle.dot', 1], memory: ['path.area', 3],
  layers: ['rect title', 3], classes: ['rect title', 3], intervals: ['circle.range', 1],
  stages: ['rect title', 60], scaling: ['circle.point', 4], parts: ['rect title', 4],
  steps: ['circle.point', 6], rates: ['polyline.curve', 1], prefills: ['circle.point', 6], gpus: ['rect title', 3],
  sweep: ['polyline.curve', 1], times: ['rect title', 4], memories: ['rect title', 6], fits: ['rect title', 4],
};


const folder = mkdtempSync(join(tmpdir(), 'foretell-browser-'));
const expected = {}; // kernels that a roofline must show
for (const [name, line] of Object.entries(pages)) {
  const args = [...line.split(' '), '--html', join(folder, `${name}.html`)];
  const run = spawnSync(foretell, args, { encoding: 'utf8' });
  if (run.status > 1) ok(false, `${name} is written`, run.stderr);
  if (line.startsWith('train') && !line.includes('sweep') && name !== 'boards') {
    const rows = execFileSyncSafe(foretell, [...line.split(' '), '--csv']).trim().split('\n').slice(1);
    expected[name] = rows.filter(row => { const f = row.split(',').slice(-8); return +f[4] > 0 || +f[5] > 0; }).length;
  }
}
function execFileSyncSafe(program, args) {
  try { return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }); }
  catch (error) { return error.stdout; } // 1: does not fit
}
ok(readdirSync(folder).length === Object.keys(pages).length, 'every page is there, and nothing else', readdirSync(folder));

const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox'] });
const layout = {};
const context = await browser.newContext({ deviceScaleFactor: 1 });
const page = await context.newPage();
let said = [], asked = [];
page.on('console', message => said.push(message.text()));
page.on('pageerror', error => said.push(error.message));
page.on('request', request => asked.push(request.url()));
for (const name of Object.keys(pages)) for (const width of [1280, 390]) for (const theme of ['light', 'dark']) {
  if ((width === 1280) !== (theme === 'light') && !['train', 'many'].includes(name)) continue;
  const what = `${name} at ${width}, ${theme}`;
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ media: 'screen', colorScheme: theme });
  [said, asked] = [[], []];
  await page.goto(pathToFileURL(join(folder, `${name}.html`)).href);
  const away = asked.slice(1).filter(url => !url.startsWith('data:'));
  ok(!said.length && !away.length, `${what}: loads in silence`, [...said, ...away].join('\n'));

  const shown = await page.evaluate(marks => Object.fromEntries([...document.querySelectorAll('svg.picture')]
    .filter(svg => svg.getBoundingClientRect().width > 0)
    .map(svg => [svg.dataset.picture, svg.querySelectorAll(marks[svg.dataset.picture]?.[0] ?? 'rect').length])), marks);
  const lacking = pictures[name].filter(id => !(shown[id] >= marks[id][1]));
  ok(!lacking.length, `${what}: every picture has its data`, lacking.map(id => `${id}: ${shown[id]}`).join('\n'));
  if (name in expected)
    ok(shown.roofline === expected[name], `${what}: every kernel is a dot`, `${shown.roofline} of ${expected[name]}`);

  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const bad = await page.evaluate(badLabels);
  ok(over <= 0 && !bad.length, `${what}: nothing overlaps or stands out`, [`${over} px`, ...bad].join('\n'));

  const faults = await page.evaluate(() => {
    const bad = [];
    for (const p of document.querySelectorAll('header p, section > p'))
      if (p.getBoundingClientRect().width < 0.95 * document.querySelector('main section, main').getBoundingClientRect().width - 48) bad.push(`narrow: ${p.textContent.slice(0, 60)}`);
    for (const svg of document.querySelectorAll('svg[data-picture=roofline]')) if ((svg.textContent.match(/\(logarithmic\)/g) ?? []).length !== 2) bad.push('the roofline does not say that its axes are logarithmic');
    // Where a picture's time axis ends, of its first and last mark.
    const end = svg => {
      const axis = svg.querySelector('line.axis'), at = name => Number(axis?.getAttribute(name));
      const marks = [...svg.querySelectorAll('text[text-anchor=middle].dim')].filter(t => Math.abs(t.getAttribute('y') - at('y1') - 17) < 1).map(t => [Number(t.textContent), Number(t.getAttribute('x'))]);
      const [first, last] = [marks[0], marks.at(-1)];
      return marks.length > 1 ? first[0] + (at('x2') - first[1]) * (last[0] - first[0]) / (last[1] - first[1]) : NaN;
    };
    const ends = [...document.querySelectorAll(':is(svg[data-picture=timeline], svg[data-picture=memory])')].filter(svg => svg.getBoundingClientRect().width).map(end).filter(Number.isFinite);
    if (ends.some(one => Math.abs(one / ends[0] - 1) > 0.005)) bad.push(`time axes end apart: ${ends.join(', ')}`);
    // Bars and their figures, which no table says again.
    for (const svg of document.querySelectorAll(':is(svg[data-picture=phases], svg[data-picture=layers], svg[data-picture=classes])')) {
      const words = [...svg.querySelectorAll('text')].map(t => t.textContent);
      const bars = words.flatMap((text, i) => { const figure = /^([\d.]+) (?:s|ms|µs), /.exec(text); return figure && i ? [[words[i - 1], figure[1]]] : []; });
      const again = bars.filter(([name, figure]) => [...document.querySelectorAll('tbody tr')].some(row => row.cells[0].textContent === name && [...row.cells].some(cell => cell.textContent === figure)));
      if (again.length > bars.length / 2) bad.push(`the bars of ${svg.dataset.picture} are also a table: ${again.join('; ')}`);
    }
    for (const cell of document.querySelectorAll('td')) if (cell.textContent === 'does not fit' && !cell.classList.contains('bad')) bad.push('a row that does not fit is not marked');
    return bad;
  });
  ok(!faults.length, `${what}: words over the whole width, logarithmic axes said, time axes that end together, no bars again as a table, rows that do not fit marked`, faults.join('\n'));
  if (name === 'full') ok(shown.scaling > 0 && await page.locator('svg[data-picture=scaling] circle.unfit').count() > 0, `${what}: points that do not fit are rings`);

  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  ok((dark === 'rgb(255, 255, 255)') === (theme === 'light'), `${what}: has its theme`, dark);

  await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
  await page.evaluate(axe);
  const found = await page.evaluate(scope => axe.run(scope, { resultTypes: ['violations'] }), axeScope);
  const serious = found.violations.filter(v => ['serious', 'critical'].includes(v.impact));
  ok(!serious.length, `${what}: axe finds nothing serious`,
    serious.map(v => `${v.id}: ${v.help}: ${v.nodes[0].html.slice(0, 200)} (${v.nodes.length})`).join('\n'));
  await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = false; }));

  if (!layout[`${name} ${width}`]) layout[`${name} ${width}`] = await page.evaluate(() => Object.fromEntries(
    [...document.querySelectorAll('section')].map(s => [s.id, Math.round(s.getBoundingClientRect().height)])));
  if (name === 'train' && update) {
    const small = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, deviceScaleFactor: 0.6 });
    const copy = await small.newPage();
    await copy.goto(page.url());
    await copy.screenshot({ path: join(here, `reference/train-${width}-${theme}.jpg`), fullPage: true, type: 'jpeg',
      quality: 55 });
    await small.close();
  }
  if (name === 'train' && width === 1280 && theme === 'dark') { // paper is white whatever the theme
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const hidden = await page.evaluate(() => document.querySelectorAll('svg.wide').length ===
      [...document.querySelectorAll('svg.picture')].filter(s => s.getBoundingClientRect().width > 0).length);
    ok(paper === 'rgb(255, 255, 255)' && hidden, 'print: white paper, wide pictures', paper);
  }
}
await context.close();

// One picture as a file of its own: well-formed, with its colours.
for (const picture of ['roofline', 'timeline', 'memory', 'layers', 'classes', 'intervals', 'pipeline']) {
  const file = join(folder, `${picture}.svg`);
  spawnSync(foretell, [...pages.many.split(' '), '--svg', file, '--picture', picture]);
  const page = await browser.newPage();
  await page.goto(pathToFileURL(file).href);
  const seen = await page.evaluate(() => [document.documentElement.nodeName, document.querySelectorAll('parsererror').length,
    document.querySelectorAll('rect,circle,path').length]);
  ok(seen[0] === 'svg' && !seen[1] && seen[2] > 5, `--svg draws ${picture}`, seen);
  await page.close();
}
await browser.close();
rmSync(folder, { recursive: true });

const kept = join(here, 'reference/layout.json');
if (update) writeFileSync(kept, JSON.stringify(layout, null, 1) + '\n');
const before = JSON.parse(readFileSync(kept, 'utf8'));
for (const [what, sections] of Object.entries(before)) {
  const now = layout[what] ?? {};
  const moved = Object.keys({ ...sections, ...now })
    .filter(id => !(Math.abs((now[id] ?? 0) - (sections[id] ?? 0)) <= 40 + 0.15 * (sections[id] ?? 0)));
  ok(!moved.length, `${what}: laid out as in the reference`,
    moved.map(id => `${id}: ${now[id]} px, was ${sections[id]}`).join('\n'));
}
console.log(`1..${tally.said}`);
process.exit(tally.failed ? 1 : 0);
