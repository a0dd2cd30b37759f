// build.mjs: the static files of the page, in one folder: node build.mjs [--out DIR] [--wasm FILE] [--predictor FILE]
//
// Bundled by esbuild from what package-lock.json pins; nothing is fetched, now or when the page runs. Beside the
// scripts stand the library (foretell.wasm) and what it knows (predictor.bin.gz). `make web` says where those come from.
import * as esbuild from 'esbuild';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { parseArgs } from 'node:util';
import { most, packed } from './packing.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const { values: option } = parseArgs({
    options: {
        out: { type: 'string', default: join(here, '../build/web') },
        wasm: { type: 'string', default: join(here, '../build-wasm/web/wasm/foretell.wasm') },
        predictor: { type: 'string', default: join(here, '../data/predictors/default.ftp') },
        develop: { type: 'boolean', default: false }, // readable scripts with source maps
    },
});
const out = resolve(option.out);

// What build.mjs and the workers share is TypeScript, too.
async function load(file) {
    const made = await esbuild.build({ entryPoints: [join(here, file)], bundle: true, write: false, format: 'esm', platform: 'neutral' });
    return import('data:text/javascript;base64,' + Buffer.from(made.outputFiles[0].text).toString('base64'));
}

const scripts = {
    app: 'page/main.tsx', // the page
    worker: 'core/worker.ts', // the library in a worker
    service: 'core/service.ts', // keeps the files for the next visit, and for one without a network
};

async function bundle() {
    const common = {
        bundle: true,
        outdir: out,
        format: 'esm',
        target: ['es2022'],
        minify: !option.develop,
        sourcemap: option.develop,
        legalComments: 'inline',
        logLevel: 'warning',
    };
    for (const [name, source] of Object.entries(scripts)) {
        if (!existsSync(join(here, source))) {
            console.error(`web/${source} is not there: built without it`);
            continue;
        }
        await esbuild.build({ ...common, entryPoints: { [name]: join(here, source) } });
    }
}

async function predictor() {
    const { split } = await load('core/predictor.ts');
    const bytes = packed(split(new Uint8Array(readFileSync(option.predictor))));
    writeFileSync(join(out, 'predictor.bin.gz'), bytes);
}

// Colours and marks that the page shares with what --html and --svg write (data/style), before its own rules.
function style() {
    const shared = (name) => readFileSync(join(here, '../data/style', name), 'utf8').replace(/\/\*[^]*?\*\//g, '').trim();
    const colours = Object.fromEntries([...shared('colours.css').matchAll(/(light|dark) (\{[^}]*\})/g)].map(([, name, block]) => [name, block]));
    if (!colours.light || !colours.dark) throw new Error('data/style/colours.css has no block light or dark');
    const file = join(out, 'style.css');
    writeFileSync(file, [
        `:root ${colours.light}`,
        `@media screen and (prefers-color-scheme: dark) { :root:not([data-theme="light"]) ${colours.dark} }`,
        `@media screen { :root[data-theme="dark"] ${colours.dark} }`, // paper is light
        shared('pictures.css'),
        readFileSync(file, 'utf8'),
    ].join('\n'));
}

// What the page may do, for file servers that send no headers; `foretell web` sends the same and more (cli/web_send.c).
const POLICY = [
    "default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "worker-src 'self'", "connect-src 'self'",
    "img-src 'self' data: blob:", "style-src 'self'", "font-src 'self'", "manifest-src 'self'", "base-uri 'none'",
    "form-action 'none'",
].join('; ');

function guard() {
    const file = join(out, 'index.html');
    if (!existsSync(file)) return;
    const text = readFileSync(file, 'utf8');
    const meta = `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`;
    const guarded = text.replace('<meta charset="utf-8">', `<meta charset="utf-8">\n${meta}`);
    if (guarded === text) throw new Error('index.html has no <meta charset="utf-8"> to put its policy behind');
    writeFileSync(file, guarded);
}

// The page names its version, and so does what the service worker keeps: other bytes, other version.
function stamp() {
    const names = readdirSync(out).filter((name) => name !== 'service.js').sort();
    const digest = createHash('sha256');
    for (const name of names) digest.update(name).update(readFileSync(join(out, name)));
    const version = digest.digest('hex').slice(0, 16);
    const file = join(out, 'service.js');
    const text = readFileSync(file, 'utf8');
    const files = JSON.stringify(['./', ...names.filter((name) => name !== 'index.html')]);
    writeFileSync(file, text.replace(/(['"`])%VERSION%\1/, JSON.stringify(version)).replace(/(['"`])%FILES%\1/, JSON.stringify(files)));
    return version;
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await bundle();
const fixed = join(here, 'page/static'); // index.html and what it shows, as it is
for (const name of existsSync(fixed) ? readdirSync(fixed) : []) copyFileSync(join(fixed, name), join(out, name));
guard();
style();
copyFileSync(option.wasm, join(out, 'foretell.wasm'));
await predictor();
const version = stamp();
const sizes = readdirSync(out).sort().map((name) => {
    const bytes = readFileSync(join(out, name));
    return [name, bytes.length, name.endsWith('.gz') ? bytes.length : gzipSync(bytes, { level: 9 }).length];
});
for (const [name, plain, zipped] of sizes) console.log(`${name.padEnd(20)} ${String(plain).padStart(9)} ${String(zipped).padStart(9)} gzip`);
const total = sizes.reduce((sum, row) => sum + row[2], 0);
console.log(`${'all'.padEnd(20)} ${''.padStart(9)} ${String(total).padStart(9)} gzip, version ${version}`);
if (total > most) console.error(`all files are ${total} bytes on the wire: ${total - most} more than a first visit may take`);
