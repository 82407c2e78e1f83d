"""One unit at a time from a handful of sites: scale, bias and outgoing weights from two derivatives.

Where both second and third derivatives of a sum of units are known, least squares on powers of the
directions u_k gives two samples per site and unit of the same function of one variable,

    c2_k(t) = a_k s_k^2 g''(s_k t + b_k),        c3_k(t) = a_k s_k^3 g'''(s_k t + b_k),      t = u_k . x.

First and second derivatives do the same where there are no more units than directions, and no skip.

The amplitude a_k (one per output) is projected out. A grid gives the best b at every scale s; damped
Gauss-Newton on (log s, b) goes on from there, for all units and starts at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.profiles.profiles import (
    PROFILE_SCHEDULE,
    Profiles,
    best_amplitudes,
    explained_part,
)
from unweave.networks.activations import Activation
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Steps, minimise
from unweave.numerics.least_squares.pair_steps import pair_steps
from unweave.subspace.symmetric import rank_one_coefficients

_JET_DIFFERENCE = 1e-5  # step in log s and b of the Jacobian's differences: half the digits of float64


@dataclass(frozen=True, kw_only=True)
class JetProfileOptions:
    """How profiles are fitted to second and third derivatives."""

    scales: tuple[float, float] = (0.05, 8.0)
    """Smallest and largest s = |w_k| of the grid, in normalised inputs."""
    scale_count: int = 24
    """Scales of the grid, spaced geometrically; the best point of every scale is refined."""
    grid_sites: int = 8
    """Sites that the grid looks at; all of them count in the end."""
    centers_per_width: float = 8.0
    """Grid points across 1/s: near an inflection the ratio of both derivatives is steep."""
    extent: float = 6.0
    """Pre-activation beyond which a site sees only the far tail of a unit."""
    first_steps: int = 8
    """Refinement steps for the best point of every scale."""
    candidates: int = 6
    """Points per unit that go on after the first steps."""
    last_steps: int = 30
    """Refinement steps for these."""
    longest_step: tuple[float, float] = (0.5, 2.0)
    """Longest step of a refinement, in log s and b."""
    schedule: LevenbergMarquardtOptions = PROFILE_SCHEDULE
    """Damping of a refinement."""
    voters: int = 64
    """Units on which activations are compared."""
    poor_fit: float = 1e-3
    """Relative misfit of a refined profile above which it is fitted again from the grid, ..."""
    poor_fit_ratio: float = 30.0
    """... if it is also this many times the median misfit."""
    further_voters: int = 12
    """Units on which further activations are fitted, where none of the usual ones fits."""


@dataclass(frozen=True, eq=False)
class JetSamples:
    """Samples of every unit's profile: projections (n, m), and per order of derivative (n, m, K)."""

    projections: Array
    derivatives: dict[int, Array]

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders that were sampled."""
        return tuple(self.derivatives)

    def only(self, units: IntArray) -> JetSamples:
        """Keep the samples of some of the units."""
        kept = {order: samples[:, units] for order, samples in self.derivatives.items()}
        return JetSamples(self.projections[:, units], kept)

    def first(self, sites: int) -> JetSamples:
        """Keep the first sites."""
        kept = {order: samples[:sites] for order, samples in self.derivatives.items()}
        return JetSamples(self.projections[:sites], kept)

    def mirrored(self) -> JetSamples:
        """Return the samples along the opposite directions."""
        turned = {order: (-1) ** order * samples for order, samples in self.derivatives.items()}
        return JetSamples(-self.projections, turned)

    def stacked(self) -> Array:
        """Return one order over the other, (2n, m, K)."""
        return np.concatenate(list(self.derivatives.values()))


def jet_samples(directions: Array, sites: Array, hessians: Array, thirds: Array) -> JetSamples:
    """Sample the profiles along unit rows u (m, d).

    Hessians (n, K, p) and third derivatives (n, K, d, p) are those at sites (n, d).

    T(., ., e_j) has the coefficient c3_k u_kj on u_k u_k^T; |u_k| = 1 gives c3_k back.
    """
    n, outputs, d, size = thirds.shape
    second = rank_one_coefficients(directions, hessians)
    slices = rank_one_coefficients(directions, thirds.reshape(n, outputs * d, size))
    third = np.einsum("nmkj,mj->nmk", slices.reshape(n, len(directions), outputs, d), directions)
    return JetSamples(sites @ directions.T, {2: second, 3: third})


def curvature_samples(directions: Array, sites: Array, gradients: Array, hessians: Array) -> JetSamples:
    """Sample the profiles along independent unit rows (m, d) from gradients (n, K, d) and Hessians."""
    first = (gradients @ np.linalg.pinv(directions)).transpose(0, 2, 1)
    return JetSamples(sites @ directions.T, {1: first, 2: rank_one_coefficients(directions, hessians)})


@dataclass(frozen=True, eq=False)
class ProfileValleys:
    """Minima of every unit's misfit, (m, candidates), the best first."""

    scales: Array
    """s; negative where a unit points the other way."""
    biases: Array
    misfits: Array
    """Squared."""

    def best(self, samples: JetSamples, activation: Activation) -> Profiles:
        """Return the first of every unit, with the outgoing weights that fit the samples."""
        scales, biases = self.scales[:, :1], self.biases[:, :1]
        data = samples.stacked()
        shape = _shape(scales, biases, samples.projections, samples.orders, activation)
        amplitude = best_amplitudes(shape, data)[:, 0]
        size = np.maximum(np.einsum("nmk,nmk->m", data, data), np.finfo(np.float64).tiny)
        left = np.sqrt(np.maximum(self.misfits[:, 0], 0.0) / size)
        return Profiles(scales[:, 0], biases[:, 0], amplitude, left)


def fit_jet_profiles(samples: JetSamples, activation: Activation, options: JetProfileOptions) -> Profiles:
    """Fit the best (s, b, a) of every unit."""
    return profile_valleys(samples, activation, options).best(samples, activation)


def refit_jet_profiles(
    samples: JetSamples, activation: Activation, options: JetProfileOptions, start: Profiles
) -> Profiles:
    """Refine the profiles ``start`` of the same units; fit from the grid those that do not fit."""
    signs = np.where(start.scales < 0, -1.0, 1.0)
    turned = JetSamples(
        samples.projections * signs,
        {order: each * (signs**order)[:, None] for order, each in samples.derivatives.items()},
    )
    steps = _JetSteps(turned.projections, turned.stacked(), turned.orders, activation, options)
    scales, biases, misfits = steps.refine(
        np.abs(start.scales)[:, None], start.biases[:, None], options.last_steps
    )
    refined = ProfileValleys(signs[:, None] * scales, biases, misfits).best(samples, activation)
    misfit = max(options.poor_fit, options.poor_fit_ratio * float(np.median(refined.residuals)))
    poor = np.flatnonzero(refined.residuals > misfit)
    if len(poor) == 0:
        return refined
    return refined.updated(poor, fit_jet_profiles(samples.only(poor), activation, options))


def profile_valleys(
    samples: JetSamples, activation: Activation, options: JetProfileOptions
) -> ProfileValleys:
    """Find the minima of every unit's misfit.

    A slope tells which way a unit points, unless it is odd: s < 0 is the way opposite to its direction. From
    the second derivative on, units with a reflection look the same from both sides.
    """
    found = [_valleys(samples, activation, options)]
    if activation.has_sides or (1 in samples.orders and not activation.is_odd):
        other = _valleys(samples.mirrored(), activation, options)
        found.append(replace(other, scales=-other.scales))
    scales = np.concatenate([each.scales for each in found], axis=1)
    biases = np.concatenate([each.biases for each in found], axis=1)
    misfits = np.concatenate([each.misfits for each in found], axis=1)
    order = np.argsort(misfits, axis=1, kind="stable")
    return ProfileValleys(*(np.take_along_axis(each, order, 1) for each in (scales, biases, misfits)))


def _valleys(samples: JetSamples, activation: Activation, options: JetProfileOptions) -> ProfileValleys:
    """Find the minima of units that point along their directions, in no order."""
    data = samples.stacked()
    steps = _JetSteps(samples.projections, data, samples.orders, activation, options)
    few = samples.first(options.grid_sites)
    scales, biases = _grid_search(few.projections, few.stacked(), samples.orders, activation, options)
    scales, biases, misfit = steps.refine(scales, biases, options.first_steps)
    kept = np.argsort(misfit, axis=1)[:, : options.candidates]
    scales, biases = np.take_along_axis(scales, kept, 1), np.take_along_axis(biases, kept, 1)
    return ProfileValleys(*steps.refine(scales, biases, options.last_steps))


def _shape(s: Array, b: Array, t: Array, orders: tuple[int, ...], activation: Activation) -> Array:
    """Return (2n, m, candidates): s^p g^(p) of two orders p, for s, b (m, candidates), t (n, m)."""
    jet = activation.jet(s * t[:, :, None] + b, max(orders))
    return np.concatenate([s**order * jet[order] for order in orders])


def _grid_search(
    t: Array, data: Array, orders: tuple[int, ...], activation: Activation, options: JetProfileOptions
) -> tuple[Array, Array]:
    """Return for every scale of the grid the best b: (m, scales) each.

    The misfit has a valley for every way in which a few samples can be met; they differ in scale.
    """
    reach = float(np.abs(t).max(initial=1.0))
    m = t.shape[1]
    scales = np.geomspace(*options.scales, options.scale_count)
    best_b = np.zeros((m, len(scales)))
    for i, scale in enumerate(scales):
        extent = reach + options.extent / scale
        count = int(np.ceil(2 * extent * scale * options.centers_per_width)) | 1
        grid = scale * np.linspace(-extent, extent, count)
        shape = _shape(np.full((m, count), scale), np.broadcast_to(grid, (m, count)), t, orders, activation)
        best_b[:, i] = grid[np.argmax(explained_part(shape, data), axis=1)]
    return np.broadcast_to(scales, best_b.shape).copy(), best_b


@dataclass(frozen=True, eq=False)
class _JetPoint:
    """All fits at once, (m, candidates)."""

    log_s: Array
    b: Array
    left: Array  # data minus its best fit, (2n, m, candidates, K)
    size: Array  # squared misfit


class _JetSteps(Steps[_JetPoint]):
    """Steps with the Jacobian by differences and the amplitudes projected out, each candidate by itself."""

    def __init__(
        self,
        t: Array,
        data: Array,
        orders: tuple[int, ...],
        activation: Activation,
        options: JetProfileOptions,
    ) -> None:
        self._t, self._data, self._orders = t, data, orders
        self._activation, self._options = activation, options
        self._reach = float(np.abs(t).max(initial=1.0))

    def refine(self, s: Array, b: Array, steps: int) -> tuple[Array, Array, Array]:
        """Take ``steps`` from s, b (m, candidates); return both and the squared misfit."""
        schedule = replace(self._options.schedule, steps=steps)
        end = minimise(self, self.at(np.log(s), b), schedule).point
        return np.exp(end.log_s), end.b, end.size

    def at(self, log_s: Array, b: Array) -> _JetPoint:
        left = self._remainder(log_s, b)
        return _JetPoint(log_s, b, left, np.einsum("nmck,nmck->mc", left, left))

    def trial(self, point: _JetPoint, damping: float | Array) -> _JetPoint:
        (smallest, largest), (longest_s, longest_b) = self._options.scales, self._options.longest_step
        step_s, step_b = self._step(point, damping)
        log_s = point.log_s - np.clip(step_s, -longest_s, longest_s)
        log_s = np.clip(log_s, np.log(smallest / 10), np.log(largest * 10))
        farthest = np.exp(log_s) * self._reach + self._options.extent
        b = point.b - np.clip(step_b, -longest_b, longest_b)
        return self.at(log_s, np.clip(b, -farthest, farthest))

    def accepted(self, better: bool | BoolArray, trial: _JetPoint, point: _JetPoint) -> _JetPoint:
        return _JetPoint(
            np.where(better, trial.log_s, point.log_s),
            np.where(better, trial.b, point.b),
            np.where(np.asarray(better)[..., None], trial.left, point.left),
            np.where(better, trial.size, point.size),
        )

    def _step(self, point: _JetPoint, damping: float | Array) -> tuple[Array, Array]:
        left = point.left
        by_s = (self._remainder(point.log_s + _JET_DIFFERENCE, point.b) - left) / _JET_DIFFERENCE
        by_b = (self._remainder(point.log_s, point.b + _JET_DIFFERENCE) - left) / _JET_DIFFERENCE
        normal = _products(by_s, by_s), _products(by_s, by_b), _products(by_b, by_b)
        return pair_steps(normal, (_products(by_s, left), _products(by_b, left)), damping)

    def _remainder(self, log_s: Array, b: Array) -> Array:
        shape = _shape(np.exp(log_s), b, self._t, self._orders, self._activation)
        return np.asarray(self._data[:, :, None, :] - shape[..., None] * best_amplitudes(shape, self._data))


def _products(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("nmck,nmck->mc", a, b))
