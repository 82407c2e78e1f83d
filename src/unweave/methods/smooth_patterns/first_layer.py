"""Norms and biases of the first layer, the layers behind it being known.

Where a far point crosses the hyperplane of unit k alone, the answers are F(s with s_k -> g(a_k t + b_k)) with
F and s known, t the place along its direction: two unknowns, and no freedom besides. Places are chosen where
F says that the step is high and every other unit is far from switching, as near to the origin as that allows:
an error of the direction counts in proportion to the distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.shared.far_field import Ask
from unweave.methods.smooth_patterns.directions import Hyperplanes
from unweave.networks.activations import Activation
from unweave.networks.links import Link
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check
from unweave.numerics.least_squares.pair_steps import fit_pairs


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """Where the steps of first-layer units are read."""

    radii: tuple[float, ...] = (100.0, 1e3, 1e4)
    """Standard deviations of places, in widths of the widest step; the first with enough of them is taken."""
    drawn: int = 200
    """Places drawn per unit; the one with the highest step is taken."""
    enough: int = 10
    """Places that no other unit disturbs, of those drawn."""
    clear: float = 25.0
    """Distance of the other hyperplanes, in widths."""
    samples: int = 13
    """Rows of a profile."""
    half_width: float = 3.0
    """Of a profile, in widths of the step."""
    norms: tuple[float, ...] = (0.2, 0.6, 1.0, 1.6)
    """Norms to begin with, over what the width suggests."""
    shifts: tuple[float, ...] = (-0.8, 0.0, 0.8)
    """Pre-activations at the middle of the profile to begin with."""
    difference: float = 1e-6
    """Step of the derivatives by norm and shift."""
    clean: float = 1e-3
    """Relative misfit above which a unit's profile is read again elsewhere."""
    rounds: int = 6
    """Profiles that are read per unit at most."""
    resolved: float = 2.0
    """Largest change of the pre-activation from one row of a profile to the next."""
    closer: float = 5.0
    """Factor by which a profile is made narrower where that is exceeded."""


@dataclass(frozen=True, eq=False)
class FirstLayer:
    """z = W^T x + b, and the relative misfit of each unit's profile."""

    weights: Array
    """(D, m1)"""
    biases: Array
    misfits: Array


def first_layer(
    ask: Ask,
    planes: Hyperplanes,
    kind: Activation,
    behind: NetworkParameters,
    link: Link,
    rng: np.random.Generator,
    options: ProfileOptions,
) -> FirstLayer:
    """Find norm and bias of every unit of this ``kind``; ``behind`` is the network behind the signs."""
    count, inputs = planes.directions.shape
    norms, shifts, misfits = np.ones(count), np.zeros(count), np.full(count, np.inf)
    along = np.linspace(-options.half_width, options.half_width, options.samples)
    for _ in range(options.rounds):
        check()
        units = np.flatnonzero(~(misfits < options.clean)).astype(np.int64)
        if not len(units):
            break
        places = np.array([_place(planes, behind, int(unit), rng, options) for unit in units])
        widths, directions = planes.widths[units], planes.directions[units]
        times = widths[:, None] * along
        points = places[:, None] + times[:, :, None] * directions[:, None]
        answers = ask(points.reshape(-1, inputs)).reshape(len(units), options.samples, -1)
        signs, _ = planes.signs(places, 0.0)
        profiles = _Profiles(units, times, answers, signs, kind, behind, link)
        a, b, misfit = _fitted(profiles, 2 / widths, options)
        at = np.einsum("ud,ud->u", places, directions)
        # Between two samples any steep unit fits: look closer, around where it switches.
        coarse = a * widths * (along[1] - along[0]) > options.resolved
        misfit = np.where(coarse, np.inf, misfit)
        planes = planes.moved(units[coarse], (at - b / a)[coarse], widths[coarse] / options.closer)
        better = misfit < misfits[units]
        chosen = units[better]
        norms[chosen], misfits[chosen], shifts[chosen] = a[better], misfit[better], (b - a * at)[better]
    return FirstLayer((planes.directions * norms[:, None]).T, shifts, misfits)


def _place(
    planes: Hyperplanes,
    behind: NetworkParameters,
    unit: int,
    rng: np.random.Generator,
    options: ProfileOptions,
) -> Array:
    """Return a point (D,) on the hyperplane of ``unit`` where its step is high and it is alone."""
    direction, inputs = planes.directions[unit], planes.directions.shape[1]
    points, signs = np.zeros((1, inputs)), np.zeros((1, planes.count))
    for radius in options.radii:
        scale = radius * float(planes.widths.max())
        drawn = scale * rng.standard_normal((options.drawn, inputs))
        drawn += (planes.positions[unit] - drawn @ direction)[:, None] * direction
        patterns, clear = planes.signs(drawn, options.clear, but=unit)
        if clear.any() or radius == options.radii[-1]:
            points, signs = (drawn[clear], patterns[clear]) if clear.any() else (drawn, patterns)
        if clear.sum() >= options.enough:
            break
    heights = _sided(behind, signs, unit, 1.0) - _sided(behind, signs, unit, -1.0)
    return np.asarray(points[int(np.abs(heights).max(axis=1).argmax())])


def _sided(behind: NetworkParameters, signs: Array, unit: int, side: float) -> Array:
    moved = signs.copy()
    moved[:, unit] = side
    return behind.values(moved)


@dataclass(frozen=True, eq=False)
class _Profiles:
    """Answers (u, t, K) at places ``along`` (u, t) of units (u,), the others at ``signs`` (u, m1)."""

    units: IntArray
    along: Array
    answers: Array
    signs: Array
    kind: Activation
    behind: NetworkParameters
    link: Link

    def model(self, a: Array, b: Array) -> Array:
        """Return what units of norm ``a`` (u,) and shift ``b`` (u,) would answer."""
        first = self.behind.weights[0]
        others = self.signs.copy()
        others[np.arange(len(self.units)), self.units] = 0.0
        z = others @ first + self.behind.biases[0]
        state = self.kind(a[:, None] * self.along + b[:, None])
        values = self.behind.activation(z[:, None] + state[:, :, None] * first[self.units][:, None])
        rest = (self.behind.weights[1:], self.behind.biases[1:], self.behind.activations[1:])
        for weights, biases, function in zip(*rest, strict=True):
            values = values @ weights + biases
            values = values if function is None else function(values)
        return self.link.apply(values.reshape(-1, values.shape[2])).reshape(values.shape)


def _fitted(profiles: _Profiles, suggested: Array, options: ProfileOptions) -> tuple[Array, Array, Array]:
    """Return norms, shifts and relative misfits (u,), the best of all starts."""
    centred = profiles.answers - profiles.answers.mean(axis=1, keepdims=True)
    total = np.maximum((centred**2).sum(axis=(1, 2)), np.finfo(np.float64).tiny)

    def residuals(a: Array, b: Array) -> Array:
        return (profiles.answers - profiles.model(a, b)).reshape(len(a), -1)

    starts = (
        (norm * suggested, np.full(len(suggested), shift))
        for norm in options.norms
        for shift in options.shifts
    )
    best = fit_pairs(residuals, starts, options.difference)
    return best.a, best.b, np.sqrt(best.size / total)
