"""Calm printing on stdout: words and tables that stay legible at 100 columns and in a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_CONSOLE_COLUMNS = 100
"""Columns used on wide terminals, and when the output is no terminal."""

_INDENT, _GAP = 2, 2
"""Columns before a table, and between two of its columns."""
_LEAST_LAST_COLUMN = 24
"""Columns that the last column of a table needs: in fewer its text would be broken inside words."""

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
    """Print one line, which is broken between words on a terminal and nowhere else: programs read it."""
    console.print(text, style=style, soft_wrap=not console.is_terminal)


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
    """Print a titled table without frame; columns named in ``right`` are aligned to the right.

    Where the terminal leaves too little room for the last column, its text goes under the row.
    """
    held = [[_text(cell) for cell in row] for row in rows]
    print_heading(console, title)
    taken = sum(
        max(cell_len(heading), *(row[index].cell_len for row in held), 0) + _GAP
        for index, heading in enumerate(headings[:-1])
    )
    longest = max((row[-1].cell_len for row in held), default=0)
    under = console.width - _INDENT - taken < min(longest, _LEAST_LAST_COLUMN)
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="dim")
    for index, heading in enumerate(headings[:-1] if under else headings):
        last = not under and index == len(headings) - 1
        justify = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, no_wrap=not last, overflow="fold")  # type: ignore[arg-type]
    for row in held:
        table.add_row(*(row[:-1] if under else row))
    if not under:
        console.print(Padding(table, (0, 0, 0, _INDENT), expand=False))
        return
    lines = console.render_lines(table, console.options.update_width(console.width - _INDENT), pad=False)
    for number, line in enumerate(lines):
        console.print(
            Padding(Text("").join(Text(part.text, part.style or "") for part in line), (0, 0, 0, _INDENT))
        )
        if number:
            below = held[number - 1][-1]
            below.stylize("dim")
            console.print(Padding(below, (0, 0, 0, 2 * _INDENT), expand=False))


def _text(cell: Cell) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text(cell)
