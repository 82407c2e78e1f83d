"""Find out how the next layer reads a unit that was missing, from rows beside its surface.

Let the tower explain the answers on one side of the unit's surface. At a point of it, with z the unit and n
its normal there, the second difference over p - t n, p, p + t n is

    t |grad z| (1 - slope) sum_k D_k(p) c_k,

where c_k is the weight with which unit k of the next layer reads it, and D_k the derivative of the answers by
what that unit makes of its inputs. Three rows at each of some points are linear equations for all c_k at
once, and the side on which the tower is right is the one where the unit is off. Behind a leaky unit it is
right on neither side, and nothing is grafted.

Behind a last layer with open signs the answers read the unit beside |z_k|, too: one number more per output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.methods.relu_layers.layer_units import Unit
from unweave.methods.relu_layers.tower import Tower
from unweave.methods.relu_layers.trace import Tracer
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.output_fit import OutputFit
from unweave.methods.shared.surfaces.probe import Probe
from unweave.methods.shared.surfaces.surface import Surface


@dataclass(frozen=True, kw_only=True)
class GraftOptions:
    """Where rows are asked, and which equations count."""

    places_per_reader: float = 3.0
    """Points of the surface that are asked, for each number sought."""
    candidates: int = 6
    """Points that are looked at for each of them; the others lie too near other surfaces."""
    least_room: float = 1e-3
    """Distance of a point from all other surfaces, relative to 1 + |x|, at least."""
    step: float = 0.1
    """Step across the surface, relative to that distance: beyond it the unit itself moves other surfaces."""
    right: float = 1e-5
    """Misfit up to which the tower is right, relative to the typical answer at that distance ..."""
    rights: tuple[float, float] = (10.0, 1e-9)
    """... but no more than so many times the median of all rows, and so much."""
    wrong: float = 30.0
    """The same beyond which it is wrong, relative to ``right``."""
    one_side: float = 0.8
    """Share of the points at which the unit must be off on the same side."""
    least_votes: int = 4
    """Points that tell the side, at least."""
    spare: int = 5
    """Equations beyond the numbers that they determine."""
    rank: float = 1e-6
    """Singular values of the equations, relative to the largest one, below which nothing is determined."""
    misfit: float = 1e-3
    """Relative misfit of the equations that errors of the tower may cause."""
    open_share: float = 1e-3
    """Share of a number's unit vector in the null space above which it is open."""


@dataclass(frozen=True, eq=False)
class Graft:
    """A unit's sign, and the weights with which the next layer reads it."""

    sign: float
    units: Array
    """(m,) of the next layer's units"""
    open_units: BoolArray
    """(m,) which of them nothing shows"""
    channels: Array
    """(a,) of its channels"""


def graft(
    probe: Probe,
    tower: Tower,
    tracer: Tracer,
    fit: OutputFit,
    layer: int,
    unit: Unit,
    rng: np.random.Generator,
    options: GraftOptions,
) -> Graft | None:
    """Return how the layer behind ``layer``, counted from one, reads a new unit; None if rows disagree."""
    lifted, reader = tower.unsigned_sight(len(tower.layers)).known, tower.layers[layer]
    signed = lifted.stages[layer].signed
    width, passed = reader.width, len(reader.channels) if signed else 0
    wanted = int(options.places_per_reader * (width + passed + 1))
    points, normals, rooms = _places(tower, layer, tracer, unit, wanted, rng, options)
    if len(points) < options.least_votes:
        return None
    lengths = np.linalg.norm(normals, axis=1)
    steps = options.step * rooms
    moves = (steps / lengths)[:, None] * normals
    rows = np.concatenate([points, points + moves, points - moves])
    errors = probe(rows) - lifted.values(rows) @ fit.solution
    middle, after, before = errors.reshape(3, len(points), -1)
    typical = float(np.sqrt(np.mean(probe.asked()[1] ** 2)))
    times, least = options.rights
    right = min(options.right, max(least, times * float(np.median(fit.misfits))))
    right = right * typical * (1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1]))
    sides = np.stack([np.abs(after).max(axis=1), np.abs(before).max(axis=1)])
    clear = (sides.max(axis=0) > options.wrong * right) & (sides.min(axis=0) <= right)
    on = sides[0] > sides[1]
    share = float(on[clear].mean()) if clear.any() else 0.5
    if clear.sum() < options.least_votes or max(share, 1 - share) < options.one_side:
        return None
    sign = 1.0 if share > 0.5 else -1.0
    kept = (sides.min(axis=0) <= right) & (on == (share > 0.5))
    jumps = (after + before - 2 * middle)[kept] / (steps * lengths * (1 - tower.slope))[kept, None]
    patterns = np.where(lifted.preactivations(points[kept]) >= 0, 1.0, -1.0)
    system = _system(lifted, patterns, fit.solution, layer, signed)
    return _solved(system, jumps.reshape(-1), width, passed, sign, options)


def _places(
    tower: Tower,
    layer: int,
    tracer: Tracer,
    unit: Unit,
    wanted: int,
    rng: np.random.Generator,
    options: GraftOptions,
) -> tuple[Array, Array, Array]:
    """Return points (n, d) of a unit's surface clear of others, gradients (n, d), and the room (n,) there."""
    known, lifted = tower.below(layer - 1), tower.unsigned_sight(len(tower.layers)).known
    seen = np.stack(unit.places)
    around = seen[rng.integers(len(seen), size=options.candidates * wanted)]
    points = tracer.zeros(known, unit.alpha, around)
    if len(points):
        null = np.column_stack([unit.alpha, unit.open])
        points = points[Surface.spanned(known, null, [], tower.options.surface).hold(points)]
    sizes = 1 + np.abs(points).max(axis=1, initial=0.0)
    heights = lifted.preactivations(points)
    patterns = np.where(heights >= 0, 1.0, -1.0)
    lengths = np.linalg.norm(lifted.jacobians(patterns)[1], axis=2)
    distances = np.divide(np.abs(heights), lengths, out=np.full_like(heights, np.inf), where=lengths > 0)
    rooms = np.minimum(distances.min(axis=1), sizes)
    clear = np.flatnonzero(rooms > options.least_room * sizes)[:wanted]
    gradients = known.gradients(patterns[clear, : known.n_units], unit.alpha)
    return points[clear], gradients, rooms[clear]


def _system(lifted: LiftedLayers, patterns: Array, solution: Array, layer: int, signed: bool) -> Array:
    """Return equations (n K, q) of the weights of units, then of channels or of one number per output."""
    stage, outputs = lifted.stages[layer], solution.shape[1]
    start = sum(each.width for each in lifted.stages[:layer])
    slopes = lifted.slopes(stage, patterns[:, start : start + stage.width])
    columns = []
    for output in range(outputs):
        back = lifted.derivatives(patterns, solution[:, output], layer + 1)
        rest = back[:, stage.width : -1] if signed else np.tile(np.eye(outputs)[output], (len(back), 1))
        columns.append(np.hstack([slopes * back[:, : stage.width], rest]))
    return np.stack(columns, axis=1).reshape(len(patterns) * outputs, -1)


def _solved(
    system: Array, right: Array, width: int, passed: int, sign: float, options: GraftOptions
) -> Graft | None:
    """Solve the equations; None if they do not fit together, or are too few to tell."""
    sizes = np.linalg.norm(system, axis=0)
    scale = np.where(sizes > 0, sizes, 1.0)
    left, values, ways = np.linalg.svd(system / scale, full_matrices=False)
    rank = int((values > options.rank * values[0]).sum()) if len(values) else 0
    if rank == 0 or len(right) < rank + options.spare:
        return None
    inside = left[:, :rank].T @ right
    if np.linalg.norm(right - left[:, :rank] @ inside) > options.misfit * np.linalg.norm(right):
        return None
    found = (ways[:rank].T @ (inside / values[:rank])) / scale
    shown = (ways[:rank] ** 2).sum(axis=0)
    is_open = 1 - shown[:width] > options.open_share**2
    return Graft(sign, found[:width], is_open, found[width : width + passed])
