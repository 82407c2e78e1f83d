"""Units of one hidden layer, as lines show them: h |w . x + b|, the signs of w open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.arrays import Array, BoolArray
from unweave.methods.shared.kinked.lines import (
    DEFAULT_LINE_OPTIONS,
    Ask,
    LineOptions,
    jumps_at_kinks,
    on_hyperplane,
    unexplained,
)
from unweave.networks.absolute_form import AbsoluteForm
from unweave.numerics.line_kinks import Line, Precision
from unweave.targets.region import Region


@dataclass(frozen=True, eq=False)
class Units:
    """Units h |w . x + b| found so far."""

    weights: Array
    """(d, m), columns of length one."""
    biases: Array
    """(m,)"""
    heights: Array
    """(m, K)"""
    clearance: Array
    """(m,) room to the next unit where it was measured: what its error is inversely proportional to."""
    seen: Array
    """(m,) lines on which it was found."""
    refined: BoolArray
    """(m,) whether it was measured again on its own hyperplane."""

    @classmethod
    def none(cls, n_inputs: int, n_outputs: int) -> Units:
        """Return no units."""
        empty = np.zeros(0)
        return cls(
            np.zeros((n_inputs, 0)), empty, np.zeros((0, n_outputs)), empty, empty, np.zeros(0, dtype=bool)
        )

    @classmethod
    def of(cls, form: AbsoluteForm) -> Units:
        """Return the units of a form, met on no line."""
        none = np.zeros(form.width)
        return cls(form.weights, form.biases, form.heights, none, none, none.astype(np.bool_))

    @property
    def width(self) -> int:
        """m"""
        return len(self.biases)

    def keep(self, chosen: BoolArray) -> Units:
        """Return only the units ``chosen`` (m,)."""
        return Units(self.weights[:, chosen], *(column[chosen] for column in self._columns()))

    def followed_by(self, other: Units) -> Units:
        """Return these units and the ``other`` ones after them."""
        pairs = zip(self._columns(), other._columns(), strict=True)
        return Units(np.hstack([self.weights, other.weights]), *(np.concatenate(pair) for pair in pairs))

    def _columns(self) -> tuple[NDArray[Any], ...]:
        """Return everything but the weights, in the order of the fields."""
        return self.biases, self.heights, self.clearance, self.seen, self.refined

    def crossings(self, line: Line) -> Array:
        """Return (m,) where the line crosses each unit's hyperplane; infinite if it does not."""
        speed = line.direction @ self.weights
        height = line.start @ self.weights + self.biases
        return np.asarray(np.divide(-height, speed, out=np.full_like(height, np.inf), where=speed != 0))


def units_at_kinks(
    ask: Ask,
    region: Region,
    line: Line,
    kinks: Array,
    known: Units,
    precision: Precision,
    options: LineOptions = DEFAULT_LINE_OPTIONS,
    asked: Array | None = None,
) -> tuple[Units, int]:
    """Find the units behind the kinks (n,) that no known unit explains; count the kinks that stay open."""
    new = unexplained(kinks, known.crossings(line), options.same_place)
    jumps = jumps_at_kinks(ask, region, line, kinks, new, precision, options, asked)
    if not jumps:
        return Units.none(region.n_inputs, known.heights.shape[1]), len(new)
    weights = np.stack([jump.normal for jump in jumps], axis=1)
    places = line.points(np.array([jump.position for jump in jumps]))
    # Half the jump of the slope along +w: the line meets it in the direction of u.
    heights = [jump.height if jump.normal @ line.direction > 0 else -jump.height for jump in jumps]
    units = Units(
        weights,
        -np.einsum("nd,dn->n", places, weights),
        np.stack(heights),
        np.array([jump.clearance for jump in jumps]),
        np.ones(len(jumps)),
        np.zeros(len(jumps), dtype=bool),
    )
    return units, len(new) - len(jumps)


def merge(known: Units, new: Units, options: LineOptions = DEFAULT_LINE_OPTIONS) -> Units:
    """Join known and new units; of two sightings of one unit keep the one with more room."""
    joined = known
    for unit in range(new.width):
        one = new.keep(np.arange(new.width) == unit)
        same = on_hyperplane(joined.weights, joined.biases, one.weights[:, 0], one.biases[0], options)
        if not same.any():
            joined = joined.followed_by(one)
            continue
        twin = int(np.argmax(same))
        seen = joined.seen.copy()
        seen[twin] += 1
        joined = replace(joined, seen=seen)
        if one.clearance[0] > joined.clearance[twin]:
            others = np.arange(joined.width) != twin
            joined = joined.keep(others).followed_by(replace(one, seen=seen[[twin]]))
    return joined
