"""Experiments for people: the list of them, and a table of published beside measured figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from unweave.cli.output.console import print_heading, print_line, print_table
from unweave.experiments import Experiment, Figure
from unweave.experiments.numbers import number

_COLUMNS_BESIDE_CLAIMS = 11  # margin, seconds, and the gaps between
_LEAST_CLAIM_COLUMNS = 20  # narrower texts cannot be read


def show_catalogue(console: Console, experiments: Sequence[Experiment]) -> None:
    """Print names and claims, source by source, in columns that all sources share."""
    names = max(len(experiment.name) for experiment in experiments)
    claims = max(len(experiment.claim) for experiment in experiments)
    room = console.width - names - _COLUMNS_BESIDE_CLAIMS  # claims are broken where the terminal is narrow
    for source, group in groupby(experiments, key=lambda experiment: experiment.source.partition(",")[0]):
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="cyan", no_wrap=True, min_width=names)
        grid.add_column(overflow="fold", width=max(min(claims, room), _LEAST_CLAIM_COLUMNS))
        grid.add_column(justify="right", style="dim", no_wrap=True)
        for experiment in group:
            place = experiment.source.partition(", ")[2]
            claim = Text.assemble(experiment.claim, (f"\n{place}", "dim"))
            grid.add_row(experiment.name, claim, f"{experiment.seconds:g} s")
        print_heading(console, source)
        console.print(Padding(grid, (0, 0, 0, 2), expand=False))


def show_figures(console: Console, experiment: Experiment, figures: Sequence[Figure], seconds: float) -> None:
    """Print the claim, the table, and under it the notes needed to read it."""
    print_heading(console, experiment.name)
    about = f"{experiment.source}\n{experiment.claim}\nHere: {experiment.setting}."
    console.print(Padding(Text(about, "dim"), (0, 0, 1, 2), expand=False))
    notes = list(dict.fromkeys(figure.note for figure in figures if figure.note))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("quantity", overflow="fold")
    for name in ("published", "measured"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("agrees", no_wrap=True)
    for figure in figures:
        mark = f" [{notes.index(figure.note) + 1}]" if figure.note else ""
        published = f"{figure.relation} {number(figure.published)}".strip()
        quantity = Text.assemble(figure.quantity, (mark, "dim"))
        table.add_row(quantity, published, number(figure.measured), verdict(figure))
    console.print(Padding(table, (0, 0, 1, 2), expand=False))
    for index, note in enumerate(notes, 1):
        console.print(Padding(Text(f"[{index}] {note}", "dim"), (0, 0, 0, 2), expand=False))
    for figure in figures:
        if figure.agrees is False:
            print_line(console, Text(f"  {figure.quantity} does not agree; the rule: {figure.rule}", "red"))
    console.print(Padding(Text(f"{seconds:.1f} s", "dim"), (0, 0, 0, 2), expand=False))


def verdict(figure: Figure) -> Text:
    """Return "yes", "NO", or an empty text where nothing is decided."""
    if figure.agrees is None:
        return Text("")
    return Text("yes", "green") if figure.agrees else Text("NO", "bold red")


def summary(figures: Sequence[Figure], complete: int, asked: int, interrupted: bool) -> tuple[str, str]:
    """Return the last line and its style."""
    decided = [figure for figure in figures if figure.agrees is not None]
    against = sum(figure.agrees is False for figure in decided)
    experiments = f"{complete} of {asked} experiments" if asked > 1 else "experiment"
    if interrupted:
        counted = f"{len(decided) - against} of {len(decided)} figures measured so far agree"
        state = "done" if asked > 1 else "not finished"
        return f"INTERRUPTED {experiments} {state}; {counted}", "bold yellow"
    where = f" in {asked} experiments" if asked > 1 else ""
    if against:
        return f"DIFFERENT {against} of {len(decided)} figures do not agree{where}", "bold red"
    return f"AGREES all {len(decided)} figures{where}", "bold green"


@dataclass(frozen=True)
class StoredRow:
    """What is stored of one experiment."""

    name: str
    measured: int
    """Cells that are there, of those asked for."""
    asked: int
    seconds: float
    figures: Sequence[Figure]


def show_stored(console: Console, rows: Sequence[StoredRow]) -> None:
    """Print for every experiment how many cells are there, how many figures agree, and which do not."""
    lines = []
    for row in rows:
        decided = [figure for figure in row.figures if figure.agrees is not None]
        against = dict.fromkeys(figure.quantity for figure in decided if not figure.agrees)
        agreeing = f"{sum(bool(figure.agrees) for figure in decided)} of {len(decided)}"
        cells = f"{row.measured} of {row.asked}"
        lines.append((row.name, cells, f"{row.seconds:.1f}", agreeing, "; ".join(against)))
    columns = ("experiment", "cells", "seconds", "figures agree", "figures that do not")
    print_table(console, "Stored results", columns, lines)
