// What axe-core looks at: of a table some rows, of a picture some marks. The others are alike, and cost minutes.
export const axeScope = { include: [['html']], exclude: [['tbody tr:nth-child(n+5)'], ['svg circle:nth-of-type(n+12)'], ['svg rect:nth-of-type(n+12)']] };

// Labels of pictures that lie over each other, under a limit, or out of their picture. Runs in the page.
export function badLabels() {
  const bad = [];
  for (const svg of document.querySelectorAll('svg.picture')) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    const labels = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    const limits = [...svg.querySelectorAll('line.limit')].map(l => l.getBoundingClientRect());
    labels.forEach(([text, a], i) => {
      if (limits.some(l => l.top > a.top + 3 && l.top < a.bottom - 3 && l.left < a.right && l.right > a.left))
        bad.push(`${(svg.dataset.picture ?? svg.closest('[data-card]')?.dataset.card)}: a limit runs through "${text}"`);
      if (a.left < frame.left - 3 || a.right > frame.right + 3 || a.bottom > frame.bottom + 3)
        bad.push(`${(svg.dataset.picture ?? svg.closest('[data-card]')?.dataset.card)}: "${text}" leaves the picture`);
      for (const [other, b] of labels.slice(i + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 3 && high > 5) bad.push(`${(svg.dataset.picture ?? svg.closest('[data-card]')?.dataset.card)}: "${text}" lies over "${other}"`);
      }
    });
  }
  return bad;
}
