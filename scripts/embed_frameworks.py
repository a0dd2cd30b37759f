#!/usr/bin/env python3
"""Write what frameworks allow as a C table: embed_frameworks.py FOLDER OUTPUT.

Sorted by name; left alone when nothing would change. A rule without a source, or a word that nobody knows, stops the
build. `like` takes another file's rules, before its own.
"""
from __future__ import annotations

import json
import pathlib
import sys

import embedding

SCHEDULES = {"gpipe": "FT_GPIPE", "1f1b": "FT_1F1B", "interleaved": "FT_INTERLEAVED",
             "zero_bubble": "FT_ZERO_BUBBLE", "dualpipe": "FT_DUALPIPE"}
RECOMPUTE = {"none": "FT_RECOMPUTE_NONE", "selective": "FT_RECOMPUTE_SELECTIVE", "full": "FT_RECOMPUTE_FULL"}
OFFLOAD = {"optimizer": "FT_OFFLOAD_OPTIMIZER", "optimizer_nvme": "FT_OFFLOAD_OPTIMIZER_NVME",
           "paged_optimizer": "FT_OFFLOAD_PAGED_OPTIMIZER", "activations": "FT_OFFLOAD_ACTIVATIONS", "parameters": "FT_OFFLOAD_PARAMETERS"}
CONTEXT = {"ring": "FT_CONTEXT_RING", "ulysses": "FT_CONTEXT_ULYSSES", "gather": "FT_CONTEXT_GATHER", "pytorch": "FT_CONTEXT_PYTORCH"}
SWITCHES = ("sp_with_tp", "tp_divides_kv_heads", "cp", "ep", "folds_experts", "only_data", "packed_weights",
            "own_program")
USUAL = {"": "FT_USUAL_FOR_NONE", "language_models": "FT_USUAL_FOR_LANGUAGE_MODELS", "others": "FT_USUAL_FOR_OTHERS",
         "packed_weights": "FT_USUAL_FOR_PACKED_WEIGHTS"}
HEAD = {"name", "title", "date", "like", "sources"}
RULES = {"stack", "execution", "usual_for", "zero", "schedules", "recompute", "runs", "files", "files_for_decoders", "offload", "cp_kinds", *SWITCHES}


def mask(values: list, words: dict[str, str] | None = None) -> str:
    return " | ".join(f"1u << {words[value] if words else int(value)}" for value in values)


def load(folder: pathlib.Path) -> dict[str, dict]:
    read = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    for name, said in read.items():
        own = set(said) - HEAD - {"zero_allowed"}
        if said.get("name") != name or not said.get("title") or not said.get("date"):
            sys.exit(f"{folder / name}.json: a title, a date and the file's own name are needed")
        if own - RULES or own ^ set(said.get("sources", {})):
            sys.exit(f"{folder / name}.json: rules and sources differ: {sorted((own - RULES) | (own ^ set(said['sources'])))}")
    usual = [said["usual_for"] for said in read.values() if said.get("usual_for")]
    if sorted(usual) != sorted(word for word in USUAL if word):
        sys.exit(f"{folder}: one framework is usual for each of {sorted(word for word in USUAL if word)}, got {sorted(usual)}")
    return {name: {**read.get(said.get("like", ""), {}), "usual_for": "", **said} for name, said in read.items()}


def offloads(said: dict) -> str:
    """What may lie on the host: one row a rule."""
    rows = [f"    {{.what = {mask(rule['what'], OFFLOAD)}, .zero = {mask(rule['zero'])}, .recompute = {mask(rule['recompute'], RECOMPUTE)},"
            f" .pipelines = {str(rule['pipelines']).lower()}, .tried = {str(rule['tried']).lower()}}},\n" for rule in said["offload"]]
    return f"static const ft_offload_rule offload_{said['name']}[] = {{\n{''.join(rows)}}};\n" if rows else ""


def entry(said: dict) -> str:
    fields = [f".name = {json.dumps(said['name'])}", f".title = {json.dumps(said['title'])}",
              f".stack = {json.dumps(said['stack']) if 'stack' in said else 'NULL'}",
              f".execution = {json.dumps(said['execution']) if 'execution' in said else 'NULL'}",
              f".runs = {json.dumps(said['runs'])}", f".files = {json.dumps(' ' + ' '.join(said['files']) + ' ')}",
              f".files_for_decoders = {json.dumps(' ' + ' '.join(said.get('files_for_decoders', [])) + ' ')}",
              f".like = {json.dumps(said['like']) if 'like' in said else 'NULL'}",
              f".zero = {mask(said['zero'])}", f".zero_allowed = {mask(said['zero_allowed'])}",
              f".schedules = {mask(said['schedules'], SCHEDULES)}", f".recompute = {mask(said['recompute'], RECOMPUTE)}",
              f".cp_kinds = {mask(said.get('cp_kinds', []), CONTEXT) or 0}",
              *(f".{key} = {str(bool(said.get(key, False))).lower()}" for key in SWITCHES),
              f".usual_for = {USUAL[said['usual_for']]}",
              f".offload = {'offload_' + said['name'] if said['offload'] else 'NULL'}, .offload_count = {len(said['offload'])}"]
    return "    {" + ",\n     ".join(fields) + "},\n"


def main() -> None:
    said = load(pathlib.Path(sys.argv[1]))
    text = ('/* Made from data/frameworks/ by scripts/embed_frameworks.py. */\n#include "search/framework.h"\n\n'
            f"{''.join(map(offloads, said.values()))}\n"
            f"const size_t ft__framework_count = {len(said)};\n"
            f"const ft_framework ft__frameworks[] = {{\n{''.join(map(entry, said.values()))}}};\n")
    embedding.write(sys.argv[2], text)


if __name__ == "__main__":
    main()
