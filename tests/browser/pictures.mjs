// Pictures of a step, or of an engine under load, that changed line by line (web/page/chart/patch.ts) are what a fresh one would be: element by element,
// attribute by attribute. What differs, in words.
const step = { timeline: 'timeline', where: 'phases', peak: 'peak', roofline: 'roofline', memory: 'memory' };
const load = { waits: 'waits', tokens: 'tokens', queue: 'queue', cache: 'cache' };

// In the page: the elements of a picture as text; of one that is shown, or of one as the library writes it.
const marksOf = pictures => pictures.map(({ card, text }) => {
  const made = document.createElement('template');
  made.innerHTML = text?.replace(/><title>([^<]*)<\/title>/g, ' data-tip="$1">') ?? '';
  const svg = text ? made.content.querySelector('svg') : document.querySelector(`[data-card="${card}"] svg.picture`);
  return [...svg.children].filter(e => !e.hasAttribute('data-live'))
    .map(e => [e.tagName, e.textContent, ...[...e.attributes].map(a => `${a.name}=${a.value}`).sort()].join(' '));
});

export async function fromLibrary(page, of, asks) {
  const what = of.task === 'serve' ? load : step;
  const shown = await page.evaluate(cards => [...document.querySelectorAll('svg.picture')].map(svg => ({ card: svg.closest('[data-card]').dataset.card, width: svg.viewBox.baseVal.width }))
    .filter(({ card }) => cards.includes(card)), Object.keys(what));
  if (shown.length !== Object.keys(what).length) return [`${shown.length} pictures`];
  const pictures = asks({ task: 'draw', of, pictures: shown.map(({ card, width }) => ({ what: what[card], width, embed: true, name: card })) }).pictures;
  const are = await page.evaluate(marksOf, shown), shouldBe = await page.evaluate(marksOf, shown.map(({ card }, i) => ({ card, text: pictures[i] })));
  return shown.flatMap(({ card }, i) => {
    const at = shouldBe[i].findIndex((mark, k) => mark !== are[i][k]);
    return at < 0 && are[i].length === shouldBe[i].length ? [] : [`${card}: ${are[i][at]} should be ${shouldBe[i][at]}`];
  });
}

// While a slider moves, dots of a roofline share paths: what is painted stays, but for the edges of thin lines. [whether, in words]
export async function dotsLookAlike(page, of, asks) {
  const both = asks({ task: 'draw', of, pictures: [false, true].map(plain => ({ what: 'roofline', width: 520, plain })) }).pictures;
  const apart = await page.evaluate(async pictures => {
    const painted = await Promise.all(pictures.map(async text => {
      const image = new Image();
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
      await image.decode();
      const at = new OffscreenCanvas(image.width, image.height).getContext('2d');
      at.drawImage(image, 0, 0);
      return at.getImageData(0, 0, image.width, image.height).data;
    }));
    return painted[0].reduce((most, level, i) => Math.max(most, Math.abs(level - painted[1][i])), painted[0].length === painted[1].length ? 0 : 999);
  }, both);
  const elements = both.map(text => [...text.matchAll(/class="dot /g)].length), shared = [...both[1].matchAll(/0z/g)].length;
  return [apart < 90 && elements[1] * 2 < elements[0] && shared === elements[0], `${apart} of 255 apart at most, ${elements} elements, ${shared} dots in paths`];
}
