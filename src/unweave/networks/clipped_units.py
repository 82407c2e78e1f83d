"""Clipped units: hard tanh, ReLU6 and hard sigmoid, which are one family.

    hard tanh(z) = (|z + 1| - |z - 1|) / 2,    relu6(z) = 3 + 3 hard tanh(z/3 - 1),
    hard sigmoid(z) = 1/2 + 1/2 hard tanh(z/3):

two parallel kinks whose jumps cancel are one such unit. In an absolute form (`absolute_form`) they are two
units with one direction and opposite heights, 2/|w| apart, and they leave no slope behind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.network import Network

SAME = 1e-6
"""Relative difference of directions and heights up to which two kinks belong together: lines find both to
1e-9 or better, and strangers differ by far more."""
NO_SLOPE = 1e-7
"""Entry of the slope, relative to the sum of the units' own, that counts as zero."""


@dataclass(frozen=True)
class ClippedKind:
    """g(z) = constant + height hard_tanh(stretch z + shift)."""

    stretch: float = 1.0
    shift: float = 0.0
    height: float = 1.0
    constant: float = 0.0


CLIPPED = {
    "hard_tanh": ClippedKind(),
    "relu6": ClippedKind(1 / 3, -1.0, 3.0, 3.0),
    "hard_sigmoid": ClippedKind(1 / 3, 0.0, 0.5, 0.5),
}
"""The kinds by name, hard tanh first: it stands for all where none is told."""


def as_clipped_units(form: AbsoluteForm, activation: str = "hard_tanh") -> Network | None:
    """Return the network of clipped units that ``form`` is, with a skip if its slope is not zero.

    None if some unit has no partner.
    """
    pairs = _pairs(form)
    if pairs is None:
        return None
    first, second, aligned = pairs
    directions, upper = form.weights[:, first], form.biases[first]
    lower = aligned * form.biases[second]
    # The kink at z = -1 lies where |w| times the larger of both biases is b + 1.
    swapped = upper < lower
    top, bottom = np.maximum(upper, lower), np.minimum(upper, lower)
    lengths = 2 / (top - bottom)
    heights = np.where(swapped, -1.0, 1.0)[:, None] * (form.heights[first] - form.heights[second]) / 2
    kind = CLIPPED[activation]
    outgoing = 2 / lengths[:, None] * heights / kind.height
    weights = directions * (lengths / kind.stretch)
    biases = ((top + bottom) / 2 * lengths - kind.shift) / kind.stretch
    offset = form.offset - kind.constant * outgoing.sum(axis=0)
    size = np.abs(form.weights) @ np.abs(form.heights)
    skip = None if (np.abs(form.slope) <= NO_SLOPE * size).all() else form.slope
    return Network([weights, outgoing], [biases, offset], [activation, "identity"], skip=skip)


def _pairs(form: AbsoluteForm) -> tuple[IntArray, IntArray, Array] | None:
    """Return partners (m/2,) each, and +-1 by which the second ones' direction is that of the first."""
    m = form.width
    if m == 0 or m % 2:
        return None
    overlap = form.weights.T @ form.weights
    apart = np.sqrt(np.maximum(0.0, 2 - 2 * np.abs(overlap)))
    size = np.abs(form.heights).max(axis=1)
    cancelled = np.abs(form.heights[:, None, :] + form.heights[None, :, :]).max(axis=2)
    fits = (apart <= SAME) & (cancelled <= SAME * np.minimum.outer(size, size))
    np.fill_diagonal(fits, False)
    if not (fits.sum(axis=1) == 1).all():
        return None
    partner = np.argmax(fits, axis=1)
    first = np.flatnonzero(np.arange(m) < partner).astype(np.int64)
    second = partner[first]
    return first, second, np.sign(overlap[first, second])
