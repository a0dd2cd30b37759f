#!/usr/bin/env python3
"""Write the fabrics and servers of a folder as C tables: embed_clusters.py FOLDER OUTPUT.

Sorted by name, so that the same files give the same bytes; left alone when nothing would change. A file without what
it needs, or a server on a fabric that is not there, stops the build.
"""
import json
import pathlib
import sys

KINDS = {"infiniband": "FT_INFINIBAND", "roce": "FT_ROCE", "efa": "FT_EFA", "ethernet": "FT_ETHERNET"}
TOPOLOGIES = ("rails", "fat_tree", "dragonfly")


def text(value: str) -> str:
    return json.dumps(value)  # ASCII out; JSON's escapes are C's for what occurs in names


def words(values: list) -> str:
    return text(" " + " ".join(values) + " ")  # looked for with a blank on either side


def fabric(f: dict) -> str:
    return (
        f'    {{{text(f["name"])}, {KINDS[f["fabric"]]}, {float(f["gbit"])}, {float(f["efficiency"])}, '
        f'{float(f["latency_us"])}, {str(bool(f["reduces"])).lower()}}},\n'
    )


def server(s: dict, fabrics: set) -> str:
    if s["fabric"] not in fabrics:
        raise ValueError(f'no fabric "{s["fabric"]}"')
    if s["topology"] not in TOPOLOGIES:
        raise ValueError(f'no topology "{s["topology"]}"')
    return (
        f'    {{{text(s["name"])}, {text(s["title"])}, {words(s.get("also", []))}, {words(s["gpus"])}, '
        f'{text(s["fabric"])}, '
        f'{int(s["gpus_per_node"])}, {int(s["domain_gpus"])}, {int(s["nics_per_node"])}, {float(s["nic_gbit"])}, '
        f'{str(s["topology"] == "rails").lower()}, {int(s["leaf_nodes"])}, {float(s["oversubscription"])}}},\n'
    )


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    entries = []
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem.encode()):
        entry = json.loads(path.read_text())
        if entry.get("name") != path.stem or not entry.get("source"):
            sys.exit(f"{path}: a source and the file's own name are needed")
        entries.append((path, entry))
    fabrics = {e["name"] for _, e in entries if e["type"] == "fabric"}
    rows = {"fabric": [], "server": []}
    for path, e in entries:
        try:
            rows[e["type"]].append(fabric(e) if e["type"] == "fabric" else server(e, fabrics))
        except (KeyError, ValueError, TypeError) as error:
            sys.exit(f"{path}: {error!r}")
    source = (
        "/* Made from data/clusters/ by scripts/embed_clusters.py. */\n"
        '#include "comm/catalogue.h"\n\n'
        f'const size_t ft__fabric_count = {len(rows["fabric"])};\n'
        f'const ft_fabric_entry ft__fabrics[] = {{\n{"".join(rows["fabric"])}}};\n\n'
        f'const size_t ft__server_count = {len(rows["server"])};\n'
        f'const ft_server_entry ft__servers[] = {{\n{"".join(rows["server"])}}};\n'
    )
    if not output.exists() or output.read_text() != source:
        output.write_text(source)


if __name__ == "__main__":
    main()
