// bundle.mjs: a TypeScript file of web/core as a module of this process.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = join(dirname(fileURLToPath(import.meta.url)), '../../web');
const esbuild = createRequire(join(web, 'package.json'))('esbuild');

export async function text(file) {
    const options = { bundle: true, write: false, format: 'esm', platform: 'neutral' };
    return (await esbuild.build({ entryPoints: [join(web, 'core', file)], ...options })).outputFiles[0].text;
}

export async function load(file) {
    return import('data:text/javascript;base64,' + Buffer.from(await text(file)).toString('base64'));
}
