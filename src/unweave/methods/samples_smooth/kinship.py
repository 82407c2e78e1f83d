"""Kinds of units that imitate each other: what one has found serves the other as a start.

    g(z) = a h(c z) + p z + q + small,      p = 0 unless one of the kinds comes with an affine part.

tanh and erf differ by 2 %, softplus, gelu and swish by 1 to 3 %, a sine and tanh by 7 % where inputs of units
mostly lie. Units of kind h at c times the weights of units of kind g are then nearly the same function, and
a few steps tell which of the two explains the samples.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from unweave.networks.activations import Activation
from unweave.networks.mirrored_units import may_be_mirrored

_REACH = 3.0  # largest |z| that the kinds are compared at
_SPREAD = 1.4  # standard deviation of z there
_POINTS = 121
_SHARPNESS = 2.0 ** np.arange(-3, 3.1, 0.25)  # values of c that are tried


class Imitation(NamedTuple):
    """How units of one kind imitate those of another."""

    sharpness: float
    """c, the ratio of incoming weights."""
    misfit: float
    """Root mean square of what is left, over that of g without its affine part."""


@cache
def imitation(imitated: Activation, kind: Activation) -> Imitation:
    """Return the best imitation of units of ``imitated`` by units of ``kind``."""
    z = np.linspace(-_REACH, _REACH, _POINTS)
    weights = np.exp(-(z**2) / (4 * _SPREAD**2))
    affine = [weights, weights * z][: 1 + (may_be_mirrored(imitated) or may_be_mirrored(kind))]
    target = imitated(z) * weights
    size = _left(target, affine)
    misfits = [_left(target, [*affine, kind(c * z) * weights]) / size for c in _SHARPNESS]
    best = int(np.argmin(misfits))
    return Imitation(float(_SHARPNESS[best]), misfits[best])


def _left(target: np.ndarray, columns: list[np.ndarray]) -> float:
    """Return the size of what ``columns`` leave of ``target``."""
    design = np.column_stack(columns)
    solution = np.linalg.lstsq(design, target, rcond=None)[0]
    return float(np.linalg.norm(target - design @ solution))
