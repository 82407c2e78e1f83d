"""Hermite moments of samples, low orders in all variables, orders 3 and 4 in a few.

For x ~ N(0, I_d), M_j = E[y He_j(x)] is a symmetric tensor of order j. Written through raw moments
s0 = E y, s1 = E y x, S2 = E y x x^T,

    M_1    = s1,
    M_2    = S2 - s0 I,
    M_3[g] = E[y (g.x) x x^T] - (g.s1) I - s1 g^T - g s1^T,
    M_4[G] = E[y (x^T G x) x x^T] - tr(G) S2 - <G, S2> I - 2 (S2 G + G S2) + s0 (tr(G) I + 2 G)     (G = G^T).

Two things keep the sampling error down. Polynomials of degree two are orthogonal to orders 3 and 4, so fit
and subtract one first, and add its part of M_1 and M_2 back exactly: that is worth 25 times the samples. And
He_j(P^T x) is the projection of He_j(x), so orders 3 and 4 are formed in the few variables P^T x that matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.subspace.symmetric import symmetric_packing

_SAMPLES_PER_BATCH = 20_000  # samples whose features are formed at once: limits memory
_MAX_FEATURES = 2_000  # features of the quadratic fit: with more, the fit is linear
_GRAM_RIDGE = 1e-13  # over the mean diagonal entry: keeps features that vanish on all samples solvable
_SAMPLES_PER_FEATURE = 3  # samples per feature: with fewer, the polynomial would fit sampling noise


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
