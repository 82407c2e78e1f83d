"""Biases of a tanh layer whose weights are known, and the width of the next layer, by linear algebra.

With z = s + tau, s = B^T c known, the gradient g_c = B D W h (D = diag tanh'(z), W the next layer's weights)
gives p = B^{-1} g_c with D^{-1} p in the range of W: of dimension k = m_{l+1}, the same everywhere. And

    2 / tanh'(s + tau) = 1 + cosh(2 tau) cosh(2 s) + sinh(2 tau) sinh(2 s)

is linear in alpha = cosh(2 tau), beta = sinh(2 tau). So for every vector n with n^T W = 0 the data rows

    [ p,  p cosh(2s),  p sinh(2s) ]      are orthogonal to      [ n,  alpha n,  beta n ]:

the null space of the data has dimension m - k, which tells k, and its blocks are proportional, which tells
tau. There is no starting value and no local minimum. Only errors of the norms blur it; these are refined
together with tau in `gradient_subspace`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array


@dataclass(frozen=True, eq=False)
class LinearBiases:
    """Biases of the layer and what the spectrum says about the next one."""

    biases: Array
    next_width: int
    singular_values: Array
    """(3m,) of the data, descending."""
    gap: float
    """Ratio at the end of the spectrum."""
    inconsistency: float
    """Median of |alpha^2 - beta^2 - 1| / alpha^2 over the units: small if the spectrum ends where assumed."""


def linear_biases(
    mixing: Array, coordinates: Array, gradients: Array, next_width: int | None = None
) -> LinearBiases:
    """Find tau (m,) from gradients (n, m, K) in ``coordinates`` c (n, m); B = ``mixing`` (m, m)."""
    m = len(mixing)
    s = coordinates @ mixing
    p = np.linalg.solve(mixing, gradients.transpose(1, 0, 2).reshape(m, -1)).reshape(m, len(s), -1)
    p = p.transpose(1, 2, 0)  # (n, K, m)
    blocks = np.stack([p, p * np.cosh(2 * s)[:, None], p * np.sinh(2 * s)[:, None]], axis=2)
    rows = blocks.reshape(-1, 3 * m)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(length > 0, length, 1.0)
    scale = np.sqrt(np.mean(rows**2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    _, values, right = np.linalg.svd(rows / scale, full_matrices=True)
    values = np.pad(values, (0, max(0, 3 * m - len(values))))
    # The spectrum ends m - k before the last: somewhere in the last m - 1 places.
    ratios = values[2 * m : -1] / np.maximum(values[2 * m + 1 :], 1e-300)
    found = int(np.argmax(ratios)) + 1
    k = found if next_width is None else next_width
    null = (right[2 * m + k :] / scale).reshape(m - k, 3, m)
    weight = np.einsum("am,am->m", null[:, 0], null[:, 0])
    weight = np.where(weight > 0, weight, 1.0)
    alpha = np.einsum("am,am->m", null[:, 0], null[:, 1]) / weight
    beta = np.einsum("am,am->m", null[:, 0], null[:, 2]) / weight
    tilt = np.clip(beta / np.where(alpha > 0, alpha, np.inf), -1 + 1e-12, 1 - 1e-12)
    inconsistency = float(np.median(np.abs(alpha**2 - beta**2 - 1) / np.maximum(alpha**2, 1e-300)))
    gap = float(ratios[k - 1]) if k - 1 < len(ratios) else np.inf
    return LinearBiases(np.arctanh(tilt) / 2, k, values, gap, inconsistency)
