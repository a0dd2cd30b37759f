// Labels of pictures that lie over each other, or out of their picture. Runs in the page.
export function badLabels() {
  const bad = [];
  for (const svg of document.querySelectorAll('svg.picture')) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    const labels = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    labels.forEach(([text, a], i) => {
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
