// The site that scripts/docs builds, in headless Chromium: node tests/browser/site.mjs SITE [PICTURES]
//
// Served by a file server of its own and opened at a phone's, a desk's and a large screen's width. Every page must load
// without a message, an error or a request to elsewhere, and none may be wider than its window; a search must find its
// page, and formulas must be drawn. PICTURES is a folder that gets one picture of some pages at each width.
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { browserOrSkip, chromium, ok, serve, tally } from './start.mjs';

const [site, pictures] = process.argv.slice(2);
const playwright = await browserOrSkip();

const { server, origin } = await serve(resolve(site)), home = `${origin}/`;

const names = readdirSync(site, { recursive: true }).map(String).filter(name => name.endsWith('.html') && name !== '404.html').sort();
const seen = ['index.html', 'docs/tutorial.html', 'docs/interface.html', 'docs/models.html', 'docs/accuracy.html', 'docs/accuracy/runs.html'];
ok(names.length >= 50 && seen.every(name => names.includes(name)), `${names.length} pages`, names.join('\n'));

const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox'] });
for (const width of [390, 1280, 2560]) {
  const context = await browser.newContext({ viewport: { width, height: 900 } });
  const page = await context.newPage();
  let said = [], away = [];
  page.on('console', message => said.push(message.text()));
  page.on('pageerror', error => said.push(error.message));
  page.on('request', request => { if (!request.url().startsWith(home) && !request.url().startsWith('data:')) away.push(request.url()); });
  page.on('response', response => { if (response.status() >= 400) said.push(`${response.status()} ${response.url()}`); });
  const wrong = [];
  for (const name of names) {
    said = []; away = [];
    await page.goto(home + name, { waitUntil: 'load' });
    const found = await page.evaluate(() => ({ over: document.documentElement.scrollWidth - innerWidth,
      raw: (document.querySelector('article')?.innerText ?? '').match(/\\\(|\\frac|\\mathrm/g)?.length ?? 0,
      empty: [...document.querySelectorAll('.katex-html')].filter(m => m.getBoundingClientRect().width === 0 && m.checkVisibility()).length,
      title: document.querySelector('article h1') !== null }));
    if (said.length || away.length || found.over > 0 || found.raw || found.empty || !found.title)
      wrong.push(`${name}: ${JSON.stringify({ ...found, said, away })}`);
    if (pictures && seen.includes(name))
      await page.screenshot({ path: join(pictures, `${name.replaceAll('/', '-').replace('.html', '')}-${width}.png`) });
  }
  ok(!wrong.length, `at ${width}: every page loads in silence, as wide as its window, with its formulas`, wrong.join('\n'));

  await page.goto(home);
  if (width < 960) await page.click('label[for="__search"].md-header__button');
  await page.fill('input.md-search__input', 'zero bubble');
  await page.waitForSelector('.md-search-result__item a', { timeout: 600000 });
  const first = await page.$$eval('.md-search-result__item a', links => links.slice(0, 8).map(link => link.href));
  ok(first.some(link => link.includes('pipeline') || link.includes('layout')), `at ${width}: a search finds its page`, first.join('\n'));
  await context.close();
}
await browser.close();
server.close();
console.log(`1..${tally.said}`);
process.exit(tally.failed ? 1 : 0);
