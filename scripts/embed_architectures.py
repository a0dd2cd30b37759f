#!/usr/bin/env python3
"""embed_architectures.py FOLDER OUTPUT: data/architectures/*.json as C text, and the model_types that they are.

What a build can check it checks: every file has types and a source, no type is said twice, what a file is like exists.
The library reads the text when a config of that type is opened (src/import/config/architecture.c).
"""
import json
import pathlib
import re
import sys


# What the library reads of a file; the rest is for people.
KEPT = ("like", "traits", "keys", "when", "layers", "mtp", "words", "vision", "wraps", "text", "text_traits", "tied", "finish")


def literal(text: str) -> str:
    """C text in pieces that every compiler takes."""
    pieces = [text[i : i + 4000] for i in range(0, len(text), 4000)] or [""]
    return " ".join(json.dumps(piece, ensure_ascii=True) for piece in pieces)


def read(path: pathlib.Path) -> dict:
    try:
        entry = json.loads(path.read_text())
    except ValueError as error:
        sys.exit(f"{path}: {error}")
    for key in ("types", "source"):
        if not entry.get(key):
            sys.exit(f'{path}: "{key}" is missing')
    unknown = set(entry) - {"types", "source", "date", "notes", *KEPT}
    if unknown:
        sys.exit(f"{path}: unknown keys {sorted(unknown)}")
    return entry


def refused(path: pathlib.Path, known: dict[str, int]) -> dict[str, str]:
    """Types that are refused with a reason (data/refused_types.json)."""
    said = json.loads(path.read_text())
    for name, why in said["types"].items():
        if name in known:
            sys.exit(f'{path}: "{name}" is refused, and {name} has a file in data/architectures')
        if not why or why[0].isupper() or why.endswith("."):
            sys.exit(f'{path}: "{name}": a reason that fits behind a colon is expected')
    return said["types"]


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    paths = sorted(folder.glob("*.json"), key=lambda path: path.stem.encode())
    entries = [read(path) for path in paths]
    types: dict[str, int] = {}
    for index, (path, entry) in enumerate(zip(paths, entries)):
        for name in entry["types"]:
            if types.setdefault(name, index) != index:
                sys.exit(f'{path}: "{name}" is also {paths[types[name]].name}')
    for path, entry in zip(paths, entries):
        if entry.get("like", entry["types"][0]) not in types:
            sys.exit(f'{path}: no file is the type "{entry["like"]}" that this one is like')
    texts = [json.dumps({key: entry[key] for key in KEPT if key in entry}, separators=(",", ":")) for entry in entries]
    reasons = refused(folder.parent / "refused_types.json", types)
    source = "".join([
        "/* Made from data/architectures/ by scripts/embed_architectures.py. */\n",
        '#pragma GCC diagnostic ignored "-Woverlength-strings"\n',
        '#include "import/embedded.h"\n\n',
        "const char *const ft__embedded_architectures[] = {\n",
        *(f"    {literal(text)},\n" for text in texts),
        "    0,\n};\n\n",
        f"const size_t ft__embedded_architecture_type_count = {len(types)};\n",
        "const struct ft__embedded_architecture_type ft__embedded_architecture_types[] = {\n",
        *(f"    {{{literal(name)}, {types[name]}}},\n" for name in sorted(types, key=str.encode)),
        "    {0, 0},\n};\n\n",
        "const struct ft__embedded_refused_type ft__embedded_refused_types[] = {\n",
        *(f"    {{{literal(name)}, {literal(why)}}},\n" for name, why in sorted(reasons.items())),
        "    {0, 0},\n};\n",
    ])
    source = re.sub(r"\\u00([0-7][0-9a-f])", r"\\x\1", source)
    if not output.exists() or output.read_text() != source:
        output.write_text(source)


if __name__ == "__main__":
    main()
