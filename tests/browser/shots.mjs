// Every view of the page as pictures to be looked at: node tests/browser/shots.mjs FOLDER INTO [VIEW ...]
//
// FOLDER holds what `make web` builds; INTO gets VIEW-WIDTH-THEME.png, whole pages, at 390, 1280 and 2560 pixels, light and
// dark (SIZES and THEMES name fewer). Nothing is judged here: page.mjs does that.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium, serve } from './start.mjs';
import { views } from './views.mjs';

const [given, into, ...only] = process.argv.slice(2), folder = resolve(given);
const { server, origin } = await serve(folder);
const playwright = await import('playwright-core');
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox'] });
mkdirSync(into, { recursive: true });
const sizes = process.env.SIZES?.split(',').map(Number) ?? [390, 1280, 2560];
for (const width of sizes) for (const theme of process.env.THEMES?.split(',') ?? ['light', 'dark']) {
  const context = await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 1000 }, colorScheme: theme, serviceWorkers: 'block' });
  const page = await context.newPage();
  page.on('pageerror', error => console.log(error.stack ?? error.message));
  for (const [name, [hash, pictures, tables]] of Object.entries(views)) {
    if (only.length && !only.includes(name)) continue;
    await page.goto(`${origin}/${hash}`);
    await page.waitForSelector('main.body h1', { timeout: 600000 });
    for (let i = 0, lacks = ' '; lacks && i < 300; i++) {
      lacks = await page.evaluate(([wanted, rows]) =>
        [...Object.entries(wanted).filter(([card, [mark, least]]) => document.querySelectorAll(`[data-card="${card}"] svg.picture ${mark}`).length < least).map(([c]) => c),
          ...rows.filter(card => !document.querySelector(`[data-card="${card}"] :is(tbody tr, .changes li)`))].join(' '), [pictures, tables]);
      if (lacks && i === 299) console.log(`${name} lacks ${lacks}`);
      await new Promise(done => setTimeout(done, lacks ? 100 : 400));
    }
    await page.screenshot({ path: join(into, `${name}-${width}-${theme}.png`), fullPage: true });
  }
  await context.close();
}
await browser.close();
server.close();
