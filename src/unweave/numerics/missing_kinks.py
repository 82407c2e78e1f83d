r"""Units that second moments of what others leave point to.

For normal inputs and one missing unit, r(x) = h |w . x + b| + affine, the matrix

    E[ r(x) (x x^T - I) ]  =  h phi(b) w w^T,      phi(b) > 0,

has rank one. Of several missing units, the strongest lead. No line needs to cross a unit, and thousands of
rows average what errs: this shows units too weak for the gradients beside a kink.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array

_QUANTILES = np.linspace(0.05, 0.95, 19)  # of rows on one side of a candidate's hyperplane
_LONGEST = 2.0  # squared length of a row, over the typical one, up to which inputs count as normal


def units_in_moments(points: Array, left: Array, count: int) -> tuple[Array, Array]:
    """Return weights (d, c) and biases (c,), c up to ``count``, for ``left`` (n,) at ``points`` (n, d)."""
    squares = (points**2).sum(axis=1)
    usual = squares <= _LONGEST * points.shape[1]
    x, rest = points[usual], left[usual]
    if len(x) <= x.shape[1] + 1:
        return points[:0].T, np.zeros(0)
    affine = np.linalg.qr(np.column_stack([x, np.ones(len(x))]))[0]
    rest = rest - affine @ (affine.T @ rest)
    values, vectors = np.linalg.eigh(x.T @ (rest[:, None] * x))
    chosen = np.argsort(-np.abs(values))[:count]
    weights = vectors[:, chosen]
    return weights, np.array([_best_bias(x @ weight, rest, affine) for weight in weights.T])


def _best_bias(along: Array, rest: Array, affine: Array) -> float:
    """Return the bias b for which |s + b|, s = ``along`` (n,), explains most of ``rest`` (n,)."""
    biases = -np.quantile(along, _QUANTILES)
    shapes = np.abs(along[:, None] + biases)
    shapes -= affine @ (affine.T @ shapes)
    return float(biases[np.argmax((rest @ shapes) ** 2 / (shapes**2).sum(axis=0))])
