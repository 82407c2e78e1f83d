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

from unweave.arrays import Array
from unweave.networks.activations import Activation
from unweave.networks.mirrored_units import may_be_mirrored


class Imitation(NamedTuple):
    """How units of one kind imitate those of another."""

    sharpness: float
    """c, the ratio of incoming weights."""
    misfit: float
    """Root mean square of what is left, over that of g without its affine part."""


@cache
def imitation(
    imitated: Activation, kind: Activation, *, reach: float = 3.0, spread: float = 1.4
) -> Imitation:
    """Return the best imitation of units of ``imitated`` by units of ``kind``.

    Arguments z of the units are normal with standard deviation ``spread``, cut off at ``reach``.
    """
    z = np.linspace(-reach, reach, 121)
    weights = np.exp(-(z**2) / (4 * spread**2))
    affine = [weights, weights * z][: 1 + (may_be_mirrored(imitated) or may_be_mirrored(kind))]
    target = imitated(z) * weights
    size = _left(target, affine)
    ratios = 2.0 ** np.arange(-3, 3.1, 0.25)
    misfits = [_left(target, [*affine, kind(c * z) * weights]) / size for c in ratios]
    best = int(np.argmin(misfits))
    return Imitation(float(ratios[best]), misfits[best])


def _left(target: Array, columns: list[Array]) -> float:
    """Return the size of what ``columns`` leave of ``target``."""
    design = np.column_stack(columns)
    solution = np.linalg.lstsq(design, target, rcond=None)[0]
    return float(np.linalg.norm(target - design @ solution))
