"""One hidden layer of ReLU or leaky ReLU units from queries, with nothing told: the line method.

Planted networks have weight vectors of length 0.5 to 2, biases up to 1, normal outer weights; rows with "b5"
and so on have unit weights and biases up to that. Rows with the name of a data set are networks that
scikit-learn trained on it (as in deep_trained.py, seed of the training), asked through ``predict``.
"least clearance" is the smallest room, over units and seeds, that a unit was measured in: errors grow as
it shrinks.
"signs" lists how the signs of the units were found.
``--rows`` and ``--json`` as in deep_table.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import unweave
from deep_trained import standardised, train_sklearn
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell
from named_rows import measure_all, read_rows
from unweave.arrays import Array

Planted = tuple[unweave.Network, Callable[[Array], Array]]
COLUMNS = {
    **COMMON,
    "max_seconds": "most seconds",
    "lines": "lines",
    "least_clearance": "least clearance",
    "signs": "signs",
}


@dataclass(frozen=True)
class Setting:
    """A shape (inputs, units, outputs), and how it is filled."""

    layers: tuple[int, int, int]
    activation: str = "relu"
    bias: float | None = None
    """Largest |b| / |w|, or None for the generic law."""
    data: str | None = None
    """Trained on this instead of planted."""

    @property
    def name(self) -> str:
        """What --rows calls it."""
        parts = ["-".join(map(str, self.layers))]
        parts += [self.activation] if self.activation != "relu" else []
        parts += [] if self.bias is None else [f"b{self.bias:g}"]
        return ":".join(parts if self.data is None else [self.data, *parts])

    def plant(self, seed: int) -> Planted:
        """Truth and target."""
        if self.data is not None:
            x, y = standardised(self.data)
            return train_sklearn(x, y, self.layers[1:2], self.activation, seed)
        norms, bias = ((0.5, 2.0), 1.0) if self.bias is None else ((1.0, 1.0), self.bias)
        network = unweave.random_network(
            self.layers, self.activation, seed=seed, outer="normal", norms=norms, bias=bias
        )
        return network, network


SHAPES = (
    (10, 5, 1),
    (20, 10, 1),
    (10, 20, 1),
    (10, 50, 1),
    (50, 50, 1),
    (20, 100, 1),
    (10, 5, 3),
    (20, 20, 3),
    (100, 200, 1),
    (784, 32, 10),
    (784, 128, 10),
)
SETTINGS = (
    *(Setting(shape) for shape in SHAPES),
    *(Setting((20, 20, 1), bias=bias) for bias in (5.0, 20.0, 100.0)),
    Setting((20, 20, 1), "leaky_relu"),
    Setting((10, 20, 3), "leaky_relu"),
    Setting((10, 20, 1), data="diabetes"),
    Setting((10, 50, 1), data="diabetes"),
    Setting((30, 20, 1), data="cancer"),
    Setting((61, 32, 10), data="digits"),
)
QUICK = ("10-5-1", "10-20-3:leaky_relu")


def figures(result: unweave.Recovery) -> dict[str, Any]:
    """Lines, clearance and sign method of one run."""
    found = {stage.name: stage.figures for stage in result.stages}
    return {
        "lines": sum(stage.name == "line" for stage in result.stages),
        "clearance": found.get("refinement", {}).get("least_clearance"),
        "signs": found.get("signs", {}).get("method"),
    }


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one setting."""
    say(f"relu_queries: {setting.name}")
    runs = []
    for seed in seeds:
        truth, target = setting.plant(seed)
        runs.append(run_recovery(truth, seed, target=target, input_dim=truth.n_inputs, extra=figures))
    clearances = [run.extra["clearance"] for run in runs if run.extra.get("clearance")]
    return summarise(
        setting.name,
        runs,
        max_seconds=float(np.max([run.seconds for run in runs])),
        lines=max((run.extra.get("lines", 0) for run in runs), default=0),
        least_clearance=min(clearances, default=None),
        signs=sorted({run.extra["signs"] for run in runs if run.extra.get("signs")}),
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:10", f"{' and '.join(QUICK)} only, 2 seeds")
    quick = [setting for setting in SETTINGS if setting.name in QUICK]
    arguments, settings = read_rows(options, SETTINGS, quick, argv)
    rows = measure_all(settings, measure, seeds_of(arguments, 10, 2), arguments.json)
    tell(rows, COLUMNS)
    return rows


if __name__ == "__main__":
    main()
