"""A unit of the first layer that no circle has shown splits cells of the hyperplanes that are known.

Far out answers are constant in every cell, so two points of one cell whose answers differ have a further
hyperplane between them, and the circle through them crosses it. A walk that never leaves the cell leads from
one point to the other. How often it would cross a hyperplane that is not known is counted with those that
are, each left out in turn; no rows are needed for that. They are few where a cell is wide, a dozen where
there are no more units than inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.shared.far_field import Ask
from unweave.methods.smooth_patterns.directions import Hyperplanes
from unweave.methods.smooth_patterns.sign_patterns import PatternOptions


@dataclass(frozen=True, kw_only=True)
class CellOptions:
    """How cells are walked through."""

    walks: int = 300
    """Walks that tell how often a hyperplane is crossed."""
    steps: int = 40
    """Straight steps of a walk."""
    missed: float = 2e-3
    """Chance of missing a unit that is crossed as often as the others."""
    most: int = 1000
    """Rows at most."""


def split_cells(
    ask: Ask,
    planes: Hyperplanes,
    points: Array,
    answers: Array,
    visible: float,
    rng: np.random.Generator,
    where: PatternOptions,
    options: CellOptions,
) -> tuple[Array, Array]:
    """Return points (n, D) and (n, D), two of each cell, whose answers differ by ``visible`` of their size.

    The first are some of ``points`` (N, D), which lie off all hyperplanes, with ``answers`` (N, K).
    """
    margins = np.maximum(
        where.clear * np.maximum(planes.widths, np.median(planes.widths)),
        where.least_angle * where.radius * np.sqrt(points.shape[1]),
    )
    walks = points[rng.integers(len(points), size=options.walks)]
    unknown = rng.integers(planes.count, size=options.walks)
    ends = _walked(walks, planes, margins, unknown, rng, options.steps)
    normals, positions = planes.directions[unknown], planes.positions[unknown]
    before, after = (np.einsum("nd,nd->n", x, normals) > positions for x in (walks, ends))
    crossed = max(float(np.mean(before != after)), 1 / options.walks)
    wanted = int(np.ceil(np.log(options.missed) / np.log1p(-min(crossed, 0.5))))
    chosen = rng.integers(len(points), size=min(wanted, options.most))
    ends = _walked(points[chosen], planes, margins, None, rng, options.steps)
    change = np.abs(ask(ends) - answers[chosen]).max(axis=1)
    differ = change > visible * np.abs(answers).max()
    return points[chosen][differ], ends[differ]


def _walked(
    points: Array,
    planes: Hyperplanes,
    margins: Array,
    but: IntArray | None,
    rng: np.random.Generator,
    steps: int,
) -> Array:
    """Return where random steps lead that cross no hyperplane but number ``but`` (n,) of each point.

    A step ends anywhere on the chord through the cell, within a ball that holds all points.
    """
    largest = 1.01 * float(np.linalg.norm(points, axis=1).max())
    for _ in range(steps):
        along = rng.standard_normal(points.shape)
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        distances = points @ planes.directions.T - planes.positions
        room = np.abs(distances) - margins  # up to each hyperplane
        rates = -np.sign(distances) * (along @ planes.directions.T)  # at which a step towards it uses that up
        if but is not None:
            rates[np.arange(len(points)), but] = 0.0
        with np.errstate(divide="ignore"):
            times = room / rates
        ahead = np.where(rates > 0, times, np.inf).min(axis=1)
        behind = np.where(rates < 0, times, -np.inf).max(axis=1)
        middle = -np.einsum("nd,nd->n", points, along)
        reach = np.sqrt(middle**2 + largest**2 - np.einsum("nd,nd->n", points, points))
        first, last = np.maximum(behind, middle - reach), np.minimum(ahead, middle + reach)
        points = points + (first + (last - first) * rng.random(len(points)))[:, None] * along
    return points
