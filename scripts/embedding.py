"""What scripts that embed data as C share: writing a file when it changes, and tables between the marks of a page."""
from __future__ import annotations

import pathlib
import sys


def write(output: str, text: str) -> None:
    """Left alone when nothing would change, so that nothing is built again."""
    path = pathlib.Path(output)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


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
