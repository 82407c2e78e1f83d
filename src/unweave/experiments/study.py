"""A study: a published table or figure as cells that are measured one by one, and what is read off them.

A cell is a few numbers and words, the seed among them; measuring it depends on nothing else. So cells can be
measured anywhere, stored, and measured again only where they are missing. The size of a study chooses its
cells: "quick" takes small ones, "published" those of the source.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unweave.arrays import Array
from unweave.experiments.experiment import Figure, Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Size = Literal["quick", "published"]
Cell = Mapping[str, int | float | str]
"""What one task measures; ``cell["seed"]`` draws its networks and samples."""
Values = Mapping[str, Any]
"""Numbers, or lists of numbers, by name."""


@dataclass(frozen=True)
class Record:
    """A cell that was measured."""

    cell: Cell
    values: Values
    seconds: float = 0.0


Records = Sequence[Record]


@dataclass(frozen=True)
class Picture:
    """A drawing of a study, of the kind that the source prints."""

    title: str
    caption: str
    """What the drawing shows, in words."""
    paint: Callable[[Drawing, Records], None]
    wide: bool = True
    rows: Callable[[Records], int] = lambda records: 1
    """Rows of panels, by which the height is chosen."""


@dataclass(frozen=True)
class Study:
    """How a published table or figure is measured, judged and drawn."""

    cells: Callable[[Size, range], Iterable[Cell]]
    """Cells of a size for the given seeds."""
    measure: Callable[[Cell], Values]
    figures: Callable[[Records], Iterable[Figure]]
    """Published beside measured; cells that are missing are left out."""
    pictures: tuple[Picture, ...] = ()

    def run(self, seed: int, progress: Progress) -> Iterable[Figure]:
        """Measure the quick size with one seed, one cell after the other."""
        records = []
        for cell in self.cells("quick", range(seed, seed + 1)):
            progress(named(cell))
            records.append(measured(self, cell))
        yield from self.figures(records)


def measured(study: Study, cell: Cell) -> Record:
    """Measure one cell."""
    began = time.perf_counter()
    values = study.measure(cell)
    return Record(cell, values, time.perf_counter() - began)


def named(cell: Cell) -> str:
    """A cell in words: ``D = 20, m = 60, seed 0``."""
    parts = [f"{name} = {value}" for name, value in cell.items() if name != "seed"]
    return ", ".join([*parts, f"seed {cell['seed']}"])


def grouped(records: Records, *names: str) -> dict[tuple[Any, ...], list[Record]]:
    """Records by the values of these parts of their cells, in the order in which those first come."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record.cell[name] for name in names), []).append(record)
    return groups


def numbers(records: Iterable[Record], name: str) -> Array:
    """One value of every record as floats; what is None is infinite: a run that came to no end."""
    return np.array(
        [np.inf if record.values[name] is None else record.values[name] for record in records],
        dtype=np.float64,
    )


def series(records: Records, part: str, name: str) -> tuple[list[Any], list[Array]]:
    """A part of the cells in order, and one value of the records at each: a curve with its spread."""
    by = grouped(records, part)
    places = sorted(by)
    return [place for (place,) in places], [numbers(by[place], name) for place in places]


def mean(records: Iterable[Record], name: str) -> float:
    """Mean of one value over records."""
    return float(np.mean(numbers(records, name)))


def ratio(value: float, reference: float) -> float:
    """``value`` over ``reference``; not a number over zero, so that no rule agrees."""
    return value / reference if reference else float("nan")
