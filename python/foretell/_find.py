"""Where libforetell and the program are.

In this order: what ``FORETELL_LIBRARY`` and ``FORETELL_PROGRAM`` name; what the wheel brought; a build in the source
tree that this file stands in; what the system has installed. The last step means that a distribution may package the
library by itself.
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from .errors import NotFoundError

_HERE = Path(__file__).resolve().parent
NATIVE = _HERE / "_native"  # the wheel puts them there
_SUFFIX = "dylib" if sys.platform == "darwin" else "so"

_WAY_OUT = (
    "install the package (pip install ./python), or build the source tree (make), or name the file in the environment "
    "variable {variable}"
)


def _source_builds() -> Iterator[Path]:
    """Build folders of the source tree, where this file stands in one."""
    root = _HERE.parent.parent
    if (root / "meson.build").is_file() and (root / "include" / "foretell.h").is_file():
        yield root / "build"


def _named(variable: str) -> Path | None:
    value = os.environ.get(variable)
    if not value:
        return None
    path = Path(value).expanduser()
    if not path.is_file():
        raise NotFoundError(f"{variable} names {value}, which is not a file", where=variable)
    return path.resolve()


def library() -> Path | str:
    """The shared library.

    >>> "foretell" in str(library())
    True
    """
    named = _named("FORETELL_LIBRARY")
    if named:
        return named
    for folder in (NATIVE, *_source_builds()):
        path = folder / f"libforetell.{_SUFFIX}"
        if path.is_file():
            return path
    found = ctypes.util.find_library("foretell")
    if found:
        return found
    raise NotFoundError("libforetell is not there; " + _WAY_OUT.format(variable="FORETELL_LIBRARY"))


def program() -> Path:
    """The ``foretell`` program, never a script that would start this package again.

    >>> program().name
    'foretell'
    """
    named = _named("FORETELL_PROGRAM")
    if named:
        return named
    for folder in (NATIVE, *_source_builds()):
        path = folder / "foretell"
        if path.is_file() and os.access(path, os.X_OK):
            return path
    found = shutil.which("foretell")
    if found and not _is_script(Path(found)):
        return Path(found)
    raise NotFoundError("the program foretell is not there; " + _WAY_OUT.format(variable="FORETELL_PROGRAM"))


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"
