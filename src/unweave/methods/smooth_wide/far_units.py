"""Units, one at a time, from the far field.

On a circle of radius R >> 1 every unit is saturated but near the one place, in half a turn, where it crosses
zero (`far_field`). There it is alone: a profile along its own direction shows norm, bias and kind, whatever
the number of units. Units that nearly coincide near the origin are apart there.

Softplus, gelu and swish are straight far out, not constant. Differences along a fixed direction are constant,
and steps of these show the same units. Their profiles are those of values, up to an affine function.

Where two units cross close together, each disturbs the other's profile. Their directions are known, so that
profiles are taken once more, far out on the unit's own hyperplane, where all others are saturated.

Cost: about 20 rows per unit and circle and 4 d + 20 per unit, twice as many for differences.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.shared.far_field import Ask, CircleOptions, Unit, units_on_circle
from unweave.methods.shared.profiles.profiles import fit_profiles_from, grid_subset
from unweave.networks.activations import Activation
from unweave.networks.mirrored_units import may_be_mirrored
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check
from unweave.search import GaveUp

# Farther than for layer after layer: profiles nearer by make up for what rounding does to directions.
_CIRCLES = CircleOptions(
    radius=3e5, fewest_grid=500, visible=1e-6, cell=1.0, apart=20.0, gradient_step=0.05, beyond=30.0
)


@dataclass(frozen=True, kw_only=True)
class FarUnitOptions:
    """Circles, and profiles of the units on them."""

    circles: CircleOptions = field(default_factory=lambda: _CIRCLES)
    most: int = 5
    """Circles drawn at most."""
    profile: tuple[float, ...] = tuple(np.linspace(-3.5, 3.5, 15))
    """Places of a profile, in widths of the unit's step."""
    reaches: tuple[float, ...] = (1.0, 0.1, 0.02)
    """Where profiles are taken: distances from the origin over those of the crossings."""
    clean: float = 1e-4
    """Misfit of a profile that no other unit disturbs."""
    elsewhere: int = 64
    """Places on the hyperplane of a unit whose profile was disturbed, at every reach: one is taken, ..."""
    saturated: float = 40.0
    """... the nearest at which all other units read so much, ..."""
    rounds: int = 3
    """... so many times: the better others are known, the better is the place."""
    complete: float = 1e-4
    """Misfit of the answers near by, relative to their spread, that leaves few units unseen."""
    news: float = 0.05
    """Share of new units on a circle, of those known, below which the others are weak."""
    difference: float = 1.0
    """Half the step of differences."""


def far_units(
    ask: Ask,
    inputs: Array,
    answers: Array,
    scale: float,
    activations: list[Activation],
    rng: np.random.Generator,
    options: FarUnitOptions,
) -> NetworkParameters | None:
    """Return units that explain answers (n, K) at ``inputs`` (n, d), rows of ``ask`` over ``scale``.

    ``activations`` all level off, or all become straight. None if the far field shows no units.
    """
    straight = any(may_be_mirrored(each) for each in activations)
    units: list[Unit] = []
    best, least = None, np.inf
    for _ in range(options.most):
        check()
        known = len(units)
        flat = _differences(ask, inputs.shape[1], options.difference, rng) if straight else ask
        try:
            units_on_circle(flat, inputs.shape[1], units, rng, options.circles)
        except GaveUp:
            break
        if len(units) == known:
            break
        model = _model(ask, units, scale, activations, rng, options)
        model, residual = _with_outgoing(model, inputs, answers)
        if residual < least:
            best, least = model, residual
        if residual < options.complete or len(units) - known < options.news * known:
            break
    return best


def _differences(ask: Ask, inputs: int, step: float, rng: np.random.Generator) -> Ask:
    """Return the change of the answers along a random direction, as a function of the place."""
    move = rng.standard_normal(inputs)
    move *= step / np.linalg.norm(move)

    def changes(points: Array) -> Array:
        ahead, behind = np.split(ask(np.concatenate([points + move, points - move])), 2)
        return np.asarray(ahead - behind)

    return changes


@dataclass(frozen=True, eq=False)
class _Profiles:
    """Answers along the directions of the units."""

    centres: Array
    """(m, d)"""
    directions: Array
    """(m, d)"""
    widths: Array
    """(m,)"""
    along: Array
    """(t,) places in widths from the centres"""
    values: Array
    """(t, m, K), of unit size for every unit"""

    @classmethod
    def of(
        cls, ask: Ask, centres: Array, directions: Array, widths: Array, options: FarUnitOptions
    ) -> _Profiles:
        along = np.array(options.profile)
        points = centres + along[:, None, None] * widths[:, None] * directions
        values = ask(points.reshape(-1, points.shape[2])).reshape(len(along), len(centres), -1)
        values = values - values.mean(axis=0)
        size = np.linalg.norm(values, axis=(0, 2), keepdims=True)
        return cls(centres, directions, widths, along, values / np.where(size > 0, size, 1.0))

    def fitted(self, subset: IntArray, activation: Activation) -> tuple[Array, Array, Array]:
        """Return weights (m, d), biases (m,) and misfits (m,), relative to the bent part of the profile."""
        places = np.repeat(self.along[:, None], len(self.centres), axis=1)
        profiles = fit_profiles_from(subset, places, self.values, activation, 0)
        weights = (profiles.scales / self.widths)[:, None] * self.directions
        biases = profiles.biases - np.einsum("md,md->m", weights, self.centres)
        return weights, biases, profiles.residuals


def _model(
    ask: Ask,
    units: list[Unit],
    scale: float,
    activations: list[Activation],
    rng: np.random.Generator,
    options: FarUnitOptions,
) -> NetworkParameters:
    """Return the units without outgoing weights, by profiles of the kind that fits best."""
    directions = np.array([unit.direction for unit in units])
    crossings = np.array([unit.crossings[0].point for unit in units])
    widths = np.array([unit.width for unit in units])
    sampled = [_Profiles.of(ask, reach * crossings, directions, widths, options) for reach in options.reaches]
    subset = grid_subset(len(options.profile), rng)
    fits = [(sampled[0].fitted(subset, each), each) for each in activations]
    activation = min(fits, key=lambda fit: float(np.median(fit[0][2])))[1]
    weights, biases, misfits = sampled[0].fitted(subset, activation)
    for nearer in sampled[1:]:
        # The nearer, the less an error of the direction matters, and the likelier another unit is at work.
        near = nearer.fitted(subset, activation)
        better = near[2] <= np.maximum(options.clean, misfits)
        weights, biases = np.where(better[:, None], near[0], weights), np.where(better, near[1], biases)
        misfits = np.where(better, near[2], misfits)
    radius = float(np.median(np.linalg.norm(crossings, axis=1)))
    for _ in range(options.rounds):
        again = np.flatnonzero(misfits > options.clean)
        if not len(again):
            break
        places = [_apart(unit, weights, biases, radius, rng, options) for unit in again.tolist()]
        profiles = _Profiles.of(ask, np.stack(places), directions[again], widths[again], options)
        found, shifts, left = profiles.fitted(subset, activation)
        better = left < misfits[again]
        gained = again[better]
        weights[gained], biases[gained], misfits[gained] = found[better], shifts[better], left[better]
    inputs, outputs = crossings.shape[1], sampled[0].values.shape[2]
    return NetworkParameters.shallow(
        activation,
        scale * weights.T,
        biases,
        np.zeros((len(units), outputs)),
        np.zeros(outputs),
        np.zeros((inputs, outputs)) if may_be_mirrored(activation) else None,
    )


def _apart(
    unit: int, weights: Array, biases: Array, radius: float, rng: np.random.Generator, options: FarUnitOptions
) -> Array:
    """Return a point (d,) of the unit's hyperplane at which all other units are saturated."""
    normal = weights[unit]
    moves = rng.standard_normal((len(options.reaches), options.elsewhere, len(normal)))
    moves *= radius * np.array(options.reaches)[:, None, None] / np.linalg.norm(moves, axis=2, keepdims=True)
    points = moves.reshape(-1, len(normal))
    points -= ((points @ normal + biases[unit]) / (normal @ normal))[:, None] * normal
    room = np.abs(np.delete(points @ weights.T + biases, unit, axis=1)).min(axis=1, initial=np.inf)
    enough = np.flatnonzero(room >= options.saturated)
    if not len(enough):
        return np.asarray(points[int(room.argmax())])
    return np.asarray(points[enough[int(np.linalg.norm(points[enough], axis=1).argmin())]])


def _with_outgoing(
    model: NetworkParameters, inputs: Array, answers: Array
) -> tuple[NetworkParameters, float]:
    """Fit the output layer; return also the misfit."""
    features = model.activation(inputs @ model.weights[0] + model.biases[0])
    ones, width = np.ones((len(inputs), 1)), model.width
    design = np.hstack([features, ones] if model.skip is None else [features, inputs, ones])
    solution: Array = np.asarray(np.linalg.lstsq(design, answers, rcond=None)[0], np.float64)
    fitted = replace(
        model,
        weights=(model.weights[0], solution[:width]),
        biases=(model.biases[0], solution[-1]),
        skip=None if model.skip is None else solution[width:-1],
    )
    return fitted, float(np.sqrt(np.mean((answers - design @ solution) ** 2)))
