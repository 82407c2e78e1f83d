"""The step of third differences, from how fast third derivatives change.

Mirrored third differences of step h along directions in which a neuron's weight is v are off by
(h v)^2 g^(5)/g^(3) through truncation and by sigma/(h v)^3 through rounding: the best h v is a constant,
three times the one at which both are alike, because truncation is predicted and taken away afterwards
(`unweave.methods.smooth.lattice_truncation`), rounding is not. What v is shows in the ratio of fifth to third
derivatives along a few short lines,

    sharpness = sqrt(|f^(5)| / |f^(3)|)  ~  v,

each line taking six rows: steps of one, two and three to both sides.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.methods.smooth.random_slice import RandomSlice

LINES = 12
ROWS_PER_LINE = 6
LINE_STEP = 0.05
"""Times sqrt(D): it moves a neuron of norm one by this."""

_BEST = 1.2e-2  # step times sharpness, for answers in float64
_TYPICAL_SHARPNESS = 8.0  # times 1/sqrt(D): tanh neurons of norm one
_LEAST, _MOST = 0.25, 6.0  # of the typical step
LONGEST_STEP = _MOST * _BEST / _TYPICAL_SHARPNESS
"""Times sqrt(D)."""


def lattice_step(slices: RandomSlice, d: int, rng: np.random.Generator) -> float:
    """The step for lattices in ``d`` directions of a slice."""
    root = float(np.sqrt(len(slices.frame)))
    length = LINE_STEP * root
    typical = _BEST / _TYPICAL_SHARPNESS * root
    margin = slices.margin(3 * length, d)
    if not slices.has_room(margin):
        return typical
    centres = slices.draw(LINES, d, margin)
    directions = rng.standard_normal((LINES, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    factors = length * np.array([1, 2, 3, -1, -2, -3])
    points = centres + factors[:, None, None] * directions
    answers = slices.ask(points.reshape(-1, d)).reshape(len(factors), LINES, -1)
    sharpness = _sharpness(answers[:3] - answers[3:], length)
    if not (np.isfinite(sharpness) and sharpness > 0):
        return typical
    return float(np.clip(_BEST / sharpness, _LEAST * typical, _MOST * typical))


def _sharpness(odd: Array, step: float) -> float:
    """From f(x + k h e) - f(x - k h e), k = 1, 2, 3: (3, lines, K)."""
    third = (odd[1] - 2 * odd[0]) / (2 * step**3)
    fifth = (odd[2] - 4 * odd[1] + 5 * odd[0]) / (2 * step**5)
    size = float(np.sqrt(np.mean(third**2)))
    return float(np.sqrt(np.sqrt(np.mean(fifth**2)) / size)) if size > 0 else np.inf
