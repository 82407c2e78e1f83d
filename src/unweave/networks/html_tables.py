"""Results in a notebook: small tables of HTML, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_LEFT = 'style="text-align: left; vertical-align: top"'
_MOST_ROWS = 30  # of one table; the rest is counted


def html_figures(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and figures under a title.

    >>> html_figures("A < B", [("error", "1e-9")]).count("&lt;")
    1
    """
    body = "".join(
        f"<tr><th {_LEFT}>{_text(name)}</th><td {_LEFT}>{_text(value)}</td></tr>" for name, value in rows
    )
    return f"<div><b>{_text(title)}</b><table>{body}</table></div>"


def html_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with headings under a title; of many rows the first ones."""
    held = list(rows)
    head = "".join(f"<th {_LEFT}>{_text(heading)}</th>" for heading in headings)
    lines = ["".join(f"<td {_LEFT}>{_text(cell)}</td>" for cell in row) for row in held[:_MOST_ROWS]]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    more = len(held) - _MOST_ROWS
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><b>{_text(title)}</b>{table}{rest}</div>"


def number(value: float | None) -> str:
    """Return three digits of a number; empty for None.

    >>> number(0.000123456), number(None), number(12)
    ('0.000123', '', '12')
    """
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _text(value: object) -> str:
    return escape(str(value))
