"""Results of experiments in a file of JSON lines: a run that is started again does only what is missing.

One line is one experiment with one seed: its figures, whether they agree, seconds, and the versions that it
was measured with. Lines of another version of unweave do not count as done. A line that was cut off by a
crash is skipped.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unweave.errors import InvalidInput
from unweave.experiments.experiment import Figure, agree


@dataclass(frozen=True)
class Result:
    """One experiment with one seed."""

    name: str
    seed: int
    figures: tuple[Figure, ...]
    seconds: float

    @property
    def agrees(self) -> bool:
        """Whether no figure contradicts the source."""
        return agree(self.figures)


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


class ResultFile:
    """A file to which results are appended as they are known."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise InvalidInput(f"the file of results must not be a folder. Got {str(path)!r} instead.")

    def results(self) -> list[Result]:
        """All results of this version of unweave, in the order of the file."""
        if not self.path.exists():
            return []
        own = versions()["unweave"]
        found = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
                if record["versions"]["unweave"] != own:
                    continue
                figures = tuple(Figure(**figure) for figure in record["figures"])
                found.append(Result(record["name"], int(record["seed"]), figures, float(record["seconds"])))
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def missing(self, names: Iterable[str], seeds: Iterable[int]) -> list[tuple[str, int]]:
        """Pairs of experiment and seed that the file does not hold, seed by seed."""
        done = {(result.name, result.seed) for result in self.results()}
        listed = list(names)
        return [(name, seed) for seed in seeds for name in listed if (name, seed) not in done]

    def append(self, result: Result) -> None:
        """Add a line."""
        record: dict[str, Any] = {
            "name": result.name,
            "seed": result.seed,
            "agrees": result.agrees,
            "seconds": round(result.seconds, 3),
            "versions": versions(),
            "figures": [asdict(figure) for figure in result.figures],
        }
        with self.path.open("a", encoding="utf-8") as file:
            if file.tell() and not self._ends_with_newline():
                file.write("\n")  # a line that a crash cut off
            file.write(json.dumps(record, default=_plain) + "\n")

    def _ends_with_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, 2)
            return file.read(1) == b"\n"


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item()
