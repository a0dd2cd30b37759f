"""One description of what an answer shows, and its two forms: text for a terminal, HTML for a notebook.

The HTML is self-contained (no script, no network, nothing outside its own element), every text in it is escaped, and it
takes colours from the page around it, so that it reads in a dark notebook as in a light one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = ["Sheet", "Table", "count", "gib", "ms", "number", "percent", "range_of"]


@dataclass
class Table:
    """Rows under headings; columns named in ``left`` are words, the others figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    more: int = 0  # rows that are not shown


@dataclass
class Sheet:
    """A title, facts one below the other, shares of a whole, and tables."""

    title: str
    facts: list[tuple[str, str, str]] = field(default_factory=list)  # label, value, remark
    shares: list[tuple[str, float]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    warnings: Sequence[str] = ()

    def add(self, label: str, value: str | None, remark: str = "") -> None:
        """A fact, unless there is nothing to say."""
        if value:
            self.facts.append((label, value, remark))

    def text(self) -> str:
        """Aligned columns; no colour, so that it may be logged."""
        lines = [self.title]
        if self.facts:
            wide = max(len(label) for label, _, _ in self.facts)
            figures = max((len(value) for _, value, remark in self.facts if remark), default=0)
            for label, value, remark in self.facts:
                lines.append(f"  {label:<{wide}}  {value:<{figures if remark else 0}}  {remark}".rstrip())
        if self.shares:
            said = ", ".join(f"{name} {percent(share)}" for name, share in self.shares if share >= 0.005)
            lines.append(f"  {said}")
        for table in self.tables:
            lines += [*([""] if table.title else []), *_text_of(table)]
        lines += [f"  warning: {each}" for each in self.warnings]
        return "\n".join(lines)

    def html(self, below: str = "") -> str:
        """One element with its own style; ``below`` is HTML that ends it."""
        parts = [f'<div class="foretell"><style>{_STYLE}</style>', f"<p><strong>{escape(self.title)}</strong></p>"]
        if self.facts:
            rows = "".join(
                f'<tr><th scope="row"{_inner(label)}>{escape(label.strip())}</th><td>{escape(value)}</td>'
                f'<td class="w">{escape(remark)}</td></tr>'
                for label, value, remark in self.facts
            )
            parts.append(f"<table>{rows}</table>")
        if self.shares:
            parts.append(_bar_of(self.shares))
        parts += [_html_of(table) for table in self.tables]
        parts += [f"<p>⚠ {escape(each)}</p>" for each in self.warnings]
        return "".join(parts) + below + "</div>"


_STYLE = (
    ".foretell{font-size:13px;line-height:1.45;color:inherit}"
    ".foretell p{margin:.4em 0}"
    ".foretell table{border-collapse:collapse;margin:.3em 0 .8em;background:transparent;color:inherit}"
    ".foretell caption{text-align:left;font-weight:600;padding:.2em 0}"
    ".foretell th,.foretell td{padding:.15em .7em;text-align:right;border:0;background:transparent;"
    "border-bottom:1px solid rgba(128,128,128,.35);font-variant-numeric:tabular-nums}"
    ".foretell th{font-weight:600}"
    ".foretell td,.foretell th{white-space:nowrap}"
    ".foretell th[scope=row],.foretell .w{text-align:left;white-space:normal}"
    ".foretell th.in{font-weight:400;padding-left:2em}"
    ".foretell .bar{display:flex;width:100%;max-width:36em;height:1.1em;border-radius:3px;overflow:hidden}"
    ".foretell .key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 .9em}"
)
# Middle tones: they stand out from white and from black.
_COLOURS = {"compute": "#3b82c4", "memory": "#d08a2e", "overhead": "#8a8f98", "communication": "#4a9d6f"}
_OTHER_COLOURS = ("#3b82c4", "#d08a2e", "#8a8f98", "#4a9d6f", "#a56cc1", "#c4554d")


def _bar_of(shares: Sequence[tuple[str, float]]) -> str:
    bars, keys = [], []
    for at, (name, share) in enumerate(shares):
        colour = _COLOURS.get(name, _OTHER_COLOURS[at % len(_OTHER_COLOURS)])
        if share >= 0.0005:
            bars.append(f'<span style="width:{100 * share:.1f}%;background:{colour}"></span>')
        keys.append(f'<span class="key" style="background:{colour}"></span>{escape(name)} {percent(share)}')
    said = ", ".join(f"{name} {percent(share)}" for name, share in shares)
    return f'<div class="bar" role="img" aria-label="{escape(said)}">{"".join(bars)}</div><p>{"".join(keys)}</p>'


def _inner(label: str) -> str:
    """A part of the fact above it: indented in text, and here."""
    return ' class="in"' if label.startswith("  ") else ""


def _html_of(table: Table) -> str:
    def cell(at: int, value: str, tag: str) -> str:
        words = ' class="w"' if at in table.left else ""
        return f"<{tag}{words}>{escape(value)}</{tag}>"

    head = "".join(cell(at, name, "th") for at, name in enumerate(table.columns))
    body = "".join(
        "<tr>" + "".join(cell(at, value, "td") for at, value in enumerate(row)) + "</tr>" for row in table.rows
    )
    rest = f"<p>… and {table.more} more</p>" if table.more else ""
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _text_of(table: Table) -> list[str]:
    rows = [list(table.columns), *[list(row) for row in table.rows]]
    wide = [max(len(row[at]) for row in rows) for at in range(len(table.columns))]
    lines = [table.title] if table.title else []
    for row in rows:
        cells = [f"{value:<{wide[at]}}" if at in table.left else f"{value:>{wide[at]}}" for at, value in enumerate(row)]
        lines.append("  " + "  ".join(cells).rstrip())
    if table.more:
        lines.append(f"  … and {table.more} more")
    return lines


# -- figures ---------------------------------------------------------------------------------------------------------


def number(value: float | None) -> str:
    """Three significant figures, without an exponent where people would not write one.

    >>> number(271.16), number(0.178517), number(44369.8), number(None)
    ('271', '0.179', '44,370', '')
    """
    if value is None:
        return ""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 0.001:
        return f"{float(f'{value:.3g}'):.10g}"
    return f"{value:.3g}"


def ms(value: float | None) -> str:
    """A time in the unit people would say it in.

    >>> ms(271.16), ms(0.0031), ms(62_000)
    ('271 ms', '3.1 µs', '62 s')
    """
    if value is None:
        return ""
    if abs(value) >= 10_000:
        return f"{number(value / 1e3)} s"
    if 0 < abs(value) < 0.1:
        return f"{number(value * 1e3)} µs"
    return f"{number(value)} ms"


def range_of(low: float | None, high: float | None) -> str:
    """An interval of times, or nothing.

    >>> range_of(231, 362.6)
    '231 ms to 363 ms'
    """
    return f"{ms(low)} to {ms(high)}" if low is not None and high is not None else ""


def gib(value: float | None) -> str:
    """Bytes as GiB, small ones as MiB.

    >>> gib(85040352461), gib(3 * 2**20)
    ('79.2 GiB', '3 MiB')
    """
    if value is None:
        return ""
    if 0 < abs(value) < 2**28:
        return f"{number(value / 2**20)} MiB"
    return f"{number(value / 2**30)} GiB"


def percent(value: float | None) -> str:
    """A share.

    >>> percent(0.356)
    '35.6 %'
    """
    return "" if value is None else f"{number(100 * value)} %"


def count(value: float | None) -> str:
    """A large count in short.

    >>> count(8030261248), count(124439808), count(12)
    ('8.03 B', '124 M', '12')
    """
    if value is None:
        return ""
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if abs(value) >= size:
            return f"{number(value / size)} {unit}"
    return number(value)
