"""The rate of gradient descent, from the recovery guarantees for one-hidden-layer networks.

Near the truth a step of length 1/M0 leaves at most 1 - m0/M0 of |W - W*|^2, m0 and M0 the extreme eigenvalues
of the Hessian there. Measured late in a descent from the tensor start, with the Hessian of the same samples.
The square (1 - m0/M0)^2 holds too, and is what one sees from a start that is off along the eigenvector of m0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from unweave.arrays import Array, IntArray
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.planted_bias_free import matching, plant
from unweave.experiments.rules import at_most, close
from unweave.networks.network import Network
from unweave.tensor_start import (
    DescentOptions,
    empirical_hessian,
    gradient_descent,
    local_convexity,
    tensor_start,
)

SETTINGS = (("squared_relu", 10, 5, 30_000), ("relu", 10, 5, 30_000))
"""Activation, inputs d, units k, samples of the start."""
ROWS_PER_PARAMETER = 20
LATE = (1e-6, 1e-10)
"""Errors between which the rate is measured."""
MOST_STEPS = 30_000
SMALL, STEPS = 1e-7, 50
"""Length of the slowest error, and steps over which it is watched."""
_SHARPER = "corrected: the printed bound is the square root of what holds"


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One network per activation."""
    for activation, inputs, width, samples in SETTINGS:
        cell = f"{activation}, d = {inputs}, k = {width}"
        progress(cell)
        truth = plant(np.random.default_rng([seed, 2]), inputs, width, activation)
        x = np.random.default_rng([seed, 3]).standard_normal((samples, inputs))
        y = truth(x)[:, 0]
        start = tensor_start(x, y, width, activation).network
        order, _ = matching(truth, start)
        rows = slice(0, ROWS_PER_PARAMETER * inputs * width)
        reached = errors_of_descent(start, x[rows], y[rows], truth.weights[0], order, MOST_STEPS)
        expected = local_convexity(truth, x[rows])
        yield at_most(
            f"{cell}: error at the end", LATE[1], float(reached[-1]), "so small that descent has arrived"
        )
        if reached.min() >= LATE[1]:
            continue
        early, late = (int(np.argmax(reached < level)) for level in LATE)
        left = float((reached[late] / reached[early]) ** (2 / (late - early)))
        yield at_most(f"{cell}: left of |W - W*|^2 by a step", 1 - expected.smallest / expected.largest, left)
        left = slowest(truth, x[rows], y[rows])
        # What a step removes, so that a rate near one cannot hide a wrong one.
        removed = 1 - expected.rate
        yield close(f"{cell}: removed by a step, slowest direction", removed, 1 - left, 1e-4, _SHARPER)


def slowest(truth: Network, x: Array, y: Array) -> float:
    """What a step leaves of |W - W*|^2 if W - W* is the eigenvector of m0."""
    weights, outer = truth.weights
    vector = scipy.linalg.eigh(empirical_hessian(truth, x), subset_by_index=[0, 0])[1]
    moved = weights + SMALL * vector.reshape(weights.T.shape).T  # parameters come unit by unit
    start = Network([moved, outer], truth.biases, truth.activations)
    errors = errors_of_descent(start, x, y, weights, np.arange(weights.shape[1]), STEPS)
    return float((errors[-1] / errors[0]) ** (2 / (len(errors) - 1)))


def errors_of_descent(start: Network, x: Array, y: Array, truth: Array, order: IntArray, steps: int) -> Array:
    """|W - W*|_F (steps + 1,) of every step, units of W taken in ``order``."""
    errors: list[float] = []
    options = DescentOptions(steps=steps, tolerance=1e-12)

    def on_step(_: int, weights: Array) -> None:
        errors.append(float(np.linalg.norm(weights[:, order] - truth)))

    gradient_descent(start, x, y, options, on_step=on_step)
    return np.array(errors)
