"""One hidden layer of ReLU units from coarse answers, or behind a sigmoid, tanh or softmax, nothing told.

Targets are planted as in coarse_answers.py (unit weights, biases in [-1/2, 1/2], outer weights of modulus 1/2
to 2; behind a link 1.5 / sqrt(m) times as much, so that most answers are not saturated); the seed is that of
the network. "covered" is the share of all parameters within 1.645 standard errors,
as ``result.standard_errors`` has them, of the truth (incoming weights of length one in both): 90 % if they
are right. Trained ones are in trained_models.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

import unweave
from coarse_answers import WITHIN, coarse, describe, judged, planted, verdict_figures
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell
from named_rows import measure_all, read_rows
from unweave.arrays import Array


@dataclass(frozen=True)
class Setting:
    """A size, how coarse the answers are (as in coarse_answers.py), and what they come out of."""

    size: tuple[int, int, int]
    mode: str
    link: str = "identity"

    @property
    def name(self) -> str:
        """What --rows calls it, such as 10-8-1:d2:sigmoid."""
        return f"{'-'.join(map(str, self.size))}:{self.mode}:{self.link}"

    @property
    def label(self) -> str:
        """For the table."""
        behind = "" if self.link == "identity" else f", {self.link}"
        return f"{'-'.join(map(str, self.size))}{behind}, {describe(self.mode)}"


SIZES = ((10, 8, 1), (20, 20, 1), (10, 20, 3))
BEHIND = (((10, 8, 1), "sigmoid"), ((20, 20, 1), "tanh"), ((10, 20, 3), "softmax"))
SETTINGS = (
    *(Setting(size, mode) for size in SIZES for mode in ("f32", "d6", "d4", "d2", "n1e-4", "n1e-2")),
    *(Setting(size, mode, link) for size, link in BEHIND for mode in ("f64", "d6", "d3")),
)
QUICK = Setting((6, 4, 1), "d3")


def covered(truth: unweave.Network, result: unweave.Recovery) -> float:
    """Share of the parameters within 1.645 standard errors of the truth; nan without these."""
    network, bars = result.network, result.standard_errors
    if network is None or bars is None or network.hidden != truth.hidden or network.skip is not None:
        return math.nan
    (first, second), (true_first, true_second) = _layers(network), _layers(truth)
    distances = np.linalg.norm(true_first[:, :, None] - first[:, None, :], axis=0)
    order = linear_sum_assignment(distances)[1]
    rows = [*order, len(order)]  # the bias comes last
    off = [first[:, order] - true_first, second[rows] - true_second]
    bar_first, bar_second = _layers(bars)
    ratios = [np.abs(off[0]) / bar_first[:, order], np.abs(off[1]) / bar_second[rows]]
    return float(np.mean(np.concatenate([ratio.reshape(-1) for ratio in ratios]) <= WITHIN))


def _layers(network: unweave.Network) -> tuple[Array, Array]:
    """Weights and biases of both layers, (inputs + 1, m) and (m + 1, K); of classes, against the last one."""
    first, second = (np.vstack([w, b]) for w, b in zip(network.weights, network.biases, strict=True))
    return first, second - second[:, -1:] if network.activations[-1] == "softmax" else second


def target_of(setting: Setting, seed: int) -> unweave.Network:
    """The truth."""
    network = planted(*setting.size, seed, "relu", setting.link)
    if setting.link == "identity":
        return network
    outer = network.weights[1] * 1.5 / np.sqrt(setting.size[1])
    return unweave.Network([network.weights[0], outer], network.biases, network.activations)


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one size, precision and link."""
    say(f"coarse_kinks: {setting.label}")
    runs = []
    for seed in seeds:
        truth = target_of(setting, seed)

        def figures(result: unweave.Recovery, truth: unweave.Network = truth) -> dict[str, Any]:
            return {**verdict_figures(result), "covered": covered(truth, result)}

        target = coarse(truth, setting.mode, seed)
        run = run_recovery(truth, seed, target=target, input_dim=truth.n_inputs, extra=figures)
        runs.append(judged(truth, run, "relu"))
    shares = [share for run in runs if not math.isnan(share := run.extra.get("covered", math.nan))]
    messages = {str(run.seed): run.extra.get("message") for run in runs if not run.recovered}
    return summarise(
        setting.label, runs, covered=float(np.mean(shares)) if shares else None, failures=messages
    )


COLUMNS = {
    **{
        key: COMMON[key]
        for key in (
            "setting",
            "seeds",
            "recovered",
            "wrong",
            "median_parameter_error",
            "worst_parameter_error",
        )
    },
    "covered": "covered",
    **{key: COMMON[key] for key in ("queries_per_parameter", "queries", "cpu_seconds")},
    "not_recovered": "seeds not recovered",
}


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:5", "6-4-1 with 3 decimals only, 1 seed")
    arguments, settings = read_rows(options, SETTINGS, [QUICK], argv)
    rows = measure_all(settings, measure, seeds_of(arguments, 5, 1), arguments.json)
    tell(rows, COLUMNS)
    return rows


if __name__ == "__main__":
    main()
