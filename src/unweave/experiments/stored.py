"""Results of experiments in a file of JSON lines: a run that is started again does only what is missing.

One line is one cell: the experiment's name, the cell (for an experiment without cells its seed alone), the
values measured, seconds, and the versions that it was measured with. Lines of another version of unweave do
not count as done. A line that was cut off by a crash is skipped.
"""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unweave.errors import InvalidInput
from unweave.experiments.experiment import Experiment, Figure
from unweave.experiments.study import Cell, Record, Size, measured

Task = tuple[str, Cell]
"""Name of an experiment, and one of its cells."""
_DIGITS = 5  # significant digits of stored numbers: more than any figure shows


def versions() -> dict[str, str]:
    """Versions that a result depends on."""
    import numpy
    import scipy

    import unweave

    return {
        "unweave": unweave.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }


def tasks(experiments: Iterable[Experiment], size: Size, seeds: range) -> list[Task]:
    """Every cell of the experiments, seed by seed."""
    found = [
        (experiment.name, cell)
        for experiment in experiments
        for cell in (
            [{"seed": s} for s in seeds] if experiment.study is None else _cells(experiment, size, seeds)
        )
    ]
    return sorted(found, key=lambda task: int(task[1]["seed"]))


def _cells(experiment: Experiment, size: Size, seeds: range) -> Iterable[Cell]:
    assert experiment.study is not None
    return experiment.study().cells(size, seeds)


def measure_cell(experiment: Experiment, cell: Cell) -> Record:
    """Measure one cell of a study, or a whole experiment with one seed."""
    if experiment.study is not None:
        return measured(experiment.study(), cell)
    began = time.perf_counter()
    figures = [asdict(figure) for figure in experiment.run(int(cell["seed"]), lambda text: None)]
    return Record(cell, {"figures": figures}, time.perf_counter() - began)


def figures_of(experiment: Experiment, records: Sequence[Record]) -> list[Figure]:
    """Published beside measured figures of all records; of an experiment without cells, seed by seed."""
    if not records:
        return []
    if experiment.study is not None:
        return list(experiment.study().figures(records))
    return [
        Figure(**{**figure, "measured": math.nan if figure["measured"] is None else figure["measured"]})
        for record in records
        for figure in record.values["figures"]
    ]


class ResultFile:
    """A file to which results are appended as they are known."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise InvalidInput(f"the file of results must not be a folder. Got {str(path)!r} instead.")

    def results(self) -> dict[str, list[Record]]:
        """All results of this version of unweave by experiment, in the order of the file, each cell once."""
        found: dict[str, dict[str, Record]] = {}
        own = versions()["unweave"]
        for line in self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else ():
            try:
                held = json.loads(line)
                if held["versions"]["unweave"] != own:
                    continue
                record = Record(held["cell"], held["values"], float(held["seconds"]))
                found.setdefault(held["name"], {}).setdefault(cell_key(record.cell), record)
            except (ValueError, KeyError, TypeError):
                continue
        return {name: list(cells.values()) for name, cells in found.items()}

    def of(self, wanted: Iterable[Task]) -> dict[str, list[Record]]:
        """Results of these tasks by experiment, in their order; empty lists where there are none."""
        held = {
            name: {cell_key(record.cell): record for record in records}
            for name, records in self.results().items()
        }
        found: dict[str, list[Record]] = {}
        for name, cell in wanted:
            records = found.setdefault(name, [])
            record = held.get(name, {}).get(cell_key(cell))
            if record is not None:
                records.append(record)
        return found

    def missing(self, wanted: Iterable[Task]) -> list[Task]:
        """Tasks whose result the file does not hold."""
        done = {(name, cell_key(record.cell)) for name, held in self.results().items() for record in held}
        return [(name, cell) for name, cell in wanted if (name, cell_key(cell)) not in done]

    def append(self, name: str, record: Record) -> None:
        """Add a line."""
        line = {
            "name": name,
            "cell": dict(record.cell),
            "seconds": round(record.seconds, 3),
            "versions": versions(),
            "values": _plain(record.values),
        }
        with self.path.open("a", encoding="utf-8") as file:
            if file.tell() and not self._ends_with_newline():
                file.write("\n")  # a line that a crash cut off
            file.write(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n")

    def _ends_with_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, 2)
            return file.read(1) == b"\n"


def cell_key(cell: Cell) -> str:
    """A cell as text, the same for the same values."""
    return json.dumps(cell, sort_keys=True)


def _plain(value: Any) -> Any:
    """Plain values for JSON, floats with the digits that matter; what is not finite becomes None."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value
