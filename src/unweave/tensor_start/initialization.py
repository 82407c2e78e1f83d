"""Tensor initialization: a first guess of all weights from Hermite moments of Gaussian samples.

For g homogeneous of degree q and y = sum_i v_i g(w_i . x), v_i = +-1, x ~ N(0, I_d), k <= d,

    M_j = E[y He_j(x)] = sum_i c_j v_i |w_i|^q u_i^{(x) j},      u_i = w_i/|w_i|,   c_j = E[g(Z) He_j(Z)].

1. The top k eigenvectors (by size) of M_2 span the u_i; everything below happens in z = P^T x.
2. M_2 and the matrices M_j[...], j the first of 3, 4 with c_j != 0, are all U diag(.) U^T: joint
   diagonalization by congruence gives the u_i up to sign.
3. M_2 = sum_i zeta_i u_i u_i^T gives v_i = sign(zeta_i/c_2) and |w_i| = |zeta_i/c_2|^(1/q).
4. M_1 = sum_i c_1 v_i |w_i|^q u_i gives the signs of the u_i.

Departures from the source, which uses M_3 for everything: c_3 = 0 for ReLU, whose order is 4; and M_3
does not change under (v_i, u_i) -> (-v_i, -u_i), so output signs are read from M_2 and directions from M_1.
Instead of one random contraction all of them are diagonalized at once, which uses the samples better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation, get_activation
from unweave.networks.network import Network
from unweave.subspace.congruence import diagonalise_by_congruence
from unweave.subspace.symmetric import symmetric_packing
from unweave.tensor_start.bias_free import bias_free_network
from unweave.tensor_start.hermite_tensors import fourth_order_matrices, low_moments, third_order_slices

_TENSOR_ORDERS = (3, 4)  # of the tensor that separates the units, in the order they are tried
_COEFFICIENT_ROUNDING = 1e-10  # over the largest coefficient: they are integrals to some 14 digits
_LEAST_RELATIVE_POWER = 1e-3  # |w|^q over the largest: smaller ones are noise; a start at 0 stays there


@dataclass(frozen=True, eq=False)
class TensorStart:
    """A first guess, with figures that judge it."""

    network: Network
    """sum_i v_i g(w_i . x), v_i = +-1."""
    order: int
    """Order of the tensor that separated the units."""
    gap: float
    """|lambda_k / lambda_{k+1}| of M_2: how clearly the samples show k directions; inf if k = d."""
    off_diagonal: float
    """Squared share of the matrices that no common directions explain: near one, the guess is worth nothing.
    """
    first_order_misfit: float
    """Relative part of M_1 that is not explained by the units at their lengths: sampling noise, or another
    class."""


def hermite_constants(activation: str | Activation, orders: int = 5) -> Array:
    """c_j = E[g(Z) He_j(Z)], j = 0 .. orders - 1; He_j is monic.

    Example:
        >>> [round(float(c), 5) for c in hermite_constants("squared_relu")]
        [0.5, 0.79788, 1.0, 0.79788, 0.0]
    """
    function = get_activation(activation) if isinstance(activation, str) else activation
    norms = np.sqrt([math.factorial(j) for j in range(orders)])
    constants = function.hermite_coefficients(orders) * norms
    return np.where(np.abs(constants) > _COEFFICIENT_ROUNDING * np.abs(constants).max(), constants, 0.0)


def tensor_order(activation: str | Activation) -> int:
    """Order of the tensor that a start needs for this activation; refused where there is none.

    Needed: homogeneity, c_1 and c_2 (signs and lengths), and c_3 or c_4 (directions).
    """
    function = get_activation(activation) if isinstance(activation, str) else activation
    constants = hermite_constants(function)
    usable = [order for order in _TENSOR_ORDERS if constants[order] != 0]
    if function.homogeneity is None or constants[1] == 0 or constants[2] == 0 or not usable:
        raise InvalidInput(
            f"activation must be homogeneous with Hermite coefficients c_1, c_2 and c_3 or c_4. Got "
            f"{function.name!r} with degree {function.homogeneity} and c_1..c_4 = "
            f"{', '.join(f'{c:.3g}' for c in constants[1:5])} instead. relu, leaky_relu and squared_relu "
            f"have them; for other activations start elsewhere and use the descent alone."
        )
    return usable[0]


def tensor_start(x: Array, y: Array, width: int, activation: str) -> TensorStart:
    """First guess of a bias-free network of ``width`` units from samples x (n, d) ~ N(0, I), y (n,).

    Nothing is random here. The error falls like n^(-1/2); the constant grows with the condition of W. Inputs
    that are not standard Gaussian (whiten those that are Gaussian) give a guess that means nothing.

    Cost: n (d + d^2/2)^2 flops for the polynomial, n k^4/4 for the tensor of order 4.
    """
    function = get_activation(activation)
    order, constants = tensor_order(function), hermite_constants(function)
    x, y = _checked(x, y, width)
    degree = function.homogeneity
    assert degree is not None  # checked by `tensor_order`
    low = low_moments(x, y)
    values, vectors = np.linalg.eigh(low.second)
    by_size = np.argsort(-np.abs(values))
    frame = vectors[:, by_size[:width]]
    sizes = np.abs(values[by_size])
    beyond = float(sizes[width]) if width < x.shape[1] else 0.0
    gap = float(sizes[width - 1]) / beyond if beyond > 0 else np.inf
    z = x @ frame
    first, inside, remainder = frame.T @ low.first, frame.T @ low.second @ frame, low.remainder
    if low.degree < 2:  # too many variables for the polynomial; in the few that matter it is cheap
        few = low_moments(z, y)
        first, inside, remainder = few.first, few.second, few.remainder
    high = fourth_order_matrices(z, remainder) if order == 4 else third_order_slices(z, remainder)
    directions, off_diagonal = _common_directions(inside, high)
    signed_sizes = _coefficients(inside, directions) / constants[2]  # v_i |w_i|^q
    outer = np.where(signed_sizes >= 0, 1.0, -1.0)
    powers = np.maximum(np.abs(signed_sizes), _LEAST_RELATIVE_POWER * np.abs(signed_sizes).max())
    signed, *_ = np.linalg.lstsq(directions * (constants[1] * outer * powers), first, rcond=None)
    directions = directions * np.where(signed >= 0, 1.0, -1.0)
    weights = frame @ directions * powers ** (1 / degree)
    explained = directions @ (constants[1] * outer * powers)
    return TensorStart(
        network=bias_free_network(weights, outer, function.name),
        order=order,
        gap=gap,
        off_diagonal=off_diagonal,
        first_order_misfit=float(np.linalg.norm(first - explained) / np.linalg.norm(first)),
    )


def _common_directions(second: Array, high: Array) -> tuple[Array, float]:
    """(k, k) unit columns that M_2 and the principal matrices of the higher order share."""
    k = len(second)
    if k == 1:
        return np.ones((1, 1)), 0.0
    packing = symmetric_packing(k)
    # Without noise only k combinations of the slices are not zero; the others would only add noise.
    _, values, combinations = np.linalg.svd(packing.pack(high), full_matrices=False)
    principal = packing.unpack(values[:k, None] * combinations[:k])
    # M_2 is the most accurate of all and weighs as much as the rest together.
    weighted = np.concatenate([second[None] / np.linalg.norm(second), principal / np.linalg.norm(principal)])
    found = diagonalise_by_congruence(weighted, normalise=False)
    return found.directions, found.off_diagonal


def _coefficients(matrix: Array, directions: Array) -> Array:
    """zeta of the least-squares fit sum_i zeta_i u_i u_i^T to a symmetric matrix."""
    packing = symmetric_packing(len(matrix))
    zeta, *_ = np.linalg.lstsq(packing.outer(directions.T).T, packing.pack(matrix), rcond=None)
    return np.asarray(zeta)


def _checked(x: Array, y: Array, width: int) -> tuple[Array, Array]:
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if x.ndim != 2 or y.shape != (len(x),) or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InvalidInput(
            f"x and y must be finite and of shapes (n, d) and (n,). Got {x.shape} and {y.shape} instead. "
            f"Give one row of x and one label per sample."
        )
    if not y.any():
        raise InvalidInput(
            "y must not be zero everywhere. Got only zeros instead. Nothing is to be found in them."
        )
    if not 1 <= width <= x.shape[1] or len(x) < 2:
        raise InvalidInput(
            f"width must be from 1 to the number of inputs, {x.shape[1]}, with two samples or more. Got "
            f"{width} with {len(x)} samples instead. More units than inputs cannot be told apart by matrices."
        )
    return x, y
