"""The queries of the recovery as a log that a detector can be tried on.

One record per row, in the order in which the rows were asked:

    time      seconds since the first request; empty if the answers come from an earlier run's checkpoint
    request   number of the request that carried the row, from 1
    inputs    the row, D numbers
    answers   what the target answered, K numbers
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.files.atomic import write_file

ENDINGS = (".jsonl", ".csv")
CLOSE = 0.01
"""Distance of a row to the one before it, relative to its size, up to which it counts as a small step."""
FAR = 3.0
"""Size of a row, over the median of all, from which it counts as far out."""


@dataclass(frozen=True)
class TraceFigures:
    """What a detector could see in the trace."""

    rows: int
    requests: int
    close_share: float
    """Share of rows within `CLOSE` of the row before"""
    far_share: float
    """Share of rows `FAR` times as large as the median row, or larger"""


@dataclass(frozen=True, eq=False)
class Trace:
    """Every row that the recovery asked of the target, readable piece by piece."""

    pieces: Callable[[], Iterator[tuple[Array, Array]]]
    """Rows (n, D) and answers (n, K) of every request"""
    times: Sequence[float] = ()
    """When each request was answered, in seconds since 1970; empty if that is not known"""

    def figures(self) -> TraceFigures:
        """Measure small steps and far rows, in one pass and O(rows) memory."""
        sizes, close, requests = [], 0, 0
        before: Array | None = None
        for rows, _ in self.pieces():
            requests += 1
            size = np.linalg.norm(rows, axis=1)
            linked = rows if before is None else np.vstack([before, rows])
            step = np.linalg.norm(np.diff(linked, axis=0), axis=1)
            close += int((step <= CLOSE * size[len(rows) - len(step) :]).sum())
            sizes.append(size)
            before = rows[-1:]
        if not sizes:
            return TraceFigures(0, 0, 0.0, 0.0)
        every = np.concatenate(sizes)
        far = every >= FAR * max(float(np.median(every)), np.finfo(np.float64).tiny)
        return TraceFigures(len(every), requests, close / len(every), float(far.mean()))

    def save(self, path: str | Path) -> None:
        """Write the trace as JSON lines or as a table, by the ending of ``path``."""
        path = Path(path)
        ending = path.suffix.lower()
        if ending not in ENDINGS:
            raise InvalidInput(f"path must end in {' or '.join(ENDINGS)}. Got {str(path)!r} instead.")
        lines = self._table() if ending == ".csv" else self._json_lines()
        write_file(path, "".join(f"{line}\n" for line in lines).encode("utf-8"))

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one record per row."""
        first = self.times[0] if self.times else 0.0
        for number, (rows, answers) in enumerate(self.pieces()):
            time = round(self.times[number] - first, 6) if number < len(self.times) else None
            for row, answer in zip(rows.tolist(), answers.tolist(), strict=True):
                yield {"time": time, "request": number + 1, "inputs": row, "answers": answer}

    def _json_lines(self) -> Iterator[str]:
        return (json.dumps(record, allow_nan=False) for record in self.records())

    def _table(self) -> Iterator[str]:
        for place, record in enumerate(self.records()):
            inputs, answers = record["inputs"], record["answers"]
            if not place:
                names = [f"x{i + 1}" for i in range(len(inputs))] + [f"y{i + 1}" for i in range(len(answers))]
                yield ",".join(["time", "request", *names])
            time = "" if record["time"] is None else repr(record["time"])
            yield ",".join([time, str(record["request"]), *map(repr, inputs), *map(repr, answers)])
