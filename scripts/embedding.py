"""What scripts that embed data as C share: files that stand on each other, writing one when it changes, and tables
between the marks of a page."""
from __future__ import annotations

import json
import pathlib
import sys
import typing


def write(output: str, text: str) -> None:
    """Left alone when nothing would change, so that nothing is built again."""
    path = pathlib.Path(output)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def trait_value(trait: str, said: object) -> str:
    """A trait's value as C writes it."""
    if isinstance(said, bool):
        return str(said).lower()
    if isinstance(said, str):
        return f"FT_{trait}_{said}".upper()
    return repr(float(said))  # type: ignore[arg-type]


def files(folder: pathlib.Path, keys: set[str], check: typing.Callable[[dict], None]) -> dict[str, dict]:
    """Every JSON file of a folder by name, sorted: each says its name, title and date, has no key but `keys`, and passes
    `check`, which raises ValueError."""
    read: dict[str, dict] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem.encode()):
        one = json.loads(path.read_text())
        try:
            if one["name"] != path.stem or not one["title"] or not one["date"]:
                raise ValueError("a title, a date and the file's own name are needed")
            if set(one) - keys:
                raise ValueError(f"unknown keys {sorted(set(one) - keys)}")
            check(one)
        except (KeyError, ValueError) as error:
            sys.exit(f"{path}: {error}")
        read[path.stem] = one
    return read


def base_of(folder: pathlib.Path, read: dict[str, dict], name: str, above: tuple[str, ...], what: str) -> str | None:
    """What a file stands on; one that is not there, or that stands on this one, stops the build."""
    base = read[name].get("base")
    if base is not None and (base not in read or base in above):
        sys.exit(f"{folder / name}.json: no base \"{base}\", or one that stands on this {what}")
    return base


def page(arguments: list[str], marks: tuple[str, str], tables: str) -> bool:
    """`FOLDER --page PAGE` writes the tables between the page's marks, `--check` fails where they differ; else False."""
    if arguments[2] not in ("--page", "--check"):
        return False
    path = pathlib.Path(arguments[3])
    before = path.read_text()
    head, _, rest = before.partition(marks[0])
    after = f"{head}{marks[0]}\n{tables}{marks[1]}{rest.partition(marks[1])[2]}"
    if arguments[2] == "--check" and after != before:
        sys.exit(f"{path} is not what {arguments[1]} says: {arguments[0]} {arguments[1]} --page {path}")
    path.write_text(after)
    return True
