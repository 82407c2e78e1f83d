"""Output weights and biases of units whose directions are known up to sign ([hermite] Alg. 2).

With w~_i = xi_i w_i, xi_i = +-1, the coefficient of order k >= 2 is T_k = sum_i zeta_k(i) w~_i^{(x) k} with

    zeta_k(i) = (-1)^k xi_i^k a_i phi(b_i) He_{k-2}(b_i).

The zeta_k solve a linear least-squares problem. Then for l = 1, from k = 2 and 3 alone (Lemma D.11),

    xi b = -zeta_3 / zeta_2,        a = sqrt(2 pi) zeta_2 exp(b^2 / 2),

and for l >= 2, where zeta_2 need not be available, from k = l .. l + 3 (Lemma 4.5, Lemma D.10): with
g_j = (-1)^j xi^j beta He_j(b), j = k0 .. k0 + 3, and q that one of k0 + 1, k0 + 2 with the larger |g_q|,

    xi b = -(g_{q+1} + q g_{q-1}) / g_q,        beta = (-1)^q g_q / He_q(xi b),        a = beta / phi(b).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.numerics.hermite.tensors import HermiteTensors, hermite_polynomial, normal_density

_CLIPPED_BIAS = 5.0  # |b| is clipped before exp(b^2 / 2): beyond, a unit is affine on Gaussian inputs to 1e-7


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
