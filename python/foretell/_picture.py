"""Drawings of the library, as a notebook shows them and as a file."""

from __future__ import annotations

import base64
import os
import re
from html import escape, unescape
from pathlib import Path

__all__ = ["Picture"]


class Picture(str):
    """An SVG document: text, with what a notebook needs to show it.

    >>> import foretell
    >>> picture = foretell.train("gpt2", gpu="h100_sxm", batch=8).picture("memory")
    >>> picture.heading, picture.startswith("<?xml")
    ('Memory over the step', True)
    """

    __slots__ = ()

    @property
    def heading(self) -> str:
        """What it shows, in words."""
        found = re.search(r"<title[^>]*>(.*?)</title>", self, re.S)
        return unescape(found.group(1)) if found else ""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file."""
        Path(path).write_text(self, encoding="utf-8")

    def _repr_html_(self) -> str:
        """As an image: a document of its own, so that neither its style nor its names meet those of the page."""
        data = base64.b64encode(self.encode()).decode()
        return (
            f'<img alt="{escape(self.heading)}" style="max-width:100%;height:auto;display:block;margin:.4em 0" '
            f'src="data:image/svg+xml;base64,{data}">'
        )
