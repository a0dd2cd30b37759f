// What tests of pages begin with: a browser, a server of a folder, and lines that say what went well (TAP).
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = dirname(fileURLToPath(import.meta.url));
export const skip = why => { console.log(`1..0 # SKIP ${why}`); process.exit(0); };

// Of Chromium; undefined: there is none.
export const chromium = ['chromium', 'chromium-browser', 'google-chrome']
  .map(name => spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim())
  .find(path => path);

// Playwright, or the test is skipped.
export async function browserOrSkip() {
  if (!chromium) skip('no chromium');
  if (!existsSync(join(here, 'node_modules/playwright-core'))) skip('run scripts/setup test first');
  return import('playwright-core');
}

export const types = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json', '.png': 'image/png',
  '.svg': 'image/svg+xml', '.wasm': 'application/wasm' };

// The file that a request asks for; null: none of the folder's.
export function asked(folder, request) {
  const file = join(folder, normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname)).replace(/\/$/, '/index.html'));
  return file.startsWith(folder) && existsSync(file) ? file : null;
}

export const typeOf = file => types[extname(file)] ?? 'application/octet-stream';

// The folder's files on a free port of this machine, with these headers beside their types.
export async function serve(folder, headers = {}) {
  const server = createServer((request, answer) => {
    const file = asked(folder, request);
    if (!file) return void answer.writeHead(404).end();
    answer.writeHead(200, { 'content-type': typeOf(file), ...headers }).end(readFileSync(file));
  });
  return listen(server);
}

export async function listen(server) {
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  return { server, origin: `http://127.0.0.1:${server.address().port}` };
}

export const tally = { said: 0, failed: 0 };
export function ok(fine, what, why = '') {
  console.log(`${fine ? 'ok' : 'not ok'} ${++tally.said} - ${what}`);
  if (!fine) { tally.failed++; console.log(`# ${String(why).replaceAll('\n', '\n# ')}`); }
}
