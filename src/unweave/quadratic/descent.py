"""Descent on a quadratic network from W0 W0^T = t I.

    W <- W - eta grad Lhat(W),      eta by backtracking (`unweave.optimize.armijo`).

If the truth W* (d, m) has i.i.d. entries of variance one, W* W*^T is close to m I, and the start t = m is
below the energy barrier once m is some 5 d^2: for Gaussian inputs and entries E L(W0) = 2 m d (d + 2),
while the barrier grows like m^2 (1 - sqrt(d/m))^4. Descent that begins below the barrier keeps full rank
and ends at the truth. The condition is sufficient, not necessary: random starts far above it end there too,
given a few times d(d+1)/2 samples. At d(d+1)/2 the exact solve (`unweave.quadratic.exact_solve`) is exact
while descent hardly moves: use the solve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.optimize.armijo import armijo_descent
from unweave.quadratic.energy import empirical_gradient, empirical_risk
from unweave.quadratic.span_test import checked_inputs, checked_labels


@dataclass(frozen=True)
class QuadraticDescentOptions:
    """Stopping rules of the descent."""

    steps: int = 3000
    tolerance: float = 1e-26
    """Risk relative to the mean square of the labels: 1e-13 of the labels."""


@dataclass(frozen=True, eq=False)
class QuadraticDescent:
    """End point of the descent."""

    weights: Array
    """(d, m)."""
    history: Array
    """Relative risk, the start first: never rising."""
    converged: bool


def identity_start(dimension: int, width: int, scale: float | None = None) -> Array:
    """W0 (d, m) with W0 W0^T = scale I; scale m if not given. Needs m >= d."""
    if width < dimension:
        raise InvalidInput(
            f"width must be at least the number of inputs, {dimension}. Got {width} instead. "
            f"W0 W0^T = t I has full rank."
        )
    return np.asarray(np.sqrt(width if scale is None else scale) * np.eye(dimension, width))


def matched_scale(x: Array, y: Array) -> float:
    """t with E[t |x|^2] = E y: the multiple of the identity whose mean label is right."""
    return float(np.mean(y) / np.mean(np.sum(x**2, axis=1)))


def start_over_barrier(dimension: int, width: int) -> float:
    """L(W0)/s^4 expected for t = m and Gaussian W* of that width: 2 d (d+2) / (m (1 - sqrt(d/m))^4)."""
    if width <= dimension:
        return np.inf
    return 2 * dimension * (dimension + 2) / (width * (1 - float(np.sqrt(dimension / width))) ** 4)


def quadratic_descent(
    x: Array, y: Array, start: Array, options: QuadraticDescentOptions | None = None
) -> QuadraticDescent:
    """Descend on samples x (N, d), y (N,) from W = ``start`` (d, m)."""
    options = options or QuadraticDescentOptions()
    x = checked_inputs(x)
    y = checked_labels(x, y)
    size = float(np.mean(y**2)) or 1.0
    # The Hessian of Lhat is at most 12 |x|^4 times the size of W W^T: this step is safe, and grows.
    curvature = (
        12 * float(np.mean(np.sum(x**2, axis=1) ** 2)) * max(float(np.linalg.norm(start, 2)) ** 2, 1e-300)
    )
    found = armijo_descent(
        lambda weights: empirical_risk(x, y, weights),
        lambda weights: empirical_gradient(x, y, weights),
        start,
        1 / curvature,
        options.steps,
        lambda risk, _: risk / size <= options.tolerance,
        decrease=0.3,
    )
    history = found.losses / size
    return QuadraticDescent(found.point, history, bool(history[-1] <= options.tolerance))
