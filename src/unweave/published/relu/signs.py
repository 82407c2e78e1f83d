"""Signs of units from the coefficient of order one, and the form of the network without signs.

Known: w~_i = xi_i w_i, xi_i b_i and a_i. The published rule ([hermite] Alg. 3) solves

    sum_i a_i z_i w~_i = T_1,        z_i = xi_i Phi(b_i),   Phi > 0,

by least squares and reads off xi_i = sign(z_i); a unit's margin is Phi(-|b_i|) in the worst case. Taking
the even part off first makes the margin one: relu(t) = (|t| + t) / 2, and |w~.x + b~| has the coefficient
2 Phi(b~) - 1 along w~,

    2 T_1 - sum_i a_i (2 Phi(b~_i) - 1) w~_i = sum_i a_i xi_i w~_i.

Both determine the signs if the w~_i are linearly independent. For more units the right-hand side is handed
on as the slope of an `AbsoluteForm`, whose signs `unweave.networks.signs` searches for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from unweave.arrays import Array
from unweave.networks.absolute_form import AbsoluteForm
from unweave.numerics.hermite.tensors import HermiteTensors
from unweave.published.relu.hermite_coefficients import relu_coefficient
from unweave.published.relu.unit_scalars import UnitScalars

_DEPENDENT_DIRECTIONS = 1e-10  # smallest over largest singular value: below, the directions are dependent


@dataclass(frozen=True, eq=False)
class FixedSigns:
    """xi and the numbers it was read off."""

    signs: Array
    """xi, (m,) +-1."""
    values: Array
    """z, (m,): xi Phi(b) or xi itself, up to the errors of what was put in."""
    determined: bool
    """Whether the directions are linearly independent: else other signs may give the same function."""

    @property
    def margin(self) -> float:
        """Least |z|: signs are as sure as this is large against the error of T_1."""
        return float(np.abs(self.values).min(initial=1.0))


def fix_signs(first: Array, weights: Array, scalars: UnitScalars) -> FixedSigns:
    """[hermite] Alg. 3 as published, from T_1 (d,) and directions (d, m)."""
    return _solved(weights * scalars.outer, first)


def fix_signs_by_affine_rest(first: Array, weights: Array, scalars: UnitScalars) -> FixedSigns:
    """[hermite] Alg. 3 after subtracting the even part of every unit from T_1."""
    return _solved(weights * scalars.outer, 2 * affine_slope(first, weights, scalars))


def affine_slope(first: Array, weights: Array, scalars: UnitScalars) -> Array:
    """u (d,) in f(x) = sum_i (a_i / 2) |w~_i . x + b~_i| + u . x + c."""
    even = scalars.outer * (ndtr(scalars.biases) - 0.5)
    return np.asarray(first - weights @ even)


def absolute_form(coefficients: HermiteTensors, weights: Array, scalars: UnitScalars) -> AbsoluteForm:
    """The network without signs, its affine part from T_0 and T_1."""
    mean_of_absolute = 2 * relu_coefficient(0, scalars.biases) - scalars.biases
    offset = coefficients.at(0) - 0.5 * scalars.outer @ mean_of_absolute
    slope = affine_slope(coefficients.at(1), weights, scalars)
    return AbsoluteForm(weights, scalars.biases, 0.5 * scalars.outer[:, None], slope[:, None], offset)


def _solved(matrix: Array, right: Array) -> FixedSigns:
    values = np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)
    singular_values = np.linalg.svd(matrix / np.linalg.norm(matrix, axis=0), compute_uv=False)
    independent = matrix.shape[1] <= matrix.shape[0] and (
        not len(singular_values) or singular_values[-1] > _DEPENDENT_DIRECTIONS * singular_values[0]
    )
    return FixedSigns(np.where(values >= 0, 1.0, -1.0), values, bool(independent))
