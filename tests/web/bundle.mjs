// bundle.mjs: a TypeScript file of web/core as a module of this process.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = join(dirname(fileURLToPath(import.meta.url)), '../../web');
const esbuild = createRequire(join(web, 'package.json'))('esbuild');

export async function load(file) {
    const made = await esbuild.build({ entryPoints: [join(web, 'core', file)], bundle: true, write: false, format: 'esm', platform: 'neutral' });
    return import('data:text/javascript;base64,' + Buffer.from(made.outputFiles[0].text).toString('base64'));
}
