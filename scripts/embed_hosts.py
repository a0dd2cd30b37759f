#!/usr/bin/env python3
"""Write the hosts of a folder as a C table: embed_hosts.py FOLDER OUTPUT.

Sorted by name, so that the same files give the same bytes; left alone when nothing would change. Keys are the fields
of ft_host (src/kernel/host.h): one that it lacks stops the compiler, one that a file lacks fails tests/unit/kernel_hosts.c.
A group of figures without what they are, their source and their date stops this script.
"""
import json
import pathlib
import sys

WORDS = ("what", "source", "date")


def numbers(path: pathlib.Path, where: str, group: dict) -> str:
    for key, value in group.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            sys.exit(f"{path}: {where}.{key} must be a number of at least 0")
    return "{" + ", ".join(f".{key} = {float(value)!r}" for key, value in group.items()) + "}"


def whole(folder: pathlib.Path, path: pathlib.Path, host: dict) -> dict:
    """What a file leaves out is its base's, times its slowdown where the host takes it (src/kernel/host_file.c)."""
    if "base" not in host:
        return host
    base = json.loads((folder / f"{host['base']}.json").read_text())
    if "base" in base:
        sys.exit(f"{path}: its base has a base of its own")
    times, out = host.get("slowdown", 1), {}
    for section, group in base.items():
        if not isinstance(group, dict):
            continue
        given = host.get(section, {})
        out[section] = {
            key: given.get(key, slowed(section, key, value, times)) for key, value in group.items()
        } | {word: given.get(word, group[word]) for word in WORDS}
    return {key: value for key, value in host.items() if not isinstance(value, dict)} | out


def slowed(section: str, key: str, value, times: float):
    if isinstance(value, dict):  # an operator's three figures
        return {name: us * times for name, us in value.items()}
    return value * times if key.endswith("_us") and section != "launches" else value


def entry(path: pathlib.Path, host: dict) -> str:
    lines = [f'.name = "{path.stem}"', f'.beside = "{host.get("beside", "")}"', f'.lines = "{host.get("lines", "")}"']
    for section, group in host.items():
        if not isinstance(group, dict):
            continue
        for word in WORDS:
            if not group.get(word):
                sys.exit(f'{path}: "{section}" needs "{word}"')
        figures = {key: value for key, value in group.items() if key not in WORDS}
        if section == "operators":
            rows = [f"[FT_DO_{verb.upper()}] = {numbers(path, f'operators.{verb}', costs)}" for verb, costs in figures.items()]
            lines.append(".operators = {" + ",\n                   ".join(rows) + "}")
        else:
            lines.append(f".{section} = {numbers(path, section, figures)}")
    return "    {" + ",\n     ".join(lines) + "},\n"


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    rows, usual = [], []
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem.encode()):
        host = json.loads(path.read_text())
        if host.get("name") != path.stem or not host.get("source") or not host.get("date"):
            sys.exit(f"{path}: a source, a date and the file's own name are needed")
        if host.get("usual"):
            usual.append(len(rows))
        rows.append(entry(path, whole(folder, path, host)))
    if len(usual) != 1:
        sys.exit(f"{folder}: one host is the usual one, not {len(usual)}")
    source = (
        "/* Made from data/hosts/ by scripts/embed_hosts.py. */\n"
        '#include "kernel/host.h"\n\n'
        f"const size_t ft__host_count = {len(rows)}, ft__usual_host = {usual[0]};\n"
        f'const ft_host ft__hosts[] = {{\n{"".join(rows)}}};\n'
    )
    if not output.exists() or output.read_text() != source:
        output.write_text(source)


if __name__ == "__main__":
    main()
