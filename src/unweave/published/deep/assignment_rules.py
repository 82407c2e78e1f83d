"""Two more rules that tell first-layer weights: along rays, and with a radius that adapts.

**Rays** ([identification] sec. 4.3.1, its first approach). Along a first-layer weight v, t v saturates
little more than its own unit as long as the first layer is nearly orthogonal; along any other direction all
units saturate, and nothing moves the answer any more:

    score(v) = max over signs of |grad f(+-t v)| / |grad f(0)|,

t large, is then high for first-layer weights. The source gives the rule up because it needs incoherence that
is rare in practice.

**Adaptive radius** (sec. 4.4, after Table 4.5). The far Hessians of `far_space` may miss a unit that hardly
ever is unsaturated. Count the directions whose squares lie in their span; if they are not m_1, take another
radius. Tried are R, R/4, 4 R, R/16, ...; of the radii without the right count, the one with the clearest gap
is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.published.deep.layer_assignment import (
    LayerAssignment,
    far_space,
    first_layer_scores,
    split_layers,
)
from unweave.published.deep.options import PublishedDeepOptions
from unweave.published.deep.sources import DerivativeSource


@dataclass(frozen=True, eq=False)
class AdaptedAssignment:
    """An assignment and the radius that gave it."""

    assignment: LayerAssignment
    radius: float
    included: int
    """Directions whose squares lie in the span; m_1 where the rule succeeded."""
    tried: tuple[float, ...]
    """Radii in the order in which they were taken."""


def ray_scores(source: DerivativeSource, directions: Array, distance: float) -> Array:
    """max over signs of |grad f(+-t v)| / |grad f(0)| (n,) of unit rows ``directions`` (n, D), t =
    ``distance``.

    Cost: a gradient at 2 n + 1 points.
    """
    if not distance > 0:
        raise InvalidInput(
            f"distance must be positive. Got {distance} instead. Units saturate beyond 5 or so."
        )
    sites = np.concatenate(
        [distance * directions, -distance * directions, np.zeros((1, directions.shape[1]))]
    )
    lengths = np.linalg.norm(source.gradients(sites), axis=(1, 2))
    n = len(directions)
    return np.asarray(np.maximum(lengths[:n], lengths[n : 2 * n]) / lengths[-1])


def assign_by_rays(
    source: DerivativeSource,
    directions: Array,
    output_directions: Array,
    widths: Sequence[int],
    distance: float = 10.0,
) -> LayerAssignment:
    """The m_1 hidden ``directions`` (n, D) along which gradients last longest are the first layer."""
    scores = ray_scores(source, directions, distance)
    return split_layers(directions, scores, widths[0], output_directions)


def assign_with_adaptive_radius(
    source: DerivativeSource,
    directions: Array,
    output_directions: Array,
    widths: Sequence[int],
    rng: np.random.Generator,
    options: PublishedDeepOptions | None = None,
    level: float = 0.99,
    most_radii: int = 9,
) -> AdaptedAssignment:
    """[identification] Alg. 4.2 with the radius adapted until ``widths[0]`` directions score ``level``.

    ``level`` is the score ||P_1(v v^T)||_F above which a square counts as contained.
    """
    options = options or PublishedDeepOptions()
    best: AdaptedAssignment | None = None
    tried: list[float] = []
    for radius in _radii(options.far_radius, most_radii):
        tried.append(radius)
        try:
            space = far_space(
                source,
                directions.shape[1],
                widths[0],
                options.far_count(sum(widths)),
                rng,
                replace(options, far_radius=radius),
            )
        except InvalidInput:  # every unit is saturated there
            continue
        scores = first_layer_scores(space, directions)
        split = split_layers(directions, scores, widths[0], output_directions)
        included = int(np.sum(scores >= level))
        if included == widths[0]:
            return AdaptedAssignment(split, radius, included, tuple(tried))
        if best is None or split.gap > best.assignment.gap:
            best = AdaptedAssignment(split, radius, included, ())
    if best is None:
        raise InvalidInput(
            f"some radius must leave units unsaturated. None of {tried} did. Lower "
            f"far_radius, the first of them."
        )
    return replace(best, tried=tuple(tried))


def _radii(start: float, count: int) -> Iterator[float]:
    """R, R/4, 4 R, R/16, 16 R, ..."""
    for i in range(count):
        power = (i + 1) // 2
        yield start * 4.0 ** (-power if i % 2 else power)
