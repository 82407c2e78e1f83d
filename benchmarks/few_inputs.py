"""More units than derivatives can show in few inputs: random starts of least squares on values.

Generic networks (norms 1/2 to 2, normal outer weights, biases in [-1, 1]) of 1 to 5 inputs:

- **queries**: nothing told;
- **samples**: 20 Gaussian samples per parameter, the activation told, the width not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import unweave
from harness import COMMON, Row, parser, run_recovery, say, search_seed, seeds_of, summarise, tell

SETTINGS = (
    *((inputs, width, "tanh") for inputs, width in ((1, 2), (1, 3), (2, 5), (2, 8), (3, 8), (4, 12))),
    *((2, 5, name) for name in ("erf", "softplus", "gelu", "swish", "sine")),
)
QUICK = (2, 3, "tanh")
WAYS = ("queries", "samples")
PER_PARAMETER = 20
FEWEST_SAMPLES = 400


def measure(inputs: int, width: int, activation: str, way: str, seeds: range) -> Row:
    """The row of one size, activation and kind of access."""
    setting = f"{way}, {inputs}-{width}-1, {activation}"
    say(f"few_inputs: {setting}")
    runs = []
    for seed in seeds:
        truth = unweave.random_network(
            [inputs, width, 1], activation, seed=seed, outer="normal", norms=(0.5, 2), bias=1
        )
        if way == "queries":
            runs.append(run_recovery(truth, seed))
            continue
        rows = max(FEWEST_SAMPLES, PER_PARAMETER * truth.n_parameters)
        x = np.random.default_rng(search_seed(seed)).standard_normal((rows, inputs))
        samples = unweave.Samples(x, truth(x))
        runs.append(run_recovery(truth, seed, target=samples, activation=activation))
    exact = sum(run.parameter_error <= 1e-8 for run in runs)
    return summarise(setting, runs, within=exact)


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:10", "2-3-1 only, 1 seed").parse_args(argv)
    settings = (QUICK,) if arguments.quick else SETTINGS
    seeds = seeds_of(arguments, 10, 1)
    rows = [measure(*setting, way, seeds) for way in WAYS for setting in settings]
    shown = ("setting", "seeds", "recovered", "wrong", "worst_parameter_error", "queries", "seconds")
    columns = {**{key: COMMON[key] for key in shown}, "within": "within 1e-8", "cpu_seconds": "CPU s"}
    tell(rows, columns, arguments.json)
    return rows


if __name__ == "__main__":
    main()
