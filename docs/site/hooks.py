"""What the site needs beyond MkDocs: formulas drawn when it is built (KaTeX, by formulas.mjs), so that no page runs a
script for them. Texts are gathered over all pages first: one call for the whole site."""

import html
import json
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)
PLACE = re.compile(r"<!-- formula (\d+) -->")
formulas: list[dict[str, object]] = []
drawn: list[str] = []


def on_page_content(content, page, **_):
    def place(match):
        tex = html.unescape(match.group(3))
        formulas.append({"tex": tex, "display": match.group(2) == "[", "page": page.file.src_uri})
        return f"<!-- formula {len(formulas) - 1} -->"

    return FORMULA.sub(place, content)


def on_env(env, **_):
    asked = json.dumps(formulas)
    done = subprocess.run(["node", HERE / "formulas.mjs"], input=asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"formulas that cannot be drawn:\n{done.stderr}")
    drawn.extend(json.loads(done.stdout))
    return env


def on_post_page(output, **_):
    return PLACE.sub(lambda match: drawn[int(match.group(1))], output)
