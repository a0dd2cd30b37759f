#!/usr/bin/env python3
"""Turn measured constants into a C header: embed_constants.py data/constants/ROOM/SUBJECT.json OUTPUT.

A file says what its subject is and lists constants, each with where it comes from:

    {"about": "...",
     "constants": [
       {"name": "board_share", "value": 0.9, "unit": "share of the board's limit",
        "what": "what boards give", "source": "large products on six GPUs", "date": "2026-11-15"},
       {"name": "matrix_pj", "table": [{"generation": "volta", "pj": 2.2}, ...], ...}]}

`value` is a number and becomes a macro, FT_K_SUBJECT_NAME: it may stand in an initialiser and costs nothing. `table` is
  - a list of numbers, or a list of such lists of one length: `static const double ft__k_subject_name[N]` or [N][M];
  - a list of objects with the same keys: an array of structs with those members;
  - one object: a struct with those members.
`rows` is an object of objects with the same keys, for an array that stands in C: each becomes a macro
FT_K_SUBJECT_NAME_ROW that is the initialiser {"row", its numbers}; a `what` in a row is a comment.
A list comes with FT_K_SUBJECT_NAME_COUNT. Numbers are doubles unless `"integer": true` (or, for objects, `"integer":
["key", ...]`) says int; null is "no limit", INFINITY; texts and true or false stay what they are. Numbers reach C with
the digits of the file. A wrong or missing key stops the build; a constant that is missing does not compile. The output
is left alone when it would not change.
"""
import json
import pathlib
import re
import sys
import textwrap

NAME = re.compile(r"[a-z][a-z0-9_]*")
DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
TEXTS = ("name", "unit", "what", "source", "date")
REQUIRED = set(TEXTS)
ALLOWED = REQUIRED | {"value", "table", "rows", "integer"}


class Number(str):
    """A number as the file writes it."""

    @property
    def whole(self) -> bool:
        return re.fullmatch(r"-?\d+", self) is not None

    def literal(self, integer: bool) -> str:
        if integer and not self.whole:
            raise ValueError(f"{self} is not a whole number")
        text = str(self) if integer or not self.whole else f"{self}.0"
        return f"({text})" if text.startswith("-") else text


def pairs(items: list) -> dict:
    names = [name for name, _ in items]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f'"{name}" is given twice')
    return dict(items)


def comment(text: str) -> str:
    text = " ".join(text.split()).replace("*/", "* /")
    return textwrap.fill(f"/* {text} */", 120, subsequent_indent=" * ", break_long_words=False, break_on_hyphens=False)


def quoted(text: str) -> str:
    if not all(0x20 <= ord(c) < 0x7F for c in text):
        raise ValueError(f"{text!r} is not plain ASCII")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"'


def kind(value) -> str:
    if value is None or isinstance(value, Number):
        return "number"
    return "truth" if isinstance(value, bool) else "text" if isinstance(value, str) else "other"


def scalar(value, integer: bool) -> str:
    if value is None:
        if integer:
            raise ValueError("null is no whole number")
        return "INFINITY"
    if isinstance(value, Number):
        return value.literal(integer)
    return ("true" if value else "false") if isinstance(value, bool) else quoted(value)


class Subject:
    def __init__(self, path: pathlib.Path):
        self.room, self.name = path.parent.name, path.stem
        document = json.loads(path.read_text(encoding="utf-8"), parse_float=Number, parse_int=Number,
                              object_pairs_hook=pairs)
        if not NAME.fullmatch(self.name):
            raise ValueError(f"a file is named as C names are, got {self.name!r}")
        if not isinstance(document, dict) or set(document) != {"about", "constants"}:
            raise ValueError('expected an object with "about" and "constants"')
        if not isinstance(document["about"], str) or not isinstance(document["constants"], list):
            raise ValueError('"about" is a text, "constants" a list')
        self.about, self.constants, self.names = document["about"], [], []
        self.symbols = []  # what C may use of it
        for at, entry in enumerate(document["constants"]):
            label = entry.get("name", f"constant {at + 1}") if isinstance(entry, dict) else f"constant {at + 1}"
            try:
                self.constants.append(self.constant(entry))
            except ValueError as error:
                raise ValueError(f"{label}: {error}") from None
            if self.names.count(label) > 1:
                raise ValueError(f"{label}: there are two of that name")

    def constant(self, entry) -> str:
        if not isinstance(entry, dict):
            raise ValueError("expected an object")
        for key in sorted(set(entry) - ALLOWED):
            raise ValueError(f'unknown key "{key}"; known are {", ".join(sorted(ALLOWED))}')
        for key in TEXTS:
            if not isinstance(entry.get(key), str) or isinstance(entry[key], Number) or not entry[key].strip():
                raise ValueError(f'"{key}" is missing or not a text')
        if not NAME.fullmatch(entry["name"]):
            raise ValueError("a constant is named in small letters, digits and _")
        if "not recorded" in entry["source"]:
            raise ValueError('"source" is a measurement, a publication, or "chosen by judgement, no measurement" and what moves')
        if not DATE.fullmatch(entry["date"]):
            raise ValueError(f'"date" is YYYY, YYYY-MM or YYYY-MM-DD, got "{entry["date"]}"')
        if sum(key in entry for key in ("value", "table", "rows")) != 1:
            raise ValueError('exactly one of "value", "table" and "rows" is expected')
        self.names.append(entry["name"])
        head = comment("{what}. Unit: {unit}. Source: {source}, {date}.".format(**{k: entry[k].rstrip(".") for k in TEXTS}))
        integer = entry.get("integer", False)
        macro, symbol = f"FT_K_{self.name}_{entry['name']}".upper(), f"ft__k_{self.name}_{entry['name']}"
        if "rows" in entry:
            return f"{head}\n{self.initialisers(macro, entry['rows'], integer)}"
        self.symbols.append((macro, symbol))
        if "value" in entry:
            if not isinstance(entry["value"], Number) or not isinstance(integer, bool):
                raise ValueError('"value" is a number, and "integer" true or false')
            return f"{head}\n#define {macro} {entry['value'].literal(integer)}\n"
        table = entry["table"]
        if isinstance(table, dict):
            members, row = self.record([table], integer)
            return f"{head}\nstatic const struct {symbol} {{\n{members}}} {symbol} = {row[0]};\n"
        if not isinstance(table, list) or not table:
            raise ValueError('"table" is a list with something in it, or an object')
        count = f"enum {{ {macro}_COUNT = {len(table)} }};\n"
        if all(isinstance(row, dict) for row in table):
            members, rows = self.record(table, integer)
            body = "".join(f"    {row},\n" for row in rows)
            return f"{head}\nstatic const struct {symbol} {{\n{members}}} {symbol}[] = {{\n{body}}};\n{count}"
        if not isinstance(integer, bool):
            raise ValueError('"integer" is true or false for numbers')
        rows = table if isinstance(table[0], list) else [table]
        if any(not isinstance(row, list) or len(row) != len(rows[0]) or any(kind(x) != "number" for x in row)
               for row in rows):
            raise ValueError("rows of a table are numbers, as many in each")
        lines = ["{" + ", ".join(scalar(x, integer) for x in row) + "}" for row in rows]
        type_ = "int" if integer else "double"
        if rows[0] is table[0]:
            body = "".join(f"    {line},\n" for line in lines)
            return f"{head}\nstatic const {type_} {symbol}[][{len(rows[0])}] = {{\n{body}}};\n{count}"
        return f"{head}\nstatic const {type_} {symbol}[] = {lines[0]};\n{count}"

    def initialisers(self, macro: str, rows, integer) -> str:
        if not isinstance(rows, dict) or not rows or not all(isinstance(row, dict) for row in rows.values()):
            raise ValueError('"rows" is an object of objects')
        said = {name: row.pop("what") for name, row in rows.items() if isinstance(row.get("what"), str)}
        text = ""
        for (name, _), body in zip(rows.items(), self.record(list(rows.values()), integer)[1]):
            if not NAME.fullmatch(name):
                raise ValueError(f'"{name}" is no name for a row')
            self.symbols.append((f"{macro}_{name}".upper(),) * 2)
            text += (comment(said[name]) + "\n") if name in said else ""
            text += f"#define {macro}_{name.upper()} {{{quoted(name)}, {body[1:]}\n"
        return text

    @staticmethod
    def record(rows: list, integer) -> tuple:
        """Members of a struct for `rows`, objects with the same keys, and an initialiser for each."""
        keys = list(rows[0])
        whole = [] if integer is False else integer
        if not isinstance(whole, list) or any(key not in keys for key in whole):
            raise ValueError(f'"integer" names keys of the table, which are {", ".join(keys)}')
        members = []
        for key in keys:
            if not NAME.fullmatch(key):
                raise ValueError(f'"{key}" is no name for a member')
            kinds = {kind(row.get(key, [])) for row in rows}
            if kinds not in ({"number"}, {"text"}, {"truth"}):
                raise ValueError(f'"{key}" has to be in every row, as a number, a text or true or false')
            type_ = {"text": "const char *", "truth": "bool ", "number": "int " if key in whole else "double "}
            members.append(f"    {type_[kinds.pop()]}{key};\n")
        for row in rows:
            if list(row) != keys:
                raise ValueError(f"every row has the keys {', '.join(keys)}, in this order")
        return "".join(members), ["{" + ", ".join(scalar(row[k], k in whole) for k in keys) + "}" for row in rows]

    def header(self) -> str:
        guard = f"FT_{self.room}_{self.name}_CONSTANTS_H".upper()
        return "\n".join([
            f"/* Made from data/constants/{self.room}/{self.name}.json by scripts/embed_constants.py. */",
            comment(self.about), f"#ifndef {guard}", f"#define {guard}", "#include <math.h>", "#include <stdbool.h>",
            "", *self.constants, "#endif", ""])


def main() -> int:
    path, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    try:
        source = Subject(path).header()
    except ValueError as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1
    if not output.exists() or output.read_text() != source:
        output.write_text(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
