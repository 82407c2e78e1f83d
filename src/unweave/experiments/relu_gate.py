"""Theorem 3.3.1 of the mathematics of deep learning: a ReLU gate from a stream, at a linear rate.

E|w_t - w*|^2 <= (1 - lambda^2/c1)^t |w_1 - w*|^2 with step lambda/c1; for Gaussian inputs lambda = 1/2 and
c1 = n (n + 2)/2. Averaged over 200 streams. The stated O(log 1/eps) samples hide c1/lambda^2 >= n^2; a step
from a smaller constant needs ten times fewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_most, close, vanishes
from unweave.gates import gate_constants, gate_update, relu_gate_ols

INPUTS, STREAMS, MOMENT_ROWS = 20, 200, 200_000
RATIO = 1e-4
"""Of the mean square error, at which a stream ends."""
STANDARD_ERRORS = 4
_HIDDEN = "corrected: the stated O(log(1/eps)) hides the factor c1/lambda^2 >= n^2"


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Gaussian inputs, the published step and the sharper one, and least squares on active rows."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(INPUTS)
    truth /= np.linalg.norm(truth)
    sample = rng.standard_normal((MOMENT_ROWS, INPUTS))
    constants = gate_constants(sample, np.maximum(sample @ truth, 0))
    yield close("lambda, estimated", 0.5, constants.smallest, 0.05)
    yield close("c1, estimated", INPUTS * (INPUTS + 2) / 2, constants.fourth, 0.02)
    published = 1 - 1 / (2 * INPUTS * (INPUTS + 2))
    steps = {
        "published step": (0.5 / (INPUTS * (INPUTS + 2) / 2), published),
        "sharper step": (constants.sharper_step, constants.sharper_factor),
    }
    for name, (step, factor) in steps.items():
        promised = math.ceil(math.log(RATIO) / math.log(factor))
        progress(f"{name}, {promised:,} samples")
        hit, worst = stream(rng, truth, step, factor, promised)
        yield at_most(
            f"{name}: mean square error over its bound, at worst",
            1.0,
            worst,
            f"not above 1 after {STANDARD_ERRORS} standard errors of the mean are taken off",
        )
        yield at_most(f"{name}: samples to 1e-4", promised, hit, note=_HIDDEN)
    x = rng.standard_normal((8 * INPUTS, INPUTS))
    x = x[x @ truth > 0][:INPUTS]
    found = relu_gate_ols(x, np.maximum(x @ truth, 0), truth=truth)
    error = float(np.linalg.norm(found.weights - truth))
    yield vanishes(f"least squares on {INPUTS} active rows: error", error, 1e-9)


def stream(
    rng: np.random.Generator, truth: np.ndarray, step: float, factor: float, promised: int
) -> tuple[float, float]:
    """Samples until the mean square error is RATIO of the first, and its largest ratio to the bound."""
    weights = np.zeros((STREAMS, INPUTS))
    hit, worst = math.inf, 0.0
    for now in range(1, promised + 1):
        x = rng.standard_normal((STREAMS, INPUTS))
        weights = gate_update(weights, x, np.maximum(x @ truth, 0), step)
        squares = np.sum((weights - truth) ** 2, axis=1)
        mean, spread = float(squares.mean()), float(squares.std(ddof=1)) / math.sqrt(STREAMS)
        worst = max(worst, (mean - STANDARD_ERRORS * spread) / factor**now)
        if mean <= RATIO and hit == math.inf:
            hit = now
    return hit, worst
