"""Norms of first-layer units from the shape of their steps.

Along its own direction u a far-field crossing shows f(c + t u) = F_c(g(a (u.c + t) + b)): a smooth outer
function F_c, different at every crossing, of one sigmoid with the unit's norm a and bias b. F_c is
replaced by a polynomial, eliminated by least squares, and (a, b) fitted to all crossings of the unit; all
units at once.

The norm comes out to 1e-4 or better. The bias does not: for tanh, g(z + s) is a rational function of g(z),
which a smooth F_c absorbs. The bias found here is only a start for `first_biases`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.far_field import Unit
from unweave.methods.smooth_deep.known_layers import Ask
from unweave.methods.smooth_deep.options import ProfileOptions
from unweave.networks.saturation import Saturating
from unweave.numerics.clock import check
from unweave.numerics.least_squares import Steps, minimise
from unweave.numerics.least_squares.pair_steps import pair_steps


@dataclass(frozen=True, eq=False)
class StepProfiles:
    """What the steps of the units show; all arrays (m,)."""

    norms: Array
    """Positive: the units' directions are turned to match."""
    biases: Array
    signs: Array
    """-1 where a unit's direction is to be turned round."""
    residuals: Array
    """Relative misfit of the polynomial profiles."""

    def where_better_than(self, other: StepProfiles) -> StepProfiles:
        """Return, unit by unit, the profile that fits better."""
        better = self.residuals < other.residuals
        return StepProfiles(
            norms=np.where(better, self.norms, other.norms),
            biases=np.where(better, self.biases, other.biases),
            signs=np.where(better, self.signs, other.signs),
            residuals=np.where(better, self.residuals, other.residuals),
        )

    @property
    def typical_residual(self) -> float:
        """Median misfit: large if the activation is another."""
        return float(np.median(self.residuals))


@dataclass(frozen=True, eq=False)
class _Profiles:
    """Samples of the steps: units u, crossings s, samples t, outputs K."""

    positions: Array
    """(u, s, t) along the unit's direction, from its first crossing."""
    values: Array
    """(u, s, t, K) centred, of unit norm per profile; zero where a profile does not count."""

    def keeping(self, units: IntArray, crossings: BoolArray) -> _Profiles:
        """Return some of the units, with some of the crossings."""
        values = self.values[units] * crossings[None, :, None, None]
        return replace(self, positions=self.positions[units], values=values)


def fit_step_profiles(
    ask: Ask, units: list[Unit], g: Saturating, options: ProfileOptions | None = None
) -> StepProfiles:
    """Fit norms and approximate biases of ``units``: about 100 rows each."""
    options = options or ProfileOptions()
    profiles, offsets = _sampled(ask, units, options)
    suggested = np.array([2 / unit.width for unit in units])
    norms, shifts, residuals = _fitted(profiles, suggested, g, options, fine=False)
    # Another unit may be at work near some of the crossings: do without them.
    doubtful = np.flatnonzero(residuals > options.clean_misfit).astype(np.int64)
    subsets = itertools.product((False, True), repeat=options.crossings_per_unit)
    for kept in [kept for kept in subsets if any(kept) and not all(kept)] if len(doubtful) else ():
        fewer = profiles.keeping(doubtful, np.array(kept))
        again = _fitted(fewer, suggested[doubtful], g, options, fine=True)
        better = again[2] < options.much_better * residuals[doubtful]
        for old, new in zip((norms, shifts, residuals), again, strict=True):
            old[doubtful[better]] = new[better]
    signs = np.where(norms < 0, -1.0, 1.0)
    return StepProfiles(np.abs(norms), shifts - norms * offsets, signs, residuals)


def _sampled(ask: Ask, units: list[Unit], options: ProfileOptions) -> tuple[_Profiles, Array]:
    """Ask all profiles in one batch of queries; return also the place (u,) of each unit's first crossing."""
    crossings = options.crossings_per_unit
    directions = np.array([unit.direction for unit in units])
    # Dense in the middle, so that a width that is off by a factor of a few does no harm.
    shape = np.sinh(np.linspace(-1, 1, options.samples_per_crossing) * np.arcsinh(options.half_width))
    times = np.array([unit.width for unit in units])[:, None] / 2 * shape
    # A unit seen less often repeats its crossings, which then do not count.
    strongest = [unit.strongest(crossings) for unit in units]
    counts = [len(points) for points in strongest]
    centres = np.array([[points[i % len(points)] for i in range(crossings)] for points in strongest])
    points = centres[:, :, None, :] + times[:, None, :, None] * directions[:, None, None, :]
    answers = ask(points.reshape(-1, points.shape[-1])).reshape(*points.shape[:3], -1)
    values = answers - answers.mean(axis=2, keepdims=True)
    norms = np.linalg.norm(values, axis=(2, 3), keepdims=True)
    present = np.arange(crossings) < np.array(counts)[:, None]
    values = values / np.where(norms > 0, norms, 1.0) * present[:, :, None, None]
    places = np.einsum("usd,ud->us", centres, directions)
    positions = (places - places[:, :1])[:, :, None] + times[:, None, :]  # relative, for accuracy
    return _Profiles(positions, values), places[:, 0]


def _fitted(
    profiles: _Profiles, suggested: Array, g: Saturating, options: ProfileOptions, *, fine: bool
) -> tuple[Array, Array, Array]:
    """Fit the sigmoid common to each unit's profiles; return norms, shifts and misfits (u,).

    The start is the best sigmoid on a grid around the ``suggested`` norms (u,).
    """
    parameters = _best_on_grid(profiles, suggested, g, options, fine)
    counted = np.any(profiles.values, axis=(2, 3)).sum(axis=1)
    size = np.zeros(len(parameters))
    for degree in options.degrees:
        steps = _ProfileSteps(profiles, degree, g, options.parameter_difference)
        end = minimise(steps, steps.at(parameters), options.schedule).point
        parameters, size = end.parameters, end.size
    misfits = np.where(counted > 0, np.sqrt(size / np.maximum(counted, 1)), np.inf)
    return parameters[:, 0], parameters[:, 1], misfits


@dataclass(frozen=True, eq=False)
class _StepPoint:
    """All units at once."""

    parameters: Array  # norm and shift, (u, 2)
    residual: Array  # (u, s t K)
    size: Array  # squared misfit, (u,)


class _ProfileSteps(Steps[_StepPoint]):
    """Polynomials of one degree in the sigmoid are eliminated; derivatives are differences."""

    def __init__(self, profiles: _Profiles, degree: int, g: Saturating, difference: float) -> None:
        self._profiles, self._degree, self._g, self._difference = profiles, degree, g, difference

    def at(self, parameters: Array) -> _StepPoint:
        residual = self._misfits(parameters)
        return _StepPoint(parameters, residual, np.einsum("ur,ur->u", residual, residual))

    def trial(self, point: _StepPoint, damping: float | Array) -> _StepPoint:
        parameters, residual = point.parameters, point.residual
        moves = []
        for index in range(2):
            step = np.zeros_like(parameters)
            step[:, index] = self._difference * np.maximum(1.0, np.abs(parameters[:, index]))
            moves.append((self._misfits(parameters + step) - residual) / step[:, index, None])
        columns = np.stack(moves, axis=2)
        gram = np.swapaxes(columns, 1, 2) @ columns
        gram[:, [0, 1], [0, 1]] += gram[:, [0, 1], [0, 1]] * np.asarray(damping)[:, None]
        gradient = np.einsum("urp,ur->up", columns, residual)
        normal = gram[:, 0, 0], gram[:, 0, 1], gram[:, 1, 1]
        steps = pair_steps(normal, (gradient[:, 0], gradient[:, 1]), 0.0)
        return self.at(parameters - np.stack(steps, axis=1))

    def accepted(self, better: bool | BoolArray, trial: _StepPoint, point: _StepPoint) -> _StepPoint:
        rows = np.asarray(better)[:, None]
        return _StepPoint(
            np.where(rows, trial.parameters, point.parameters),
            np.where(rows, trial.residual, point.residual),
            np.where(better, trial.size, point.size),
        )

    def _misfits(self, parameters: Array) -> Array:
        profiles = self._profiles
        z = parameters[:, 0, None, None] * profiles.positions + parameters[:, 1, None, None]
        basis = np.linalg.qr(np.polynomial.chebyshev.chebvander(self._g.values(z), self._degree))[0]
        outside = profiles.values - basis @ (np.swapaxes(basis, 2, 3) @ profiles.values)
        return np.asarray(outside.reshape(len(parameters), -1))


def _best_on_grid(
    profiles: _Profiles, suggested: Array, g: Saturating, options: ProfileOptions, fine: bool
) -> Array:
    """Return norm and shift (u, 2) of the best sigmoid on a grid, or on every other point of it."""
    best, parameters = np.full(len(suggested), np.inf), np.zeros((len(suggested), 2))
    each, terms = 1 if fine else 2, options.grid_degree + 1
    for factor in np.geomspace(*options.norm_factors)[::each]:
        check()
        for shift in np.linspace(*options.shifts)[::each]:
            z = (factor * suggested)[:, None, None] * profiles.positions + shift
            y = g.values(z)
            powers = np.stack([y**degree for degree in range(terms)], axis=3)
            powers /= np.linalg.norm(powers, axis=2, keepdims=True) + 1e-300
            turned = np.swapaxes(powers, 2, 3)
            gram = turned @ powers + 1e-10 * np.eye(terms)
            moments = turned @ profiles.values
            explained = np.einsum("uspk,uspk->u", moments, np.linalg.solve(gram, moments))
            better = -explained < best
            best[better] = -explained[better]
            parameters[better, 0], parameters[better, 1] = factor * suggested[better], shift
    return parameters
