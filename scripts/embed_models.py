#!/usr/bin/env python3
"""Write the model files of a folder as C: embed_models.py FOLDER OUTPUT.

One entry per file, sorted by name, and every name, alias and hub id, folded and sorted, for a binary search. The
same files give the same bytes. The output is left alone when it would not change, which lets the build skip what
depends on it. A name that two models claim, or a file without what it needs, stops the build. A model that has no
config of ours names a file of data/graphs, its operators as an export of the library's own code lists them.
"""
import json
import pathlib
import sys


def literal(text: str) -> str:
    """A C literal; anything but plain ASCII as octal escapes of its UTF-8."""
    escaped = "".join(
        {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x3F: "\\?"}.get(byte)  # \? keeps trigraphs away
        or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in text.encode()
    )
    return f'"{escaped}"'


def counted(graph: dict) -> dict:
    """A graph whose values have no names, which nobody is shown, but say how far back they were made: src/import/graphfile/counted.c
    has the rules and gives them names again. Layers that are alike are then alike to the letter, which is half of what graphs
    take on the page's wire. Inputs, parameters, and what is named beside a node's operands, keep their names."""
    nodes = [node for block in graph["blocks"] for node in block["nodes"]]
    kept, place = set(graph["inputs"]), {}
    for node in nodes:
        beside = [value for key, value in node.items() if key not in ("op", "name", "in", "out", "like")]
        kept.update(value for value in beside if isinstance(value, str))
        if node["op"] in ("parameter", "buffer"):
            kept.update(each(node.get("out", [])))

    def back(said):
        if isinstance(said, list):
            return [back(name) for name in said]
        return said if said in kept else len(place) - place[said]

    def result(name):
        if name in kept or name in place:
            return back(name)
        return 0

    for block in graph["blocks"]:
        if "in" in block:
            block["in"] = back(block["in"])
        for node in block["nodes"]:
            if "like" in node:
                node["like"] = back(node["like"])
            read = back(node["in"]) if "in" in node else 0
            if node.pop("in", None) is None or read != 1:
                node["in"] = read
            made = node.get("out", [])
            said = [result(name) for name in each(made)]
            for name in (new for new, how in zip(each(made), said) if how == 0):
                place[name] = len(place)
            node["out"] = said if isinstance(made, list) else said[0]
            if node["out"] == 0:
                del node["out"]
        block["out"] = back(block["out"])
    return graph


def each(said) -> list:
    return said if isinstance(said, list) else [said]


def entry_of(path: pathlib.Path) -> dict:
    try:
        entry = json.loads(path.read_text())
        if entry["name"] != path.stem:
            raise ValueError(f'its name is "{entry["name"]}", the file\'s is "{path.stem}"')
        if "graph" in entry:
            entry["config"] = {"model_type": "graph", **counted(json.loads((path.parent.parent / "graphs" / entry["graph"]).read_text()))}
        if not entry["config"]["model_type"] or not entry["source"]:
            raise ValueError("a model_type and a source are needed")
    except (ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path}: {error!r}")
    return entry


def text_of(entry: dict) -> str:
    said = {key: value for key, value in entry["config"].items() if "graph" not in entry or key != "model_type"}
    return literal(json.dumps(said, separators=(",", ":")))


def graphs(entries: list) -> list:
    """Graphs of one library and class side by side, as they lie in the library's data: packers look back 32 KB."""
    alike = sorted((entry["source"], index) for index, entry in enumerate(entries) if "graph" in entry)
    return [f"static const char graph_{index}[] = {text_of(entries[index])};\n" for _, index in alike]


def fields(index: int, entry: dict) -> str:
    config = entry["config"]
    published = entry.get("published") or {"parameters": 0, "digits": 0}
    return ", ".join([
        literal(entry["name"]),
        literal(entry["hub"]) if entry.get("hub") else "0",
        literal(config["model_type"]),
        f'{published["parameters"]:.1f}',
        f'{published["digits"]:.1f}',
        literal(entry["source"]),
        f"graph_{index}" if "graph" in entry else text_of(entry),
    ])


def fold(name: str) -> str:
    """As src/import/catalogue.c does with what somebody types."""
    return name.lower().replace("_", "-").replace(" ", "-")


def names_of(entries: list) -> dict:
    names = {}
    for index, entry in enumerate(entries):
        stored = dict.fromkeys([entry["name"], entry.get("hub"), *entry.get("aliases", [])], None)
        for name, how in [*stored.items(), *entry.get("checkpoints", {}).items()]:
            if not name:
                continue
            if names.setdefault(fold(name), (index, how)) != (index, how):
                sys.exit(f'{entry["name"]}: "{name}" also means {entries[names[fold(name)][0]]["name"]}')
    return names


def add_tags(names: dict, path: pathlib.Path) -> None:
    """Names of Ollama's, which mean a model and how its weights are stored."""
    said = json.loads(path.read_text())
    for tags, how in ((said["tags"], said["stored"]), (said["as_published"], None)):
        for tag, model in tags.items():
            if fold(model) not in names or fold(tag) in names:
                sys.exit(f'{path}: "{tag}" is taken, or no model is called "{model}"')
            names[fold(tag)] = (names[fold(model)][0], how)


def quantization(how: dict) -> str:
    return literal(json.dumps(how, separators=(",", ":"))) if how is not None else "0"


def suffixes(path: pathlib.Path) -> list:
    """What stands behind names, and the quantization_config that it means."""
    rows = json.loads(path.read_text())["suffixes"]
    return [
        "\nconst struct ft__embedded_suffix ft__embedded_suffixes[] = {\n",
        *(f"    {{{literal(end)}, {quantization(how)}, {literal(owner[0]) if owner else 0}}},\n" for end, how, *owner in rows),
        "    {0, 0, 0},\n};\n",
    ]


def refuse_formats(entries: list, path: pathlib.Path) -> None:
    """A name that says how weights are stored (-FP8) would be answered as the model's own: it belongs to checkpoints."""
    ends = tuple(end for end, how, *_ in json.loads(path.read_text())["suffixes"] if how)
    for entry in entries:
        for name in entry.get("aliases", []):
            if fold(name).endswith(ends):
                sys.exit(f'{entry["name"]}: "{name}" names a format: leave it to data/suffixes.json, or say it in "checkpoints"')


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    entries = [entry_of(path) for path in sorted(folder.glob("*.json"), key=lambda path: path.stem.encode())]
    refuse_formats(entries, folder.parent / "suffixes.json")
    names = names_of(entries)
    add_tags(names, folder.parent / "tags.json")
    parts = [
        "/* Made from data/models/ by scripts/embed_models.py. */\n",
        '#pragma GCC diagnostic ignored "-Woverlength-strings"\n',
        '#include "import/embedded.h"\n\n',
        *graphs(entries),
        f"const size_t ft__embedded_model_count = {len(entries)};\n",
        "const ft_model_entry ft__embedded_models[] = {\n",
        *(f"    {{{fields(index, entry)}}},\n" for index, entry in enumerate(entries)),
        "    {0, 0, 0, 0, 0, 0, 0},\n};\n\n",
        f"const size_t ft__embedded_model_name_count = {len(names)};\n",
        "const struct ft__embedded_model_name ft__embedded_model_names[] = {\n",
        *(f"    {{{literal(name)}, {names[name][0]}, {quantization(names[name][1])}}},\n"
          for name in sorted(names, key=str.encode)),
        "    {0, 0, 0},\n};\n",
    ]
    parts += suffixes(folder.parent / "suffixes.json")
    source = "".join(parts)
    if not output.exists() or output.read_text() != source:
        output.write_text(source)


if __name__ == "__main__":
    main()
