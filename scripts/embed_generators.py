#!/usr/bin/env python3
"""Write what makes pictures and videos of prompts as a C table: embed_generators.py FOLDER OUTPUT.

Sorted by name; left alone when nothing would change. A model of the catalogue that two files claim, a part that no file of
data/models names, or a file without a source, stops the build.
"""
from __future__ import annotations

import json
import pathlib
import sys

import embedding
from embed_models import literal

GUIDANCE = {"none": 0, "batch": 1, "twice": 2}
WIDE = {"": 0, "fp16": 1, "all": 2}
KEYS = {"name", "models", "source", "date", "steps", "guidance", "image_size", "frames", "words", "copies", "text", "decoder", "notes"}
MOST_TEXTS, MOST_MODELS = 3, 2


def part(said: dict, known: set[str], path: pathlib.Path) -> str:
    if said["model"] not in known:
        sys.exit(f"{path}: data/models has no \"{said['model']}\"")
    return f'{{{literal(said["model"])}, {int(said["seq"])}, {int(said["calls"])}}}'


def row(path: pathlib.Path, known: set[str]) -> str:
    said = json.loads(path.read_text())
    if set(said) - KEYS or said.get("name") != path.stem or not said.get("source") or not said.get("date"):
        sys.exit(f"{path}: its own name, a source and a date are needed, and no other keys than {sorted(KEYS)}")
    if not said["models"] or len(said["models"]) > MOST_MODELS or len(said["text"]) > MOST_TEXTS:
        sys.exit(f"{path}: one to {MOST_MODELS} models and up to {MOST_TEXTS} text encoders")
    decoder = said["decoder"] or {"model": "", "tile": 0}
    if decoder["model"] and decoder["model"] not in known:
        sys.exit(f"{path}: data/models has no \"{decoder['model']}\"")
    height, width = (int(side) for side in said["image_size"].split("x"))
    texts = ", ".join(part(each, known, path) for each in said["text"])
    return (f'    {{{literal(said["name"])}, {{{", ".join(literal(name) for name in said["models"])}}}, {int(said["steps"])}, '
            f'{GUIDANCE[said["guidance"]]}, {{{height}, {width}, {int(said.get("frames", 0))}}}, {int(said.get("words", 0))}, '
            f'{int(said.get("copies", 1))}, {len(said["text"])}, {{{texts}}}, {literal(decoder["model"])}, {int(decoder["tile"])}, '
            f'{WIDE[decoder.get("wide_for", "")]}, {literal(said["source"])}}},\n')  # fmt: skip


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    files = sorted(folder.glob("*.json"))
    known = {path.stem for path in (folder.parent / "models").glob("*.json")}
    claimed = [name for path in files for name in json.loads(path.read_text())["models"]]
    if len(set(claimed)) != len(claimed):
        sys.exit(f"{folder}: a model that two files claim: {sorted(name for name in set(claimed) if claimed.count(name) > 1)}")
    rows = "".join(row(path, known) for path in files)
    embedding.write(output, '#include "study/generators.h"\n\n'
                    f"const ft_generator ft__generators[] = {{\n{rows}}};\n"
                    "const size_t ft__generator_count = sizeof ft__generators / sizeof *ft__generators;\n")  # fmt: skip


if __name__ == "__main__":
    main()
