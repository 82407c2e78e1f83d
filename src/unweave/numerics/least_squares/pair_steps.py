"""Damped steps of many small problems at once, each with two unknowns."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array


def pair_steps(
    normal: tuple[Array, Array, Array], gradient: tuple[Array, Array], damping: float | Array
) -> tuple[Array, Array]:
    """Solutions d of (H + lambda diag H) d = g by Cramer's rule, two arrays of the batch's shape.

    ``normal`` holds H_11, H_12 and H_22, ``gradient`` g_1 and g_2. Where H is singular, as for a problem
    whose unknowns hardly act, d is zero.
    """
    first, mixed, second = normal
    first, second = first * (1 + damping), second * (1 + damping)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        determinant = first * second - mixed**2
        one = (second * gradient[0] - mixed * gradient[1]) / determinant
        two = (first * gradient[1] - mixed * gradient[0]) / determinant
    usable = (determinant > 0) & np.isfinite(one) & np.isfinite(two)
    return np.where(usable, one, 0.0), np.where(usable, two, 0.0)
