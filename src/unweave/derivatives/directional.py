"""Second and third derivatives of all outputs along given directions, at one point.

    second   (f(+h) - 2 f(0) + f(-h)) / h^2                          error h^2/12 f''''
    third    (f(2h) - 2 f(h) + 2 f(-h) - f(-2h)) / 2h^3              error h^2/4 f'''''

with f(t) = f(x + t q). Together 4 rows per direction and one for the point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unweave.arrays import Array


def directional_derivatives(
    function: Callable[[Array], Array],
    directions: Array,
    point: Array | None = None,
    second_step: float = 1e-2,
    third_step: float = 1e-2,
) -> tuple[Array, Array]:
    """Second and third derivatives (n, K) each, along the rows of ``directions`` (n, d) at ``point`` (d,).

    ``point`` is the origin if not given. With equal steps the second derivative reuses the third's rows.
    """
    origin = np.zeros(directions.shape[1]) if point is None else point
    offsets = [0.0, second_step, -second_step, third_step, -third_step, 2 * third_step, -2 * third_step]
    distinct = sorted(set(offsets) - {0.0})
    points = [origin[None, :], *(origin + offset * directions for offset in distinct)]
    answers = function(np.concatenate(points))
    n = len(directions)
    at = {offset: answers[1 + i * n : 1 + (i + 1) * n] for i, offset in enumerate(distinct)}
    h, k = second_step, third_step
    second = (at[h] - 2 * answers[:1] + at[-h]) / h**2
    third = (at[2 * k] - 2 * at[k] + 2 * at[-k] - at[-2 * k]) / (2 * k**3)
    return second, third
