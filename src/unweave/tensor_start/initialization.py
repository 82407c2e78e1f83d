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

The M_j are symmetric tensors of order j. Written through raw moments s0 = E y, s1 = E y x, S2 = E y x x^T,

    M_1    = s1,
    M_2    = S2 - s0 I,
    M_3[g] = E[y (g.x) x x^T] - (g.s1) I - s1 g^T - g s1^T,
    M_4[G] = E[y (x^T G x) x x^T] - tr(G) S2 - <G, S2> I - 2 (S2 G + G S2) + s0 (tr(G) I + 2 G)     (G = G^T).

Two things keep the sampling error down. Polynomials of degree two are orthogonal to orders 3 and 4, so fit
and subtract one first, and add its part of M_1 and M_2 back exactly: that is worth 25 times the samples. And
He_j(P^T x) is the projection of He_j(x), so orders 3 and 4 are formed in the few variables P^T x that matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation, get_activation
from unweave.networks.network import Network
from unweave.numerics.clock import check
from unweave.subspace.congruence import diagonalise_by_congruence
from unweave.subspace.symmetric import symmetric_packing
from unweave.tensor_start.bias_free import bias_free_network

_SAMPLES_PER_BATCH = 20_000  # samples whose features are formed at once: limits memory
_MAX_FEATURES = 2_000  # features of the quadratic fit: with more, the fit is linear
_GRAM_RIDGE = 1e-13  # over the mean diagonal entry: keeps features that vanish on all samples solvable
_SAMPLES_PER_FEATURE = 3  # samples per feature: with fewer, the polynomial would fit sampling noise
_TENSOR_ORDERS = (3, 4)  # of the tensor that separates the units, in the order they are tried
_COEFFICIENT_ROUNDING = 1e-10  # over the largest coefficient: they are integrals to some 14 digits
_SPARE_COLUMNS = 5  # of an iterated block, beyond those wanted: the others converge faster beside them
_LEAST_RELATIVE_POWER = 1e-3  # |w|^q over the largest: smaller ones are noise; a start at 0 stays there


@dataclass(frozen=True, eq=False)
class LowMoments:
    """M_1 and M_2, and the residual of the polynomial fit."""

    first: Array
    """M_1, (d,)."""
    second: Array
    """M_2, (d, d)."""
    degree: int
    """Of the polynomial: 2, or less where samples are few or variables many."""
    remainder: Array
    """(n,) labels minus the fitted polynomial: orders 3 and up are the same as those of the labels."""


def low_moments(x: Array, y: Array) -> LowMoments:
    """M_1 and M_2 of samples x (n, d), y (n,), through a polynomial fit of degree two, one if n is small."""
    n, d = x.shape
    packing = symmetric_packing(d)
    sizes = (1, 1 + d, 1 + d + packing.size)
    affordable = min(_MAX_FEATURES, n // _SAMPLES_PER_FEATURE)
    degree = max((k for k in (1, 2) if sizes[k] <= affordable), default=0)
    size = sizes[degree]
    gram, right = np.zeros((size, size)), np.zeros(size)
    for rows in _batches(n):
        features = _features(x[rows], degree)
        gram += features.T @ features
        right += features.T @ y[rows]
    gram[np.diag_indices(size)] += _GRAM_RIDGE * np.trace(gram) / size
    coefficients = scipy.linalg.solve(gram, right, assume_a="pos")
    remainder = np.concatenate([y[rows] - _features(x[rows], degree) @ coefficients for rows in _batches(n)])
    first = x.T @ remainder / n
    second = (x * remainder[:, None]).T @ x / n - remainder.mean() * np.eye(d)
    if degree >= 1:
        first = first + coefficients[1 : 1 + d]
    if degree == 2:
        # x^T Q x = tr Q + <Q, He_2(x)>, and E[He_2 <Q, He_2>] = 2 Q.
        second = second + 2 * packing.unpack(coefficients[1 + d :])
    return LowMoments(first, second, degree, remainder)


def iterated_frame(x: Array, y: Array, width: int, rng: np.random.Generator, rounds: int = 30) -> Array:
    """Orthonormal columns (d, k) that span the k = ``width`` leading eigenvectors of M_2, M_2 never formed.

    Labels lose their mean and their linear part E[y x] first. Then a block of k + 5 columns Q is
    multiplied, M_2 Q = X^T (y * (X Q))/n - E[y] Q, and made orthonormal again; by Ritz's method the k largest
    by size remain. Cost: 4 n d (k + 5) flops a round, linear in d, where the dense matrix costs n d^2.
    """
    n, d = x.shape
    slopes = x.T @ (y - y.mean()) / n
    rest = y - y.mean() - x @ slopes

    def times(columns: Array) -> Array:
        total = np.zeros_like(columns)
        for rows in _batches(n):
            total += x[rows].T @ (rest[rows, None] * (x[rows] @ columns))
        return np.asarray(total / n - rest.mean() * columns)

    block = np.linalg.qr(rng.standard_normal((d, min(d, width + _SPARE_COLUMNS))))[0]
    for _ in range(rounds):
        check()
        block = np.linalg.qr(times(block))[0]
    values, inner = np.linalg.eigh(block.T @ times(block))
    return np.asarray(block @ inner[:, np.argsort(-np.abs(values))[:width]])


def third_order_slices(z: Array, y: Array) -> Array:
    """M_3[e_1], ..., M_3[e_k] of samples z (n, k), y (n,); (k, k, k)."""
    n, k = z.shape
    packing = symmetric_packing(k)
    raw = np.zeros((k, packing.size))
    for rows in _batches(n):
        raw += (z[rows] * y[rows, None]).T @ packing.outer(z[rows])
    slices = np.asarray(packing.unpack(raw / n))
    first, identity = z.T @ y / n, np.eye(k)
    mixed = np.einsum("i,aj->aij", first, identity)
    return np.asarray(slices - first[:, None, None] * identity - mixed - mixed.transpose(0, 2, 1))


def fourth_order_matrices(z: Array, y: Array) -> Array:
    """M_4[G_p] for the packed basis G_1, ..., G_p of symmetric k x k matrices; (p, k, k), p = k(k+1)/2."""
    n, k = z.shape
    packing = symmetric_packing(k)
    raw = np.zeros((packing.size, packing.size))
    for rows in _batches(n):
        products = packing.outer(z[rows])
        raw += (products * y[rows, None]).T @ products
    basis = np.asarray(packing.unpack(np.eye(packing.size)))
    mean, second, identity = y.mean(), (z * y[:, None]).T @ z / n, np.eye(k)
    traces = np.einsum("pii->p", basis)[:, None, None]
    inner = np.einsum("pij,ij->p", basis, second)[:, None, None]
    turned = second @ basis
    correction = traces * second + inner * identity + 2 * (turned + turned.transpose(0, 2, 1))
    return np.asarray(packing.unpack(raw / n) - correction + mean * (traces * identity + 2 * basis))


def _features(x: Array, degree: int) -> Array:
    """1, x, and packed x x^T up to ``degree``: columns of a polynomial fit."""
    columns = [np.ones((len(x), 1))]
    if degree >= 1:
        columns.append(x)
    if degree >= 2:
        columns.append(symmetric_packing(x.shape[1]).outer(x))
    return np.concatenate(columns, axis=1)


def _batches(rows: int) -> list[slice]:
    return [slice(start, start + _SAMPLES_PER_BATCH) for start in range(0, rows, _SAMPLES_PER_BATCH)]


@dataclass(frozen=True, eq=False)
class TensorStart:
    """A first guess, with figures that judge it."""

    network: Network
    """sum_i v_i g(w_i . x), v_i = +-1."""
    order: int
    """Order of the tensor that separated the units."""
    gap: float
    """|lambda_k / lambda_{k+1}| of M_2: how clearly the samples show k directions; inf if k = d, nan where
    M_2 was not formed."""
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


def tensor_start(
    x: Array, y: Array, width: int, activation: str, rng: np.random.Generator | None = None
) -> TensorStart:
    """First guess of a bias-free network of ``width`` units from samples x (n, d) ~ N(0, I), y (n,).

    Nothing is random here unless ``rng`` is given: then the frame is found by `iterated_frame`, and
    everything takes time linear in d, as [guarantees] asks, with a frame that is a little less exact. The
    error falls like n^(-1/2); the constant grows with the condition of W. Inputs that are not standard
    Gaussian (whiten those that are Gaussian) give a guess that means nothing.

    Cost: n (d + d^2/2)^2 flops for the polynomial, n k^4/4 for the tensor of order 4.
    """
    function = get_activation(activation)
    order, constants = tensor_order(function), hermite_constants(function)
    x, y = _checked(x, y, width)
    degree = function.homogeneity
    assert degree is not None  # checked by `tensor_order`
    first, inside, remainder, frame, gap = _in_frame(x, y, width, rng)
    z = x @ frame
    high = fourth_order_matrices(z, remainder) if order == 4 else third_order_slices(z, remainder)
    directions, off_diagonal = _common_directions(inside, high)
    signed_sizes = _coefficients(inside, directions) / constants[2]  # v_i |w_i|^q
    outer = np.where(signed_sizes >= 0, 1.0, -1.0)
    powers = np.maximum(np.abs(signed_sizes), _LEAST_RELATIVE_POWER * np.abs(signed_sizes).max())
    signed, *_ = np.linalg.lstsq(directions * (constants[1] * outer * powers), first, rcond=None)
    directions = directions * np.where(signed >= 0, 1.0, -1.0)
    weights = frame @ directions * powers ** (1 / degree)
    explained = directions @ (constants[1] * outer * powers)
    misfit = float(np.linalg.norm(first - explained) / np.linalg.norm(first))
    network = bias_free_network(weights, outer, function.name)
    return TensorStart(network, order, gap, off_diagonal, misfit)


def _in_frame(
    x: Array, y: Array, width: int, rng: np.random.Generator | None
) -> tuple[Array, Array, Array, Array, float]:
    """M_1 and M_2 in the frame, the rest of the labels, the frame (d, k), and the gap of M_2 or nan."""
    if rng is not None:
        frame = iterated_frame(x, y, width, rng)
        few = low_moments(x @ frame, y)
        return few.first, few.second, few.remainder, frame, np.nan
    low = low_moments(x, y)
    values, vectors = np.linalg.eigh(low.second)
    by_size = np.argsort(-np.abs(values))
    frame = vectors[:, by_size[:width]]
    sizes = np.abs(values[by_size])
    beyond = float(sizes[width]) if width < x.shape[1] else 0.0
    gap = float(sizes[width - 1]) / beyond if beyond > 0 else np.inf
    if low.degree < 2:  # too many variables for the polynomial; in the few that matter it is cheap
        few = low_moments(x @ frame, y)
        return few.first, few.second, few.remainder, frame, gap
    return frame.T @ low.first, frame.T @ low.second @ frame, low.remainder, frame, gap


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
