// The same elsewhere: node tests/browser/elsewhere.mjs FOLDER FORETELL
//
// Every view shows the command line and the Python call that give its answer. Both are run here as they stand, and what they
// print is held against the answer that the page saves: key by key, number by number. FOLDER holds what `make web` builds.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { browserOrSkip, chromium, here, ok, serve, skip, tally } from './start.mjs';
import { config, views } from './views.mjs';

const [folder, foretell] = process.argv.slice(2);
if (!existsSync(join(folder, 'index.html'))) skip('run make web first');
const playwright = await browserOrSkip();
const { server, origin } = await serve(resolve(folder));
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox'] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, serviceWorkers: 'block' })).newPage();
const work = mkdtempSync(join(tmpdir(), 'foretell-elsewhere-'));

// Settings that each have words of their own on a command line: objects, switches, clusters, objectives, lists.
const text = encodeURIComponent;
const own = text(JSON.stringify(config)), spec = text(JSON.stringify({ base: 'h100_sxm', name: 'mine', memory_gbps: 4000 }));
const trace = join(here, '../data/traces/small_gpt2_train.json.gz');
const states = {
  ...Object.fromEntries(Object.entries(views).map(([name, [hash]]) => [name, hash])),
  'a step with a layout and switches': '#step?model=llama-3-8b&gpu=h100_sxm&tp=2&dp=8&sp=true&zero=1&nodes=2&gpus_per_node=8&interconnect=ib_ndr400&master_weights=true&recompute=selective&stack=megatron&lora_rank=16',
  'a decoding step': '#step?task=decode&model=qwen3-8b&gpu=h200_sxm&batch=16&seq=2048&weights_dtype=fp8',
  'a forward pass': '#step?task=forward&model=resnet-50&gpu=l40s&batch=8',
  'a config of one\'s own': `#step?model=${own}&gpu=a100_sxm_80gb`,
  'a GPU of one\'s own': `#step?model=gpt2&gpu=${spec}`,
  'one of the catalogue with other values': `#step?model=${text(JSON.stringify({ base: 'gpt2', vocab_size: 50304 }))}&gpu=h100_sxm`,
  'engines apart': `#serve?model=llama-3-8b&gpu=h100_sxm&isl=256&osl=32&concurrency=8&disaggregated=${text(JSON.stringify({ prefill: { workers: 1 }, decode: { workers: 1, tp: 2 } }))}`,
  'a plan for least energy': '#layout?model=llama-3-8b&gpu=h100_sxm&dp=8&zero=1&global_batch=32&gpus=8&least=energy',
  'a choice at prices of one\'s own': '#choose?model=llama-3-8b&tokens=1e10&range=8:16&kinds=h100_sxm,b200_sxm&price=h100_sxm=2.1&objective=knee&failures=none&kwh_price=0.1',
  'serving by rate': '#serve?model=qwen3-8b&gpu=h200_sxm&load=rate&rate=3&isl=256&osl=32&replicas=2',
  'GPUs for a job': '#choose?use=infer&model=qwen3-8b&requests=100000&isl=256&osl=32&kinds=h100_sxm',
  ...Object.fromEntries(['attention', 'moe', 'conv2d', 'cross_entropy', 'rmsnorm', 'gelu'].map(op => [op, `#kernel?op=${op}&gpu=l40s&xpass=bwd`])),
};
// Answers of a view; of serving a plan, too, where there are objectives. Each is waited for: how many are tried does not
// depend on what stands there in time.
const answers = { step: 2, layout: 4, serve: 2, kernel: 2, gpu: 2 };
const expected = hash => (answers[/^#(\w+)/.exec(hash)[1]] ?? 1) + (/^#serve.*slo_/.test(hash) ? 1 : 0);
// What no command is told goes through `batch`: models and GPUs that are no names, engines apart, single passes, and
// answers that a command prints otherwise.
const batched = new Set(['compare', 'a config of one\'s own', 'a GPU of one\'s own', 'one of the catalogue with other values', 'engines apart', 'a decoding step', 'a forward pass', 'The sheet', 'The staircase']);

// Where two answers part, in words; '' where they do not. How long a search took differs from run to run; --json says besides which
// version was asked what; and Python's requests name what others leave to the library.
const apart = (a, b, at = '') => {
  if (a === b || /(^|\.)(search_ms|request)$/.test(at) || at === 'version') return '';
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b) return `${at}: ${JSON.stringify(a)} is not ${JSON.stringify(b)}`;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  for (const key of keys) {
    const found = apart(a[key], b[key], at ? `${at}.${key}` : key);
    if (found) return found;
  }
  return '';
};
const run = (program, given) => spawnSync(program, given, { encoding: 'utf8', cwd: work, maxBuffer: 1 << 28,
  env: { ...process.env, PYTHONPATH: join(here, '../../python'), FORETELL_LIBRARY: resolve(dirname(foretell), 'libforetell.so') } });
const parsed = told => { try { return JSON.parse(told.stdout); } catch { return { stdout: told.stdout, stderr: told.stderr }; } };

// One answer of a view: what is shown beside it, run.
async function holds(state, part, way) {
  const name = `${state} ${part}`.trim();
  const [command, python] = await Promise.all(['command', 'python'].map(id => way.locator(`[data-same="${id}"]`).textContent()));
  const [file] = await Promise.all([page.waitForEvent('download'), way.locator('button:text("Save as JSON")').click()]);
  const answer = JSON.parse(readFileSync(await file.path(), 'utf8'));
  const told = parsed(run('bash', ['-c', `foretell() { "${resolve(foretell)}" "$@"; }; ${command}`]));
  const through = batched.has(state) || batched.has(part);
  ok(/\| foretell batch$/.test(command) === through, `${name}: ${through ? 'batch is asked' : 'a command is given by its flags'}`, command);
  const differs = answer.ok !== true ? `no answer: ${JSON.stringify(answer)}` : apart(answer, told);
  ok(!differs, `${name}: the command line gives the answer of the page`, `${command}\n${differs}`);
  const code = python.replace(/print\(([^]*)\)$/, 'import json; print(json.dumps(($1).raw))');
  const called = apart(answer, parsed(run('python3', ['-c', code])));
  ok(code !== python && !called, `${name}: the Python call gives it, too`, `${python}\n${called}`);
}

for (const [name, hash] of Object.entries(states)) {
  await page.goto('about:blank');
  await page.goto(`${origin}/${hash}`);
  await page.waitForSelector('main.body h1', { timeout: 600000 });
  if (name === 'trace') {
    copyFileSync(trace, join(work, basename(trace)));
    await page.setInputFiles('#f-trace', trace);
  }
  await page.waitForSelector('details.same', { timeout: 600000 });
  const all = expected(hash), ways = page.locator('details.same [data-answer]');
  for (let i = 0; await ways.count() < all && i < 3000; i++) await page.waitForTimeout(100);
  ok(await ways.count() === all, `${name}: ${all} answers are there to be had elsewhere`, await ways.count());
  await page.evaluate(() => { document.querySelector('details.same').open = true; });
  for (const way of await ways.all()) await holds(name, await way.getAttribute('data-answer'), way);
}
rmSync(work, { recursive: true });
await browser.close();
server.close();
console.log(`1..${tally.said}`);
process.exit(tally.failed ? 1 : 0);
