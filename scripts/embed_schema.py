#!/usr/bin/env python3
"""Write data/schema/answers.json as definitions of JSON Schema, inside a C text: embed_schema.py FILE OUTPUT.

That file says what its words mean. Left alone when nothing would change; a word that is none stops the build.
"""
from __future__ import annotations

import json
import sys

import embedding

PLAIN = {
    "number": {"type": "number", "minimum": 0}, "signed": {"type": "number"}, "text": {"type": "string"}, "flag": {"type": "boolean"},
    "numbers": {"type": "object", "additionalProperties": {"type": "number"}}, "object": {"type": "object"}, "any": {},
}
# What every answer may have: an id as it was given; on the command line its version and request.
EVERY = {"id": {}, "ok": {"const": True}, "version": {"type": "string"}, "request": {"type": "object"}}


def schema(value: object, names: set[str]) -> dict:
    if isinstance(value, list):
        return {"type": "array", "items": schema(value[0], names)}
    if isinstance(value, dict):
        return keys(value, names, {})
    if value in PLAIN:
        return PLAIN[value]
    if value in names:
        return {"$ref": f"#/$defs/{value}"}
    if "|" not in value:
        sys.exit(f"embed_schema.py: \"{value}\" is neither a type nor a shape")
    return {"enum": value.split("|")}


def keys(said: dict, names: set[str], every: dict) -> dict:
    properties = {**every, **{key.rstrip("!"): schema(value, names) for key, value in said.items() if not key.endswith("*")}}
    begun = {f"^{key[:-1]}": schema(value, names) for key, value in said.items() if key.endswith("*")}
    needed = [key for key in every if key == "ok" and "ok!" not in said] + [key[:-1] for key in said if key.endswith("!")]
    made = {"type": "object", "properties": properties, **({"patternProperties": begun} if begun else {}), "additionalProperties": False}
    return {**made, "required": needed} if needed else made


def main() -> None:
    said = json.load(open(sys.argv[1], encoding="utf-8"))
    names = {*said["shapes"], "answer.step"}
    shapes = {name: schema(value, names) for name, value in said["shapes"].items()}
    answers = {f"answer.{task}": {"description": about["what"], **keys(about["keys"], names, EVERY)}
               for task, about in said["answers"].items()}
    error = {"code": PLAIN["text"], "message": PLAIN["text"], "where": PLAIN["text"]}
    failed = {"id": {}, "ok": {"const": False}, "error": {"type": "object", "properties": error, "required": ["code", "message"],
                                                         "additionalProperties": False}}
    answers["error"] = {"description": "What comes where there is no answer", "type": "object", "properties": failed,
                        "required": ["ok", "error"], "additionalProperties": False}
    text = json.dumps({**shapes, **answers}, separators=(",", ":"))
    lines = [text[at:at + 100] for at in range(0, len(text), 100)]
    body = "\n".join("    " + json.dumps(line) + "," for line in lines)
    embedding.write(sys.argv[2], "/* Made from data/schema/answers.json by scripts/embed_schema.py. */\n"
                    f'#include "report/json/schema.h"\n\nconst char *const ft__answer_definitions[] = {{\n{body}\n    NULL}};\n')


if __name__ == "__main__":
    main()
