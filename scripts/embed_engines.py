#!/usr/bin/env python3
"""Write the serving engines of a folder as a C table: embed_engines.py FOLDER OUTPUT.

Sorted by name, so that the same files give the same bytes; left alone when nothing would change. A file without what it
needs, a trait without a source, a base that is not there stop the build; a trait that src/serving/engine.h does not
know stops the compiler. With --page PAGE in place of OUTPUT it writes the tables of docs/engines.md, between its marks;
with --check PAGE it fails where they are not what the files say.
"""
from __future__ import annotations

import json
import pathlib
import re
import sys

import embedding

KEYS = {"name", "title", "date", "base", "kernels", "traits", "sources", "notes", "recipes", "usual"}
PARTS = ("where", "traits")  # of a recipe
CONDITIONS = {
    "model_type", "dtype", "tcgen05", "mfma", "hidden_from", "vocab_from", "tp_below", "tp_from", "dp_from", "ep_below", "isl", "osl",
    "clients_from", "clients_below", "fixed_lengths",
}  # fmt: skip
MARKS = ("<!-- made from data/engines -->", "<!-- end -->")


def load(folder: pathlib.Path) -> dict[str, dict]:
    """Every engine with what it inherits, by name."""

    def check(engine: dict) -> None:
        for recipe in engine.get("recipes", []):
            if set(recipe) != {"where", "traits", "source"} or set(recipe["where"]) - CONDITIONS:
                raise ValueError(f"a recipe has a where, traits and a source: {recipe}")
            if not {"model_type", "fixed_lengths", "tp_from"} & set(recipe["where"]) or not recipe["source"]:
                raise ValueError(f"a recipe is for a model, a layout or a kind of load, and has a source: {recipe}")
        if set(engine.get("traits", {})) ^ set(engine.get("sources", {})):
            differ = sorted(set(engine.get("traits", {})) ^ set(engine.get("sources", {})))
            raise ValueError(f"sources and traits differ: {differ}")

    read = embedding.files(folder, KEYS, check)

    def whole(name: str, above: tuple[str, ...]) -> dict:
        engine, base = read[name], embedding.base_of(folder, read, name, above, "engine")
        below = whole(base, (*above, base)) if base else {"traits": {}}
        below.pop("usual", None)
        return {**below, **engine, "traits": {**below["traits"], **engine.get("traits", {})}}

    engines = {name: whole(name, (name,)) for name in read}
    if sum("usual" in engine for engine in read.values()) != 1:
        sys.exit(f"{folder}: exactly one engine is the usual one, for requests that name none")
    every = set(known())
    for name, engine in engines.items():
        if set(engine["traits"]) != every:
            sys.exit(f"{folder / name}.json: traits missing or unknown: {sorted(set(engine['traits']) ^ every)}")
    return engines


def known() -> dict[str, tuple[str, str]]:
    """Every trait of src/serving/engine.h with its values and what it says."""
    header = (pathlib.Path(__file__).resolve().parent.parent / "src/serving/engine.h").read_text().replace("\\\n", " ")
    found: dict[str, tuple[str, str]] = {}
    for macro in ("FLAGS", "WORDS", "NUMBERS"):
        body = re.search(rf"#define FT_SERVING_{macro}\(X\)(.*)", header).group(1)  # type: ignore[union-attr]
        for name, rest in re.findall(r"X\((\w+), (.*?)\)(?=\s+X\(|\s*$)", body):
            *words, text = re.findall(r'"([^"]*)"', rest)
            values = ", ".join(f"`{word}`" for word in words) if macro == "WORDS" else "yes, no"
            if macro == "NUMBERS":
                values = " to ".join(f"{float(limit):g}" for limit in rest.split(", ")[:2])
            found[name] = (values, text)
    return found


def recipes(engine: dict) -> list[str]:
    """As JSON, one string each."""
    texts = [json.dumps(json.dumps(recipe)) for recipe in engine.get("recipes", [])]
    return [f".recipes = (const char *const[]){{{', '.join(texts)}, NULL}}"] if texts else []


def entry(engine: dict) -> str:
    fields = [
        f".name = {json.dumps(engine['name'])}",
        f".title = {json.dumps(engine['title'])}",
        f".kernels = FT_ENGINE_{engine['kernels'].upper()}",
        *recipes(engine),
        *(f".{trait} = {embedding.trait_value(trait, said)}" for trait, said in sorted(engine["traits"].items())),
    ]
    return "    {" + ",\n     ".join(fields) + "},\n"


def source(engines: dict[str, dict]) -> str:
    return (
        "/* Made from data/engines/ by scripts/embed_engines.py. */\n"
        '#include "serving/engine.h"\n\n'
        f"const size_t ft__serving_engine_count = {len(engines)};\n"
        f"const char ft__serving_usual[] = {json.dumps(next(name for name, engine in engines.items() if engine.get('usual')))};\n"
        f"const ft_serving_engine ft__serving_engines[] = {{\n{''.join(map(entry, engines.values()))}}};\n"
    )


def shown(said: object) -> str:
    if isinstance(said, bool):
        return "yes" if said else "no"
    return f"`{said}`" if isinstance(said, str) else f"{said:g}"


def table(engines: dict[str, dict]) -> str:
    """What each is, every trait side by side, then who says so."""
    lines = ["| engine | what it is | of | stands on |", "|---|---|---|---|"]
    for name, engine in engines.items():
        lines.append(f"| `{name}` | {engine['title']} | {engine['date']} | {engine.get('base', '')} |")
    lines += ["", "| trait | " + " | ".join(f"`{name}`" for name in engines) + " | what it says |",
              "|---|" + "---|" * (len(engines) + 1)]
    for trait, (_, text) in known().items():
        cells = [shown(engine["traits"][trait]) for engine in engines.values()]
        lines.append(f"| `{trait}` | {' | '.join(cells)} | {text} |")
    lines += ["", "| engine | recipe for | traits | source |", "|---|---|---|---|"]
    for name, engine in engines.items():
        for recipe in engine.get("recipes", []):
            cells = [", ".join(f"`{key}` {shown(said)}" for key, said in recipe[part].items()) for part in PARTS]
            lines.append(f"| `{name}` | {' | '.join(cells)} | {recipe['source']} |")
    lines += ["", "| engine | trait | source |", "|---|---|---|"]
    for name, engine in engines.items():
        for trait, text in engine.get("sources", {}).items():
            lines.append(f"| `{name}` | `{trait}` | {text} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    engines = load(pathlib.Path(sys.argv[1]))
    if not embedding.page(sys.argv, MARKS, table(engines) + "\n"):
        embedding.write(sys.argv[2], source(engines))


if __name__ == "__main__":
    main()
