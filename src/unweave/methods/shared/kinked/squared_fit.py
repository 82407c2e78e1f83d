"""Signs of squared ReLU units from the quadratic part.

    sum_i a_i relu(xi_i z_i)^2 = sum_i h_i z_i |z_i| + sum_i xi_i h_i z_i^2,    a_i = 2 xi_i h_i, xi_i = +-1

(z_i = w_i . x + b_i), so that beside the features the fit sees the quadratic form sum_i xi_i h_i (w_i, b_i)
(w_i, b_i)^T of (x, 1): (d+1)(d+2)/2 linear equations for m signs. All of them count but the constant one,
which holds the output's bias. For m up to their number least squares and rounding find the signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network

_RANK = 1e-8


@dataclass(frozen=True, eq=False)
class SquaredForm:
    """f(x) = (z |z|) H + x^T Q_k x + x S + c, z = x W + b."""

    weights: Array
    """(d, m)"""
    biases: Array
    """(m,)"""
    heights: Array
    """(m, K)"""
    quadratic: Array
    """(K, d, d), symmetric"""
    slope: Array
    """(d, K)"""
    offset: Array
    """(K,)"""


@dataclass(frozen=True, eq=False)
class SquaredSigns:
    """Signs (m,), their relative misfit, and whether no other pattern could do."""

    signs: Array
    residual: float
    unique: bool


def squared_signs(form: SquaredForm, tolerance: float) -> SquaredSigns:
    """Least squares for the signs, rounded."""
    width = len(form.biases)
    if not width:
        size = float(np.linalg.norm(form.quadratic))
        return SquaredSigns(np.zeros(0), size, True)
    first, second = np.triu_indices(len(form.weights))
    twice = np.where(first == second, 1.0, 2.0)[:, None]
    squares = twice * form.weights[first] * form.weights[second]  # (q, m): x_i x_j in z^2
    crosses = 2 * form.weights * form.biases  # (d, m): x_i in z^2
    matrix = np.vstack([squares, crosses])[:, None, :] * form.heights.T[None]  # (q + d, K, m)
    right = np.vstack([twice * form.quadratic[:, first, second].T, form.slope])
    matrix, flat = matrix.reshape(-1, width), right.reshape(-1)
    size = float(np.linalg.norm(matrix))
    values = np.linalg.svd(matrix, compute_uv=False)
    found = np.linalg.lstsq(matrix, flat, rcond=_RANK)[0]
    signs = np.where(found >= 0, 1.0, -1.0)
    residual = float(np.linalg.norm(matrix @ signs - flat)) / size
    smallest = float(values[-1]) / size if len(flat) >= width else 0.0
    return SquaredSigns(signs, residual, 2 * smallest - residual > tolerance)


def squared_network(form: SquaredForm, signs: Array) -> Network:
    """The network with these signs; its offset takes what the units' constants leave."""
    weights, biases, outer = form.weights * signs, form.biases * signs, 2 * form.heights * signs[:, None]
    offset = form.offset - (biases**2) @ outer / 2
    return Network([weights, outer], [biases, offset], ["squared_relu", "identity"])
