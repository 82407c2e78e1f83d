"""Signs xi in {-1, 1}^m with M xi = r, read off the center of what the box |z_i| <= 1 leaves of {M z = r}.

Around q = m/2 equations little of the box is left, and its analytic center

    argmin  - sum_i log(1 - z_i^2)      subject to  M z = r

has nine of ten signs right, the surer the nearer z_i is to its end. Newton's method finds it in a dozen
systems of q equations. Signs are then decoded as a message with errors is:

1. The least sure 9/10 q coordinates are left open: the other equations, from which they are projected out,
   must hold for the settled ones alone. Up to four wrong signs show by what they leave.
2. Otherwise the surest eighth is fixed, what is left of the box shrinks, and its new center is looked at.
3. Where that ends without a pattern, it begins anew from a center that is tilted at random.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.numerics.clock import out_of_time

_OPEN = 0.9  # open coordinates per equation: a tenth of the equations is left to find wrong signs by
_FIXED = 8  # a fraction of 1/8 of the free coordinates is fixed before the next center
_TILT = 2.0  # deviation of a random tilt, in units of the barrier's slope
_NEWTON_STEPS = 40
_NEAR_CENTER = 1e-4  # squared length of a Newton step, in the barrier's metric, at the center
_SIDE = 1e-9  # distance from an end at which nothing of the box is left around z
_MOST_CANDIDATES = 200_000  # sets of wrong signs that are looked at: tens of MB
_OFF = 1e-3  # of the largest entry of M, by which an equation fails where the box is missed


def decoded_signs(
    matrix: Array, right: Array, tolerance: float, rng: np.random.Generator, tries: int
) -> Array | None:
    """Return xi (m,) with |M xi - r| <= ``tolerance``, for M (q, m) of full row rank, or None."""
    width = matrix.shape[1]
    for number in range(tries):
        tilt = np.asarray(_TILT * rng.standard_normal(width) if number else np.zeros(width))
        found, missed = _one_try(matrix, right, tolerance, tilt)
        if found is not None:
            return found
        if missed or out_of_time():
            break  # not even signs between -1 and 1 would do
    return None


def _one_try(matrix: Array, right: Array, tolerance: float, tilt: Array) -> tuple[Array | None, bool]:
    """The pattern found, and whether the equations miss the whole box."""
    equations, width = matrix.shape
    left_open = min(int(_OPEN * equations), width - 1)
    signs, first = np.zeros(width), True
    while True:
        fixed, free = np.flatnonzero(signs), np.flatnonzero(signs == 0)
        rest = right - matrix[:, fixed] @ signs[fixed]
        point = _center(matrix[:, free], rest, tilt[free])
        off = np.abs(matrix[:, free] @ point - rest).max()
        if not off <= _OFF * np.abs(matrix).max():
            return None, first
        by_sureness = free[np.argsort(-np.abs(point))]
        guess = signs.copy()
        guess[free] = np.where(point > 0, 1.0, -1.0)
        order = np.concatenate([fixed, by_sureness])
        found = _corrected(matrix, right, guess, order[:-left_open], order[-left_open:], tolerance)
        count = max(len(free) // _FIXED, 1)
        if found is not None or len(free) - count < left_open or out_of_time():
            return found, False
        signs[by_sureness[:count]] = guess[by_sureness[:count]]
        first = False


def _center(matrix: Array, right: Array, tilt: Array) -> Array:
    """Analytic center (m,) of the box with M z = r, tilted: Newton steps from a point off the equations."""
    shortest = matrix.T @ np.linalg.solve(_ridged(matrix @ matrix.T), right)
    point = np.clip(shortest, -0.9, 0.9)
    for _ in range(_NEWTON_STEPS):
        room = 1 - point**2
        slope, curvature = 2 * point / room + tilt, 2 * (1 + point**2) / room**2
        weighted = matrix / curvature
        try:
            prices = np.linalg.solve(_ridged(weighted @ matrix.T), right - matrix @ point + weighted @ slope)
        except np.linalg.LinAlgError:
            break
        step = (matrix.T @ prices - slope) / curvature
        share = float(np.maximum(step / (1 - point), -step / (1 + point)).max())  # of the way to an end
        point = point + min(1.0, 0.95 / share if share > 0 else 1.0) * step
        near = float((step**2 * curvature).sum()) < _NEAR_CENTER
        if (1 - np.abs(point)).min() < _SIDE or (near and share < 0.95):
            break
    return np.asarray(point)


def _ridged(system: Array) -> Array:
    """A positive semidefinite matrix (q, q) that rounding does not make singular."""
    return system + 1e-13 * float(np.trace(system)) / len(system) * np.eye(len(system))


def _corrected(
    matrix: Array, right: Array, signs: Array, settled: IntArray, open_ones: IntArray, tolerance: float
) -> Array | None:
    """The pattern that agrees with ``signs`` at the ``settled`` places, but for four at most, or None."""
    outside = np.linalg.qr(matrix[:, open_ones], mode="complete")[0][:, len(open_ones) :]
    terms = outside.T @ (matrix[:, settled] * signs[settled])
    left = outside.T @ right - terms.sum(axis=1)  # what wrong signs leave: minus twice their terms
    pattern = signs.copy()
    if np.linalg.norm(left) > tolerance:
        wrong = few_adding_to(terms, -left / 2, tolerance)
        if wrong is None or not len(wrong):
            return None
        pattern[settled[wrong]] *= -1
    rest = right - matrix[:, settled] @ pattern[settled]
    pattern[open_ones] = np.where(np.linalg.lstsq(matrix[:, open_ones], rest, rcond=None)[0] > 0, 1.0, -1.0)
    return pattern if np.linalg.norm(matrix @ pattern - right) <= tolerance else None


def few_adding_to(columns: Array, total: Array, tolerance: float) -> IntArray | None:
    """Numbers of one to four ``columns`` (q, m) that add up to ``total`` (q,), or None.

    Sums of one or two columns are sorted by one random coordinate, in which the missing ones are looked up.
    Where that leaves too many to look at, no number is returned instead of None.
    """
    direction = np.random.default_rng(0).standard_normal(len(columns))
    direction /= np.linalg.norm(direction)
    values = np.append(direction @ columns, [0.0, 0.0])  # the last two stand for no column
    first, second = np.triu_indices(len(values), 1)
    sums = values[first] + values[second]
    order = np.argsort(sums)
    missing = float(direction @ total) - sums
    low = np.searchsorted(sums[order], missing - tolerance)
    counts = np.searchsorted(sums[order], missing + tolerance, side="right") - low
    if counts.sum() > _MOST_CANDIDATES:
        return np.zeros(0, dtype=np.intp)  # such a tolerance tells nothing apart
    some = np.repeat(np.arange(len(sums)), counts)
    others = order[
        np.repeat(low, counts) + np.arange(len(some)) - np.repeat(np.cumsum(counts) - counts, counts)
    ]
    members = np.stack([first[some], second[some], first[others], second[others]], axis=1)
    padded = np.hstack([columns, np.zeros((len(columns), 2))])
    fits = np.linalg.norm(padded[:, members].sum(axis=2) - total[:, None], axis=0) <= tolerance
    for found in members[fits]:
        named = found[found < columns.shape[1]]
        if len(named) and len(set(named.tolist())) == len(named):
            return np.sort(named)
    return None
