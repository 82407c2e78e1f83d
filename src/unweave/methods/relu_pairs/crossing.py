"""Locate kinks on short segments across hyperplanes that are expected to hold them.

On x + t n, |t| <= h, answers at -h, -h/2, h/2 and h give a line on either side of a kink. They meet at t*.
Answers there and a little to either side tell one kink from several: one alone would agree with a line that
is right, while another kink has bent the other. With an error e of an answer and the jump J of the slope, t*
errs by about 4 e / J, whatever h is: a position is the most precise thing that coarse answers show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from unweave.arrays import Array, BoolArray

Read = Callable[[Array], tuple[Array, Array]]
"""Points (n, d) to values (n, K) and the largest error (n,) of each; nan where nothing is read."""


@dataclass(frozen=True, kw_only=True)
class CrossingOptions:
    """When a segment holds one kink."""

    position_errors: float = 4.0
    """Errors of an answer in t* J: two lines, extrapolated by half their length."""
    clear: float = 8.0
    """Errors of the bend that it must exceed to be a kink, and of an answer near t* that are allowed."""
    beside: float = 0.125
    """Distance of the last answers from t*, in halves of a segment."""
    straight: float = 2.0
    """Errors of the bend below which there is none."""


DEFAULT_CROSSING_OPTIONS = CrossingOptions()


@dataclass(frozen=True, eq=False)
class Located:
    """What segments show, (n,) each."""

    positions: Array
    """t* of the kink."""
    errors: Array
    """Standard error of t*."""
    found: BoolArray
    """Whether there is one kink."""
    straight: BoolArray
    """Whether there is clearly none. Elsewhere there are several, or nothing is seen."""
    bends: Array
    """(n, K) change of the slope."""
    bend_errors: Array
    """Error of that."""

    def at(self, rows: BoolArray) -> Located:
        """Return what some of the segments show."""
        return Located(*(getattr(self, each.name)[rows] for each in fields(self)))


def locate(
    read: Read,
    points: Array,
    normals: Array,
    halves: Array,
    options: CrossingOptions = DEFAULT_CROSSING_OPTIONS,
) -> Located:
    """Look for a kink on each segment points (n, d) + t normals (n, d), |t| <= halves (n,)."""
    shares = np.array([-1.0, -0.5, 0.5, 1.0])
    rows = points + (shares[:, None] * halves)[:, :, None] * normals
    values, errors = read(rows.reshape(-1, points.shape[1]))
    values = values.reshape(4, len(points), -1)
    error = errors.reshape(4, -1).max(axis=0)
    with np.errstate(all="ignore"):
        left = 2 * (values[1] - values[0]) / halves[:, None]
        right = 2 * (values[3] - values[2]) / halves[:, None]
        bend = right - left
        size = np.abs(bend).max(axis=1)
        # Where both lines, extrapolated to t, agree.
        apart = (values[1] + left * halves[:, None] / 2) - (values[2] - right * halves[:, None] / 2)
        t = np.einsum("nk,nk->n", apart, bend) / np.einsum("nk,nk->n", bend, bend)
        of_bend = 4 * error / halves
        seen = np.isfinite(size) & np.isfinite(error)
        moves = np.ptp(values, axis=0).max(axis=1) > options.straight * error
        straight = seen & moves & (size <= options.straight * of_bend)
        likely = seen & (size > options.clear * of_bend) & (np.abs(t) <= halves / 2)
    found = np.zeros(len(points), dtype=bool)
    rows_left = np.flatnonzero(likely)
    if len(rows_left):
        half, at = halves[rows_left], t[rows_left]
        beside = at + options.beside * np.array([-1.0, 0.0, 1.0])[:, None] * half
        places = points[rows_left] + beside[:, :, None] * normals[rows_left]
        near, late = read(places.reshape(-1, points.shape[1]))
        near, late = near.reshape(3, len(rows_left), -1), late.reshape(3, -1).max(axis=0)
        before = values[1, rows_left] + left[rows_left] * (beside[:2] + half / 2)[:, :, None]
        after = values[2, rows_left] + right[rows_left] * (beside[2] - half / 2)[:, None]
        off = np.abs(near - np.concatenate([before, after[None]])).max(axis=(0, 2))
        allowed = options.clear * np.maximum(error[rows_left], late)
        found[rows_left] = np.isfinite(off) & (off <= allowed)
    with np.errstate(all="ignore"):
        positions, spread = (
            np.where(found, t, 0.0),
            np.where(found, options.position_errors * error / size, np.inf),
        )
    return Located(positions, spread, found, straight, bend, of_bend)
