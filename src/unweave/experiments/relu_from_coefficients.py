"""Algorithms 1 and 6 of the appendix on depth-2 ReLU networks: exact coefficients give the network back.

T_0 .. T_4 for at most as many units as inputs (order l = 1), T_0 .. T_6 for twice as many (l = 2), the width
not told; units with biases 0 and 1 are among them, which T_3 and T_4 do not see. Directions by Jennrich as
published, and by one pencil (l = 1) or the power method (l = 2).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import vanishes
from unweave.networks.comparison import compare
from unweave.published.relu.hermite_coefficients import hermite_coefficients
from unweave.published.relu.relu_units import ReLUUnits
from unweave.published.relu.spectral_recovery import DirectionMethod, recover_from_coefficients

SETTINGS: tuple[tuple[int, int, DirectionMethod], ...] = (
    (10, 5, "published"),
    (10, 5, "pencil"),
    (10, 10, "published"),
    (10, 10, "pencil"),
    (20, 20, "pencil"),
    (8, 16, "published"),
    (8, 16, "power"),
)
"""Inputs, units, way to the directions."""
WAYS = {"published": "Jennrich", "pencil": "pencil", "power": "power method"}
PER_CONDITION = 1e-9
"""Error allowed per condition number of the weights, which multiplies rounding."""


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One network per setting; parameters include signs and output weights."""
    for inputs, width, directions in SETTINGS:
        cell = f"d = {inputs}, m = {width}, {WAYS[directions]}"
        progress(cell)
        units = planted_units(np.random.default_rng([seed, inputs, width]), inputs, width)
        order = 1 if width <= inputs else 2
        coefficients = hermite_coefficients(units, 2 * order + 2)
        rng = np.random.default_rng([seed, inputs, width, 1])
        found = recover_from_coefficients(coefficients, rng, order=order, directions=directions)
        error = compare(units.to_network(), found.to_network()).parameter_error
        tolerance = PER_CONDITION * float(np.linalg.cond(units.weights))
        yield vanishes(f"{cell}: parameter error", error, tolerance)


def planted_units(rng: np.random.Generator, inputs: int, width: int) -> ReLUUnits:
    """Random directions, output weights in +-[0.5, 1.5], biases 0, 1 and in [-1, 1]."""
    outer = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    weights = rng.standard_normal((inputs, width))
    biases = np.concatenate([[0.0, 1.0], rng.uniform(-1, 1, width - 2)])
    return ReLUUnits(weights / np.linalg.norm(weights, axis=0), biases, outer)
