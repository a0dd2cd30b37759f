#!/usr/bin/env python3
"""Write the stacks of a folder as a C table: embed_stacks.py FOLDER OUTPUT.

Sorted by name, so that the same files give the same bytes; left alone when nothing would change. A file without what it
needs, a trait without a source, a base that is not there stop the build; a trait that src/model/stack.h does not know
stops the compiler. With --page PAGE in place of OUTPUT it writes the tables of docs/stacks.md, between its marks; with
--check PAGE it fails where they are not what the files say.
"""
from __future__ import annotations

import json
import pathlib
import re
import sys

import embedding

ROLES = ("tokens", "written_out_sharded", "written_out", "ported", "fused_before_fp8", "fused", "fused_linear", "trainer_fused_linear", "first_flash", "masters", "eager_shards",
         "shards", "replicas", "one")
ATTENTION = {"flash": "FT_FLASH", "eager": "FT_EAGER", "sdpa": "FT_SDPA", "flash1": "FT_FLASH1", "flash2": "FT_FLASH2",
             "flash3": "FT_FLASH3", "cudnn": "FT_CUDNN"}
# A file may also say on which version of PyTorch it runs: "pytorch".
DEFAULTS = ("execution", "attention", "compile_scope", "loss", "cp_kind", "expert_dispatch", "master_weights", "clip_grad", "zero")
LOSSES = {"model": "of_model"}
MARKS = ("<!-- made from data/stacks -->", "<!-- end -->")
SCOPES = {"auto": "FT_SCOPE_OPEN", "model": "FT_SCOPE_MODEL", "layers": "FT_SCOPE_LAYERS", "loss": "FT_SCOPE_LOSS"}
KEYS = {"name", "title", "date", "base", "default_for", "default_gpus", "models", "defaults", "traits", "sources", "notes"}


def load(folder: pathlib.Path) -> dict[str, dict]:
    """Every stack with what it inherits, by name."""

    def check(stack: dict) -> None:
        own = set(stack.get("traits", {})) | {f"defaults.{key}" for key in stack.get("defaults", {})}
        if own ^ set(stack.get("sources", {})):
            raise ValueError(f"sources and traits differ: {sorted(own ^ set(stack.get('sources', {})))}")

    read = embedding.files(folder, KEYS, check)

    def whole(name: str, above: tuple[str, ...]) -> dict:
        stack, base = read[name], embedding.base_of(folder, read, name, above, "stack")
        below = whole(base, (*above, base)) if base else {"traits": {}, "defaults": {}}
        kept = {key: value for key, value in stack.items() if key not in ("traits", "defaults")}
        return {**kept, "traits": {**below["traits"], **stack.get("traits", {})},
                "defaults": {**below["defaults"], **stack.get("defaults", {})}}

    return {name: whole(name, (name,)) for name in read}


def entry(stack: dict, names: list[str]) -> str:
    defaults = stack["defaults"]
    runs = [f"FT_RUN_{word}".upper() for word in defaults["execution"]]
    fields = [
        f".name = {json.dumps(stack['name'])}",
        f".title = {json.dumps(stack['title'])}",
        f".base = &ft__stacks[{names.index(stack['base'])}]" if "base" in stack else ".base = NULL",
        f".models = {json.dumps(' '.join(stack.get('models', [])))}",
        f".default_gpus = {json.dumps(' '.join(stack.get('default_gpus', [])))}",
        f".executions = {' | '.join(f'1u << {word}' for word in runs)}",
        f".execution = {runs[0]}",
        f".attention = {ATTENTION[defaults['attention']]}",
        f".compile_scope = {SCOPES[defaults['compile_scope']]}",
        f".loss = FT_ENTROPY_{LOSSES.get(defaults['loss'], defaults['loss']).upper()}",
        f".cp_kind = {json.dumps(defaults['cp_kind'])}",
        f".master_weights = {str(defaults['master_weights']).lower()}",
        f".clip_grad = {str(defaults['clip_grad']).lower()}",
        f".zero = {int(defaults['zero'])}",
        f".pytorch = {json.dumps(defaults.get('pytorch', ''))}",
        f".dispatch_once = {str(defaults['expert_dispatch'] == 'once').lower()}",
        *(f".{trait} = {embedding.trait_value(trait, said)}" for trait, said in sorted(stack["traits"].items())),
    ]
    return "    {" + ",\n     ".join(fields) + "},\n"


def source(stacks: dict[str, dict]) -> str:
    names = list(stacks)
    roles = {stack["default_for"]: name for name, stack in stacks.items() if "default_for" in stack}
    if set(roles) != set(ROLES):
        sys.exit(f"default_for: each of {', '.join(ROLES)} must be some stack's; they are {roles}")
    places = {role: names.index(roles[role]) for role in ROLES}
    defaults = "".join(f"    [FT_STACK_FOR_{role.upper()}] = &ft__stacks[{at}],\n" for role, at in places.items())
    return (
        "/* Made from data/stacks/ by scripts/embed_stacks.py. */\n"
        '#include "model/stack.h"\n\n'
        f"const size_t ft__stack_count = {len(stacks)};\n"
        f"const ft_stack ft__stacks[] = {{\n{''.join(entry(stack, names) for stack in stacks.values())}}};\n\n"
        f"const ft_stack *const ft__default_stacks[FT_STACK_ROLES] = {{\n{defaults}}};\n"
    )


def shown(said: object) -> str:
    if isinstance(said, bool):
        return "yes" if said else "no"
    if isinstance(said, list):
        return ", ".join(f"`{word}`" for word in said)
    return f"`{said}`" if isinstance(said, str) else f"{said:g}"


def meanings() -> str:
    """Every trait as src/model/stack.h describes it, with its words or limits."""
    header = (pathlib.Path(__file__).resolve().parent.parent / "src/model/stack.h").read_text().replace("\\\n", " ")
    lines = ["| trait | values | what it says |", "|---|---|---|"]
    for macro in ("FLAGS", "WORDS", "NUMBERS"):
        body = re.search(rf"#define FT_STACK_{macro}\(X\)(.*)", header).group(1)
        for name, rest in re.findall(r"X\((\w+), (.*?)\)(?=\s+X\(|\s*$)", body):
            *words, text = re.findall(r'"([^"]*)"', rest)
            values = ", ".join(f"`{word}`" for word in words) if macro == "WORDS" else "yes, no"
            if macro == "NUMBERS":
                values = " to ".join(f"{float(limit):g}" for limit in rest.split(", ")[:2])
            lines.append(f"| `{name}` | {values} | {text} |")
    return "\n".join(lines) + "\n\n"


def table(stacks: dict[str, dict]) -> str:
    """What each is, then its traits: only what differs from the stack below it."""
    heads = ["stack", "what it is", "of", "stands on", *(f"`{key}`" for key in DEFAULTS)]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for name, stack in stacks.items():
        cells = [f"`{name}`", stack["title"], stack["date"], f"`{stack['base']}`" if "base" in stack else ""]
        cells += [shown(stack["defaults"][key]) for key in DEFAULTS]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| stack | trait | value | source |", "|---|---|---|---|"]
    for name, stack in stacks.items():
        for trait, text in stack.get("sources", {}).items():
            if not trait.startswith("defaults."):
                lines.append(f"| `{name}` | `{trait}` | {shown(stack['traits'][trait])} | {text} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    stacks = load(pathlib.Path(sys.argv[1]))
    if not embedding.page(sys.argv, MARKS, f"{table(stacks)}\n{meanings()}"):
        embedding.write(sys.argv[2], source(stacks))


if __name__ == "__main__":
    main()
