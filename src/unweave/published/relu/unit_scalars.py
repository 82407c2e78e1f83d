"""Output weights, biases and signs of units whose directions are known up to sign ([hermite] Algs. 2, 3).

With w~_i = xi_i w_i, xi_i = +-1, the coefficient of order k >= 2 is T_k = sum_i zeta_k(i) w~_i^{(x) k} with

    zeta_k(i) = (-1)^k xi_i^k a_i phi(b_i) He_{k-2}(b_i).

The zeta_k solve a linear least-squares problem. Then for l = 1, from k = 2 and 3 alone (Lemma D.11),

    xi b = -zeta_3 / zeta_2,        a = sqrt(2 pi) zeta_2 exp(b^2 / 2),

and for l >= 2, where zeta_2 need not be available, from k = l .. l + 3 (Lemma 4.5, Lemma D.10): with
g_j = (-1)^j xi^j beta He_j(b), j = k0 .. k0 + 3, and q that one of k0 + 1, k0 + 2 with the larger |g_q|,

    xi b = -(g_{q+1} + q g_{q-1}) / g_q,        beta = (-1)^q g_q / He_q(xi b),        a = beta / phi(b).

Signs come from the coefficient of order one. With w~_i, xi_i b_i and a_i known, the published rule (Alg. 3)
solves

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
from unweave.errors import InvalidInput
from unweave.networks.absolute_form import AbsoluteForm
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.numerics.hermite.tensors import HermiteTensors, hermite_polynomial, normal_density
from unweave.published.relu.relu_units import relu_coefficient

_CLIPPED_BIAS = 5.0  # |b| is clipped before exp(b^2 / 2): beyond, a unit is affine on Gaussian inputs to 1e-7
_DEPENDENT_DIRECTIONS = 1e-10  # smallest over largest singular value: below, the directions are dependent


@dataclass(frozen=True, eq=False)
class UnitScalars:
    """Output weights and biases of given directions w~."""

    outer: Array
    """a, (m,): the same for either sign of the direction."""
    biases: Array
    """xi b, (m,): with the sign of the direction."""
    strengths: Array
    """|zeta| (m,) that a was read off: compare it with the noise of its order."""


def term_weights(coefficients: HermiteTensors, order: int, weights: Array) -> Array:
    """zeta_k (m,): least-squares coefficients of T_k on the powers of the columns of ``weights`` (d, m)."""
    packing = tensor_packing(coefficients.dimension, order)
    matrix = packing.powers(weights) * packing.scale[:, None]
    return np.asarray(np.linalg.lstsq(matrix, coefficients.isometric(order), rcond=None)[0])


def term_weights_from_contractions(contractions: Array, order: int, weights: Array) -> Array:
    """zeta_k (m,) from T_k[w_i, .., w_i] (m,) alone, by the normal equations with Gram matrix (W^T W)^{.k}.

    Needs O(m^2) memory whatever d and k, at the price of a squared condition number.
    """
    gram = (weights.T @ weights) ** order
    return np.asarray(np.linalg.lstsq(gram, contractions, rcond=None)[0])


def hermite_sequence_solution(sequence: Array, first: int) -> tuple[Array, Array]:
    """(xi z, beta), (m,) each, from g_j = (-1)^j xi^j beta He_j(z) ([hermite] Lemma 4.5).

    ``sequence`` is (4, m), j = first .. first + 3. Exact for any first >= 0 and beta != 0: two consecutive
    Hermite polynomials have no common root, so one of g_{first+1}, g_{first+2} is safe to divide by.
    """
    if first < 0 or sequence.shape[0] != 4:
        raise InvalidInput(
            f"sequence must hold four orders from a first >= 0. Got {sequence.shape[0]} from {first} "
            f"instead. Give the rows first, ..., first + 3."
        )
    upper = np.abs(sequence[2]) > np.abs(sequence[1])
    columns = np.arange(sequence.shape[1])
    row = np.where(upper, 2, 1)
    q = first + row
    pivot = sequence[row, columns]
    pivot = np.where(pivot == 0, np.finfo(np.float64).tiny, pivot)
    z = -(sequence[row + 1, columns] + q * sequence[row - 1, columns]) / pivot
    lower_value, upper_value = (hermite_polynomial(first + j, z) for j in (1, 2))
    value = np.where(upper, upper_value, lower_value)
    beta = (-1.0) ** q * pivot / np.where(value == 0, np.finfo(np.float64).tiny, value)
    return z, beta


def recover_scalars(coefficients: HermiteTensors, weights: Array, order: int = 1) -> UnitScalars:
    """a and xi b of the units with directions ``weights`` (d, m), from T_2, T_3 (order 1) or T_l ..
    T_{l+3}."""
    if order == 1:
        second, third = (term_weights(coefficients, k, weights) for k in (2, 3))
        return scalars_from_terms(second, third)
    sequence = np.stack([term_weights(coefficients, k, weights) for k in range(order, order + 4)])
    biases, beta = hermite_sequence_solution(sequence, order - 2)
    biases = np.clip(biases, -_CLIPPED_BIAS, _CLIPPED_BIAS)
    return UnitScalars(beta / normal_density(biases), biases, np.abs(sequence[1:3]).max(axis=0))


def scalars_from_terms(second: Array, third: Array) -> UnitScalars:
    """a and xi b from zeta_2 and zeta_3 (m,) ([hermite] Lemma D.11)."""
    safe = np.where(second == 0, np.finfo(np.float64).tiny, second)
    biases = np.clip(-third / safe, -_CLIPPED_BIAS, _CLIPPED_BIAS)
    return UnitScalars(second / normal_density(biases), biases, np.abs(second))


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
