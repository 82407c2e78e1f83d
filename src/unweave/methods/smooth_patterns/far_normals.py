"""Hyperplanes of the first layer from answers in float32: normals from where far circles cross them.

Between steps such answers are exactly constant, as in float64. Differences are not: gradients at a crossing
leave directions to 1e-3 only. Far enough out, where biases do not matter, every crossing x of unit k has
u_k . x = 0 to the rounding of x, and a few more of them than there are inputs give u_k. A direction that two
units have made together has no crossings on its plane, and is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.far_field import Ask, CircleOptions, Unit, crossings_on_circle
from unweave.numerics.clock import check

COARSE_CIRCLES = CircleOptions(
    radius=600.0,
    fewest_grid=64,
    grid_per_coordinate=0,
    most_grid=8192,
    cell=1.0,
    tail=0.05,
    resolved=0.6,
    visible=2e-6,
    gradient_step=0.3,
    steep=1e9,  # no smaller step: its differences would drown
    clean=2e-2,
    feeble=1e-2,
    same_direction=2e-3,
    quiet=3,
)


@dataclass(frozen=True, kw_only=True)
class NormalOptions:
    """Circles far out, and what belongs to which unit on them."""

    circles: CircleOptions = field(default_factory=lambda: replace(COARSE_CIRCLES, radius=1e5, cell=2.0))
    most: int = 40
    """Circles at most."""
    spare: int = 3
    """Crossings per unit, beyond one per input."""
    near: float = 2e-2
    """Angle from a unit's plane within which a crossing may be its own, ..."""
    others: float = 4.0
    """... if it is so many times farther from every other plane."""
    flat: float = 1e-4
    """Angle from the plane of the normal that was found, beyond which a crossing is dropped."""
    lost: float = 1e-3
    """The same beyond which the unit is none."""
    strangers: float = 0.03
    """Share of crossings on no plane, above which a unit was not seen."""
    rounds: int = 4
    """Times that more circles are drawn nearby for such a unit."""


def far_normals(
    ask: Ask, units: list[Unit], rng: np.random.Generator, options: NormalOptions
) -> tuple[list[Unit], bool]:
    """Return those of ``units`` whose planes are crossed far out, with exact directions.

    Return also whether all crossings but a few belong to them.
    """
    rough = np.array([unit.direction for unit in units])
    wanted = rough.shape[1] + options.spare
    points: list[list[Array]] = [[] for _ in units]
    every: list[Array] = []
    for count in range(options.most):
        check()
        for crossing in crossings_on_circle(ask, rough.shape[1], rng, options.circles):
            x = crossing.point / np.linalg.norm(crossing.point)
            every.append(x)
            angles = np.abs(rough @ x)
            owner = int(angles.argmin())
            if (
                angles[owner] < options.near
                and (np.delete(angles, owner) > options.others * angles[owner]).all()
            ):
                points[owner].append(x)
        seen = sorted(map(len, points))
        # A direction that is none keeps the fewest crossings; it is not waited for.
        if seen[0] >= wanted or (count >= 2 * wanted and seen[len(seen) // 4] >= wanted):
            break
    found: list[Unit] = []
    for unit, crossed in zip(units, points, strict=True):
        normal, gap = _normal(np.array(crossed), options)
        known = (abs(float(normal @ other.direction)) > 1 - 1e-6 for other in found) if gap < 1 else ()
        if gap < options.lost and not any(known):
            turned = normal * np.sign(normal @ unit.direction)
            found.append(Unit(turned, unit.width, unit.crossings))
    if not found:
        return [], False
    angles = np.abs(np.array(every) @ np.array([unit.direction for unit in found]).T).min(axis=1)
    # Where two steps are too near to be told apart, their middle lies on neither plane.
    return found, bool(np.mean(angles > options.lost) < options.strangers)


def _normal(points: Array, options: NormalOptions) -> tuple[Array, float]:
    """Return the normal (d,) of a plane through the origin and most ``points`` (n, d), and their distance."""
    while points.ndim == 2 and len(points) >= points.shape[1]:
        normal = np.linalg.svd(points)[2][-1]
        angles = np.abs(points @ normal)
        if angles.max() < options.flat or len(points) == points.shape[1]:
            return np.asarray(normal), float(angles.max())
        points = np.delete(points, int(angles.argmax()), axis=0)
    return np.zeros(points.shape[-1]), np.inf
