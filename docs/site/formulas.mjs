// Formulas as HTML: a JSON list of {"tex", "display", "page"} on stdin, a list of texts on stdout. Called by hooks.py, once
// for the site. Says of every formula that KaTeX cannot read where it stands, and ends with status 1.
import katex from 'katex';
import { readFileSync } from 'node:fs';

let wrong = 0;
const drawn = JSON.parse(readFileSync(0, 'utf8')).map(({ tex, display, page }) => {
  try {
    return katex.renderToString(tex, { displayMode: display, strict: 'error', output: 'htmlAndMathml' });
  } catch (error) {
    wrong++;
    console.error(`${page}: ${error.message}`);
    return '';
  }
});
process.stdout.write(JSON.stringify(drawn), () => process.exit(wrong ? 1 : 0));
