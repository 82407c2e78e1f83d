"""Figures 1.5 and 4.5 to 4.7 of the dissertation: whole deep networks, from queries alone.

Published for 50-25-10 units on 50 inputs: relative uniform errors of 1e-2 to 1e-3 after entangled weights and
20 minutes of descent. For 50-35-25-10 units an oracle had to tell the inner layers apart, and descent on all
parameters stalls at 0.1. Here `unweave.recover` is told the widths and nothing else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.planted import deep_network
from unweave.experiments.rules import at_most, shown
from unweave.networks.comparison import compare
from unweave.recovery.recover import recover
from unweave.recovery.result import Status

INPUTS, SHIFTS, TEST_POINTS = 50, 0.05, 10_000
SETTINGS = (
    ((50, 25, 10), 1e-3, "1e-3 to 1e-2", "1,200 on a GPU"),
    ((50, 35, 25, 10), 1e-1, "1e-1 without an oracle", "7,200 on a GPU"),
)
"""Widths, best published relative uniform error without an oracle, the same in words, and its seconds."""


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One network per setting, tanh outputs."""
    for widths, best, words, seconds in SETTINGS:
        cell = "-".join(map(str, widths))
        progress(cell)
        truth = deep_network(np.random.default_rng([seed, len(widths)]), INPUTS, widths, "tanh", SHIFTS)
        began = time.perf_counter()
        found = recover(truth, hidden=list(widths[:-1]), seed=seed + 1)  # only asked, never read
        taken = round(time.perf_counter() - began, 2)
        uniform = parameters = math.inf
        if found.network is not None and found.status is Status.RECOVERED:
            x = np.random.default_rng([seed, len(widths), 1]).standard_normal((TEST_POINTS, INPUTS))
            answers = truth(x)
            moved = np.linalg.norm(answers - found.network(x), axis=1).max()
            uniform = float(moved / np.linalg.norm(answers, axis=1).max())
            parameters = compare(truth, found.network).parameter_error
        rule = "recovered, and not above the best published error"
        yield at_most(f"{cell}: relative uniform error", best, uniform, rule, published=words)
        yield shown(f"{cell}: parameter error", "-", parameters)
        yield shown(f"{cell}: seconds", seconds, taken)
