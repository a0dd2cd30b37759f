#!/usr/bin/env python3
"""Write data/style/*.css as C texts for the pages and pictures that the program writes: embed_style.py FOLDER OUTPUT.

colours.css has two blocks, `light` and `dark`: declarations alone, which C puts under selectors of its own. What
web/build.mjs makes of the same files is the page's.
"""
from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import embedding


def packed(css: str) -> str:
    """Without comments and the blanks that CSS does not need."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    css = re.sub(r"\s+", " ", css).strip()
    css = re.sub(r"\s*([{};,])\s*", r"\1", css)
    return re.sub(r":\s+", ":", css).replace(";}", "}")


def block(css: str, name: str) -> str:
    found = re.search(rf"(?:^|}}){name}{{([^}}]*)}}", css)
    if not found:
        sys.exit(f"embed_style: colours.css has no block {name!r}")
    return found.group(1) + ";"


def main() -> None:
    folder, target = Path(sys.argv[1]), sys.argv[2]
    colours = packed((folder / "colours.css").read_text())
    texts = {
        "ft__colours_light": block(colours, "light"), "ft__colours_dark": block(colours, "dark"),
        "ft__svg_style": packed((folder / "pictures.css").read_text()),
    }
    lines = ["/* Written by scripts/embed_style.py from data/style. */", '#include "report/html/svg.h"', ""]
    for name, text in texts.items():
        lines.append(f"const char {name}[] =")
        lines += ["    " + json.dumps(text[at : at + 100], ensure_ascii=True) for at in range(0, len(text), 100)]
        lines[-1] += ";"
    embedding.write(target, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
