"""Samples in place of exact coefficients (Algorithms 4 and 6 of the appendix on depth-2 ReLU networks).

The guarantees need polynomially many samples because estimated Hermite coefficients err like N^-1/2, and the
directions read off them do too. Five networks of 5 units on 10 standard Gaussian inputs; a quadratic is
fitted off the labels first, without which the law only shows at far larger N.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from unweave.arrays import Array
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.planted import distances
from unweave.experiments.rules import shown
from unweave.numerics.hermite.estimated_coefficients import Batches, estimate_coefficients
from unweave.published.relu.hermite_coefficients import hermite_coefficients
from unweave.published.relu.relu_units import ReLUUnits
from unweave.published.relu.spectral_recovery import recover_from_coefficients

INPUTS, UNITS, NETWORKS = 10, 5, 5
SAMPLES = (100_000, 1_600_000)
ORDERS = (3, 4)
SPREAD = 0.2
"""Deviation of a slope from -1/2 that few networks may cause: a factor 1.7 over these samples."""
_BATCH = 20_000


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Slopes between the two numbers of samples."""
    errors: dict[str, list[list[float]]] = {f"T_{order}": [[], []] for order in ORDERS}
    errors["directions"] = [[], []]
    for network in range(NETWORKS):
        units = planted_units(np.random.default_rng([seed, network]))
        exact = hermite_coefficients(units, max(ORDERS))
        for size, samples in enumerate(SAMPLES):
            progress(f"network {network + 1} of {NETWORKS}, {samples:,} samples")
            estimate = estimate_coefficients(batches_of(units, samples, [seed, network, 1]), max(ORDERS))
            difference = estimate.coefficients.plus(exact, -1.0)
            for order in ORDERS:
                errors[f"T_{order}"][size].append(difference.norm(order) / exact.norm(order))
            rng = np.random.default_rng([seed, network, 2])
            found = recover_from_coefficients(
                estimate.coefficients, rng, width=UNITS, directions="pencil", sign_tolerance=math.inf
            )
            errors["directions"][size] += distances(units.weights.T, found.form.weights.T).tolist()
    for name, (few, many) in errors.items():
        first, second = float(np.median(few)), float(np.median(many))
        slope = math.log(second / first) / math.log(SAMPLES[1] / SAMPLES[0])
        yield Figure(
            f"{name}: slope of the median error in N",
            -0.5,
            slope,
            abs(slope + 0.5) <= SPREAD,
            f"within {SPREAD} of -1/2",
            note=f"median relative error {first:.2g} at N = {SAMPLES[0]:,}, {second:.2g} at {SAMPLES[1]:,}",
        )
    worst = max(errors["directions"][1])
    yield shown(f"worst direction at N = {SAMPLES[1]:,}", "-", worst)


def planted_units(rng: np.random.Generator) -> ReLUUnits:
    """Random directions, biases in [-1, 1], output weights in +-[0.5, 1.5]."""
    outer = rng.choice([-1.0, 1.0], UNITS) * rng.uniform(0.5, 1.5, UNITS)
    weights = rng.standard_normal((INPUTS, UNITS))
    return ReLUUnits(weights / np.linalg.norm(weights, axis=0), rng.uniform(-1, 1, UNITS), outer)


def batches_of(units: ReLUUnits, samples: int, stream: list[int]) -> Batches:
    """Gaussian samples of the units' function, the same in every pass."""

    def batches() -> Iterator[tuple[Array, Array]]:
        rng = np.random.default_rng(stream)
        for start in range(0, samples, _BATCH):
            x = rng.standard_normal((min(_BATCH, samples - start), units.dimension))
            yield x, units(x)

    return batches
