// What a click applies is what was promised: node tests/web/applied.mjs FORETELL
//
// The page turns what the library proposes, changes of a step and of serving and plans of both, into settings of its own, and asks
// again by those. Here its own code does the same without a browser, and the program answers: the new answer must have the
// figures that stood beside the button.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = join(dirname(fileURLToPath(import.meta.url)), '../../web'), [foretell] = process.argv.slice(2);
if (!existsSync(join(web, 'node_modules'))) {
    console.log('1..0 # SKIP run make web first');
    process.exit(0);
}
const { build } = createRequire(join(web, 'package.json'))('esbuild');
const contents = `export { patched } from './page/request';
export { stepRequest } from './page/view/step';
export { planRequest, planWords } from './page/view/plan';
export { serveRequest, servedChange } from './page/view/serve';
export { planServeRequest, servedWords } from './page/view/serve_plans';`;
const made = await build({ stdin: { contents, resolveDir: web, loader: 'ts' }, bundle: true, write: false, format: 'esm',
    platform: 'neutral', mainFields: ['module', 'main'], jsx: 'automatic', jsxImportSource: 'preact' });
const page = await import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString('base64')}`);

const ask = requests => spawnSync(foretell, ['batch'], { input: requests.map(r => `${JSON.stringify(r)}\n`).join(''), encoding: 'utf8', maxBuffer: 1 << 28 })
    .stdout.trim().split('\n').map(line => JSON.parse(line));
let said = 0, failed = 0;
const ok = (wrong, least, found, what) => {
    const fine = !wrong.length && found >= least;
    if (!fine) failed++;
    console.log(`${fine ? 'ok' : 'not ok'} ${++said} - ${what}, ${found} of them`);
    for (const line of wrong) console.log(`# ${line}`);
};
/** Settings after a click: '' takes a key away, as in the page's state. */
const clicked = (is, values) => Object.fromEntries(Object.entries({ ...is, ...values }).filter(([, v]) => v !== ''));
const apart = (a, b, by) => !(Math.abs(a / b - 1) <= by);
const told = (is, what, promised, found, answer) => `${JSON.stringify(is)}: ${what}: promised ${promised}, found ${answer.ok ? found : answer.error.message}`;

// -- changes of a step ------------------------------------------------------------------------------
const steps = [];
for (const model of ['llama-3-8b', 'gpt2', 'mixtral-8x7b', 'resnet-50', 'internvl3-78b'])
    for (const gpu of ['h100_sxm', 'rtx_4090'])
        for (const more of [{ batch: '4', recompute: 'full' }, { task: 'decode', batch: '8', seq: '2048' }, { dp: '8', zero: '3', execution: 'compile' },
            { tp: '2', pp: '4', dp: '2', global_batch: '32', stack: 'megatron' }, { lora_rank: '16', stack: 'peft', weights_dtype: 'nf4' }])
            steps.push({ model, gpu, ...more });
const advised = ask(steps.map(is => ({ ...page.stepRequest(is), advice: true })));
const changes = steps.flatMap((is, i) => [...(advised[i].advice ?? []), ...(advised[i].advice_together ? [advised[i].advice_together] : []), ...(advised[i].other_gpus ?? [])]
    .filter(c => !c.on_top).map(c => ({ is, c }))); // on_top: promised beside those before it
const after = ask(changes.map(({ is, c }) => page.stepRequest(clicked(is, page.patched(c.request, is)))));
ok(changes.flatMap(({ is, c }, i) => apart(after[i].step_ms, c.step_ms, 1e-4) ? [told(is, c.change ?? 'all of them', c.step_ms, after[i].step_ms, after[i])] : []),
    100, changes.length, 'changes of a step do what they promise');

// -- changes of serving -----------------------------------------------------------------------------
const loads = [];
for (const model of ['llama-3-8b', 'mixtral-8x7b'])
    for (const more of [{}, { tp: '2', replicas: '2' }])
        for (const load of [{ concurrency: 8 }, { concurrency: 256 }, { rate: 20 }])
            loads.push({ is: { model, gpu: 'h100_sxm', isl: '512', osl: '32', ...more }, load });
const served = ask(loads.map(({ is, load }) => ({ ...page.serveRequest(is), ...load, advice: true })));
const turns = loads.flatMap(({ is, load }, i) => (served[i].advice ?? []).map(c => ({ is, load, c })));
const then = ask(turns.map(({ is, load, c }) => ({ ...page.serveRequest(clicked(is, page.servedChange(c, is))), ...load })));
ok(turns.flatMap(({ is, c }, i) => apart(then[i].tpot_ms, c.tpot_ms, 1e-4) || then[i].gpus !== c.gpus ? [told(is, c.what, `${c.tpot_ms} on ${c.gpus}`, `${then[i].tpot_ms} on ${then[i].gpus}`, then[i])] : []),
    20, turns.length, 'changes of serving do what they promise');
ok([], 1, turns.filter(({ c }) => c.key === 'disaggregated').length, 'engines that prefill alone are among them');

// -- plans ------------------------------------------------------------------------------------------
const jobs = [{ model: 'llama-3-8b', gpus: '16', global_batch: '32', seq: '4096', tp: '2', sp: 'true', schedule: 'gpipe' }, { model: 'mixtral-8x7b', gpus: '32', global_batch: '128', seq: '4096' },
    { model: 'llama-3-8b', gpus: '16', global_batch: '128', seq: '4096', framework: 'torchtitan' }, { model: 'llama-3-8b', gpus: '16', global_batch: '64', seq: '2048', framework: 'deepspeed', reduce_dtype: 'bf16' },
    { model: 'llama-3-8b', gpus: '16', global_batch: '32', seq: '4096', least: 'energy' }].map(job => ({ gpu: 'h100_sxm', ...job }));
const searched = ask(jobs.map(page.planRequest));
const plans = jobs.flatMap((is, i) => (searched[i].plans ?? []).map(q => ({ is, q })));
const laid = ask(plans.map(({ is, q }) => page.stepRequest(clicked(is, page.planWords(q)), 'train')));
ok(plans.flatMap(({ is, q }, i) => apart(laid[i].step_ms, q.step_ms, 1e-4) ? [told(is, JSON.stringify(q.parallel), q.step_ms, laid[i].step_ms, laid[i])] : []),
    30, plans.length, 'plans that are applied take as long as the table says');

// -- plans for serving: their rate has six digits in an answer ----
const wishes = [{ model: 'llama-3-8b', gpu: 'h100_sxm', isl: '512', osl: '64', slo_ttft: '500', slo_tpot: '20' }, { model: 'mixtral-8x7b', gpu: 'h100_sxm', isl: '512', osl: '64', slo_ttft: '800', slo_tpot: '40', tp: '2' }];
const ways = ask(wishes.map(is => page.planServeRequest(is, page.serveRequest(is)))).flatMap((a, i) => (a.plans ?? []).map(w => ({ is: wishes[i], w })));
const kept = ask(ways.map(({ is, w }) => { const now = clicked(is, page.servedWords(w)); return { ...page.serveRequest(now), rate: Number(now.rate) }; }));
ok(ways.flatMap(({ is, w }, i) => apart(kept[i].tpot_ms, w.tpot_ms, 1e-3) || kept[i].gpus !== w.gpus ? [told(is, JSON.stringify(w.disaggregated ?? w.parallel), `${w.tpot_ms} on ${w.gpus}`, `${kept[i].tpot_ms} on ${kept[i].gpus}`, kept[i])] : []),
    6, ways.length, 'plans for serving that are applied serve as the table says');
console.log(`1..${said}`);
process.exit(failed ? 1 : 0);
