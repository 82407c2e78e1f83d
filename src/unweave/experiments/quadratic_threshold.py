"""The sample threshold d (d + 1) / 2 of quadratic networks, from the study of their stationary points.

y = |W x|^2 is linear in W^T W, which d (d + 1) / 2 generic samples determine. With one sample fewer another
network fits all labels, and its risk is at least C_5 s_min^4, C_5 = 2 for Gaussian inputs. The source lets
the other network have any width; it needs at least d units.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_least, equal, vanishes
from unweave.quadratic import counterexample, recover_quadratic, span_test

INPUTS = (10, 20)
_WIDTH = "corrected: the other network needs at least d units"


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Twice as many units as inputs."""
    for inputs in INPUTS:
        needed = inputs * (inputs + 1) // 2
        cell = f"d = {inputs}"
        progress(cell)
        rng = np.random.default_rng([seed, inputs])
        weights = rng.standard_normal((inputs, 2 * inputs))
        matrix = weights @ weights.T
        x = rng.standard_normal((needed, inputs))
        y = np.sum((x @ weights) ** 2, axis=1)
        rank = span_test(x[:-1]).rank
        yield equal(f"{cell}, N = {needed - 1}: rank of the samples' squares", needed - 1, rank)
        found = recover_quadratic(x, y, hidden=2 * inputs)
        error = np.inf
        if found.network is not None:
            inner = found.network.weights[0]
            error = float(np.linalg.norm(inner @ inner.T - matrix) / np.linalg.norm(matrix))
        yield vanishes(f"{cell}, N = {needed}: relative error of W^T W", error, 1e-8)
        other = counterexample(x[:-1], matrix)
        yield vanishes(
            f"{cell}, N = {needed - 1}: training risk of another", other.empirical_risk, 1e-20, _WIDTH
        )
        yield at_least(
            f"{cell}, N = {needed - 1}: its risk on all inputs", other.bound, other.population_risk
        )
