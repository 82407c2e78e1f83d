"""A slope of its own for every kinked unit (PReLU).

With g_i(z) = z above zero and p_i z below, a network without skip has the slope

    S = sum_i theta_i w_i h_i^T,        theta_i = s_i (1 + p_i) / (1 - p_i),

in terms of its absolute form (`absolute_form`): d K linear equations for m numbers. With more units than
equations the slopes are open, whatever is asked: only S is part of the function.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.signs import sign_matrix

LARGEST_MISFIT = 1e-8
"""Misfit of the equations, relative to the slope, up to which slopes explain it."""
LARGEST_CONDITION = 1e8
"""Condition number of the equations beyond which they do not tell the slopes."""
ONE_SLOPE = 1e-6
"""Largest difference of slopes that are one."""


@dataclass(frozen=True, eq=False)
class UnitSlopes:
    """Slopes below zero, one per unit, and which way the units point."""

    slopes: Array
    """p (m,), between -1 and 1."""
    signs: Array
    """(m,), +-1"""

    @property
    def is_one(self) -> bool:
        """Whether all units share one slope."""
        return bool(np.ptp(self.slopes) <= ONE_SLOPE)


def solve_slopes(form: AbsoluteForm) -> UnitSlopes | None:
    """Return the slopes that explain the affine part of ``form``; None if none do, or others do as well."""
    if not form.width:
        return None
    matrix, right = sign_matrix(form), form.slope.reshape(-1)
    if len(matrix) <= form.width:  # as many unknowns would explain anything
        return None
    theta, _, rank, values = np.linalg.lstsq(matrix, right, rcond=None)
    left = float(np.linalg.norm(matrix @ theta - right))
    told = rank == form.width and values[0] <= LARGEST_CONDITION * values[-1]
    if not told or left > LARGEST_MISFIT * float(np.linalg.norm(right)) or not np.abs(theta).min() > 0:
        return None
    size = np.abs(theta)
    return UnitSlopes((size - 1) / (size + 1), np.sign(theta))
