"""Calm printing on stdout: words and tables that stay legible at 100 columns and in a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_CONSOLE_COLUMNS = 100
"""Columns used on wide terminals, and when the output is no terminal."""

Cell = str | Text


def stdout_console() -> Console:
    """Return a console on stdout, at most 100 columns wide, and as wide as the terminal or COLUMNS says."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    told = console.is_terminal or os.environ.get("COLUMNS", "").isdigit()
    console.width = min(console.width, _CONSOLE_COLUMNS) if told else _CONSOLE_COLUMNS
    return console


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def print_line(console: Console, text: Cell, style: str = "") -> None:
    """Print one line that is never broken, whatever the width: other programs read it."""
    console.print(text, style=style, soft_wrap=True)


def print_heading(console: Console, title: str) -> None:
    """Print an empty line, then ``title`` in bold."""
    console.print()
    console.print(title, style="bold")


def print_pairs(console: Console, pairs: Iterable[tuple[str, Cell]]) -> None:
    """Print names and what they are, in two columns."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, value)
    console.print(Padding(grid, (0, 0, 0, 2), expand=False))


def print_table(
    console: Console,
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    right: Sequence[str] = (),
) -> None:
    """Print a titled table without frame; columns named in ``right`` are aligned to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for index, heading in enumerate(headings):
        last = index == len(headings) - 1
        justify = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, no_wrap=not last, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    print_heading(console, title)
    console.print(Padding(table, (0, 0, 0, 2), expand=False))
