#!/usr/bin/env python3
"""Write the versions of PyTorch as a C table: embed_pytorch.py FILE OUTPUT.

A row for every version from which on something changes, with all traits as they are then; a change without a source, of
a trait that is not there or that is no change stops the build, a trait that src/model/pytorch.h does not know the
compiler. With --page PAGE in place of OUTPUT it writes the table of docs/stacks.md, between its marks; with --check PAGE
it fails where that is not what the file says.
"""
from __future__ import annotations

import json
import pathlib
import sys

import embedding

MARKS = ("<!-- made from data/software/pytorch.json -->", "<!-- end of versions -->")
KEYS = {"name", "title", "date", "releases", "released", "first", "changes"}
CHANGE = {"from", "trait", "value", "source"}


def order(version: str) -> int:
    """As src/model/pytorch.c counts: 2.5 without a patch stands behind all of its patches."""
    parts = [int(part) for part in version.split(".")]
    return parts[0] * 10000 + parts[1] * 100 + (parts[2] if len(parts) > 2 else 0)


def load(path: pathlib.Path) -> dict:
    said = json.loads(path.read_text())
    try:
        if set(said) != KEYS:
            raise ValueError(f"keys must be {sorted(KEYS)}")
        if [order(v) for v in said["releases"]] != sorted({order(v) for v in said["releases"]}):
            raise ValueError("releases must rise")
        traits, seen, at = dict(said["first"]), set(), 0
        for change in said["changes"]:
            trait, since = change.get("trait"), change.get("from", "")
            if set(change) != CHANGE or not change["source"].strip():
                raise ValueError(f"{since} {trait}: a change has {sorted(CHANGE)}")
            if trait not in traits or type(change["value"]) is not type(traits[trait]):
                raise ValueError(f"{since}: no trait \"{trait}\", or not of that kind")
            if trait in seen and change["value"] == traits[trait]:
                raise ValueError(f"{since} {trait}: nothing changes")
            if order(since) < at or since.rsplit(".", 1)[0] not in said["releases"] and since not in said["releases"]:
                raise ValueError(f"{since}: versions must be releases, and rise")
            traits[trait], at = change["value"], order(since)
            seen.add(trait)
        if set(traits) - seen:
            raise ValueError(f"no source for {sorted(set(traits) - seen)}")
    except ValueError as error:
        sys.exit(f"{path}: {error}")
    return said


def source(said: dict) -> str:
    rows, traits = {order(said["releases"][0]): dict(said["first"])}, dict(said["first"])
    for change in said["changes"]:
        traits[change["trait"]] = change["value"]
        rows[order(change["from"])] = dict(traits)
    lines = [", ".join([f".since = {at}", *(f".{key} = {embedding.trait_value(key, value)}" for key, value in row.items())])
             for at, row in rows.items()]
    releases = ", ".join(f'"{version}"' for version in said["releases"])
    return ("/* Made from data/software/pytorch.json by scripts/embed_pytorch.py. */\n"
            '#include "model/pytorch.h"\n\n'
            f"const size_t ft__pytorch_release_count = {len(said['releases'])};\n"
            f"const char *const ft__pytorch_releases[] = {{{releases}}};\n"
            f"const size_t ft__pytorch_count = {len(lines)};\n"
            "const ft_pytorch ft__pytorches[] = {\n" + "".join(f"    {{{line}}},\n" for line in lines) + "};\n")


def shown(value: object) -> str:
    return f"`{value}`" if isinstance(value, str) else "yes" if value else "no"


def table(said: dict) -> str:
    lines = ["| from | trait | value | source |", "|---|---|---|---|"]
    lines += [f"| {c['from']} | `{c['trait']}` | {shown(c['value'])} | {c['source']} |" for c in said["changes"]]
    return "\n".join(lines) + "\n"


def main() -> None:
    said = load(pathlib.Path(sys.argv[1]))
    if not embedding.page(sys.argv, MARKS, table(said)):
        embedding.write(sys.argv[2], source(said))


if __name__ == "__main__":
    main()
