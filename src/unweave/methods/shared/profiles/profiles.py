"""One unit at a time: scale, bias and outgoing weights from samples of its own profile.

Once the direction u_k of a unit is known, least squares on rank-one terms turns every sampled Hessian
into a sample of a function of one variable t = u_k . x,

    c_k(t) = a_k s_k^2 g''(s_k t + b_k),

with s_k = |w_k| and a_k the outgoing weights, one per output. When there are no more units than
inputs, plain values on a line along which only unit k moves do the same,

    c_k(t) = a_k g(s_k t + b_k) + a function affine in t.

The amplitude (and the affine function) enter linearly and are projected out, so each unit is a
nonlinear least-squares problem in (s, b) alone: a grid that is as fine as the function is steep, then
Levenberg-Marquardt from the best grid points, for all units at once. No interval of invertibility is
needed and outgoing weights are free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.networks.activations import Activation
from unweave.numerics.clock import check
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Steps, minimise
from unweave.numerics.least_squares.pair_steps import pair_steps

_GRID_ENTRIES = 2_000_000  # numbers held at once while the grid is searched: 16 MB
_PROFILE_LOG_SCALES = (np.log(1e-3), np.log(1e3))  # bounds of log s, beyond which g is flat or a step
PROFILE_SCHEDULE = LevenbergMarquardtOptions(
    steps=40,
    stalls=None,
    damping=1e-3,
    damping_fall=0.2,
    damping_rise=5.0,
    least_damping=1e-12,
    least_raised=0.0,
    max_damping=1.0,  # a refused step this short is the rounding's
)
"""Refinement of a unit's (log s, b)."""

SMOOTH_ACTIVATIONS = ("tanh", "erf", "softplus", "gelu", "swish", "sine")
"""Activations tried when none is told; tanh stands for the logistic function too."""

FURTHER_ACTIVATIONS = ("mish", "elu", "selu", "softsign", "arctan", "gaussian")
"""Activations tried besides in precise answers, where none of the others fits: behind coarse answers they
would imitate them."""
FITS_WELL = 3e-4
"""Relative misfit of profiles from which no further activation is tried."""


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """How profiles are fitted: a grid of (s, b), then Levenberg-Marquardt from its best points."""

    scales: tuple[float, float] = (0.08, 8.0)
    """Smallest and largest s = |w_k| of the grid, in normalised inputs."""
    scale_count: int = 22
    """Scales of the grid, spaced geometrically."""
    centers_per_width: float = 2.5
    """Grid points across 1/s, the width of the profile."""
    grid_samples: int = 64
    """Samples of each profile that the grid looks at; all of them count in the end."""
    candidates: int = 10
    """Grid points per unit that are refined."""
    longest_step: tuple[float, float] = (0.5, 2.0)
    """Longest step of a refinement, in log s and b."""
    schedule: LevenbergMarquardtOptions = PROFILE_SCHEDULE
    """Damping and steps of a refinement."""
    voters: int = 64
    """Units on which activations are compared."""
    poor_fit: float = 1e-4
    """Relative misfit of a refined profile above which it is fitted again from the grid, ..."""
    poor_fit_ratio: float = 30.0
    """... if it is also this many times the median misfit."""


PROFILES = ProfileOptions()
"""The defaults."""


@dataclass(frozen=True, eq=False)
class Profiles:
    """Fitted units g(s_k t + b_k), k = 1..m."""

    scales: Array
    """(m,); negative where a unit points the other way."""
    biases: Array
    """(m,)"""
    outgoing: Array
    """(m, K)"""
    residuals: Array
    """(m,) norm of the misfit relative to the norm of the samples."""

    def updated(self, index: IntArray, other: Profiles) -> Profiles:
        """Replace the units at ``index`` where ``other`` has better ones, and append its new ones."""
        known = len(self.scales)
        better = (index >= known) | (other.residuals < self.residuals[np.minimum(index, known - 1)])
        index, size = index[better], max(known, int(index.max(initial=-1)) + 1)
        parts = []
        for name in ("scales", "biases", "outgoing", "residuals"):
            old, new = getattr(self, name), getattr(other, name)
            result = np.empty((size, *old.shape[1:]))
            result[:known] = old
            result[index] = new[better]
            parts.append(result)
        return Profiles(*parts)

    def only(self, units: IntArray) -> Profiles:
        """Keep some of the units, in this order."""
        return Profiles(self.scales[units], self.biases[units], self.outgoing[units], self.residuals[units])

    def pooled_residual(self) -> float:
        """Return the root mean square of the misfits: how well the activation explains all units."""
        return pooled(self.residuals)


def in_turns(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return ``names`` in two groups: usual activations, and those tried only if none of them fits."""
    usual = tuple(name for name in names if name not in FURTHER_ACTIVATIONS)
    further = tuple(name for name in names if name in FURTHER_ACTIVATIONS)
    return [group for group in (usual, further) if group]


def pooled(residuals: Array) -> float:
    """Return the root mean square of relative misfits (m,)."""
    return float(np.sqrt(np.mean(residuals**2)))


def fit_profiles(
    projections: Array,
    samples: Array,
    activation: Activation,
    order: int,
    rng: np.random.Generator,
    options: ProfileOptions = PROFILES,
) -> Profiles:
    """Fit every unit's profile; the grid looks at some of the samples, chosen by ``rng``.

    See `fit_profiles_from` for the parameters.
    """
    subset = grid_subset(len(projections), rng, options)
    return fit_profiles_from(subset, projections, samples, activation, order, options)


def grid_subset(n: int, rng: np.random.Generator, options: ProfileOptions = PROFILES) -> IntArray:
    """Choose the samples, of n, that the grid looks at."""
    if n <= options.grid_samples:
        return np.arange(n, dtype=np.int64)
    return np.sort(rng.permutation(n)[: options.grid_samples]).astype(np.int64)


def fit_profiles_from(
    subset: IntArray,
    projections: Array,
    samples: Array,
    activation: Activation,
    order: int,
    options: ProfileOptions = PROFILES,
) -> Profiles:
    """Fit every unit's profile.

    Parameters
    ----------
    subset
        The samples that the grid looks at; all of them count in the end.
    projections : (n, m)
        t_ik = u_k . x_i.
    samples : (n, m, K)
        c_k(t_ik), one per output.
    order
        Order of the derivative that was sampled: 2, or 0 for values along lines (then every unit must
        have the same projections, and the sampling points are few).
    """
    samples = _without_affine(samples, projections, order)
    if activation.kinks:  # a few samples more or less on either side of a kink make a difference
        subset = np.arange(len(projections), dtype=np.int64)

    def fit(t: Array) -> Profiles:
        scales, biases = _grid_search(t[subset], samples[subset], activation, order, options)
        few = t[subset][:, :, None], samples[subset][:, :, None, :]
        scales, biases, misfit = _refine(scales, biases, *few, activation, order, options)
        best = np.argmin(misfit, axis=1)[:, None]
        scales, biases = np.take_along_axis(scales, best, 1), np.take_along_axis(biases, best, 1)
        return _refined(scales, biases, t, samples, activation, order, options)

    fitted = fit(projections)
    if not activation.has_sides:
        return fitted
    turned = fit(-projections)
    every = np.arange(len(fitted.scales), dtype=np.int64)
    return fitted.updated(every, replace(turned, scales=-turned.scales))


def refine_profiles(
    projections: Array,
    samples: Array,
    activation: Activation,
    order: int,
    start: Profiles,
    options: ProfileOptions = PROFILES,
) -> Profiles:
    """Fit again from a good start, for instance after the samples were corrected."""
    samples = _without_affine(samples, projections, order)
    way = np.sign(start.scales)
    scales, biases = np.abs(start.scales)[:, None], start.biases[:, None]
    refined = _refined(scales, biases, way * projections, samples, activation, order, options)
    return replace(refined, scales=way * refined.scales)


def _refined(
    scales: Array,
    biases: Array,
    projections: Array,
    samples: Array,
    activation: Activation,
    order: int,
    options: ProfileOptions,
) -> Profiles:
    """Refine one start (m, 1) per unit on all samples."""
    t, c = projections[:, :, None], samples[:, :, None, :]
    scales, biases, misfit = _refine(scales, biases, t, c, activation, order, options)
    shape, _ = _shape(scales, biases, t, activation, order)
    size = np.einsum("nmk,nmk->m", samples, samples)
    return Profiles(
        scales=scales[:, 0],
        biases=biases[:, 0],
        outgoing=best_amplitudes(shape, samples)[:, 0] / scales**order,
        residuals=np.sqrt(np.maximum(misfit[:, 0], 0.0) / np.maximum(size, np.finfo(np.float64).tiny)),
    )


def _grid_search(
    t: Array, c: Array, activation: Activation, order: int, options: ProfileOptions
) -> tuple[Array, Array]:
    """Return the best (s, b) of a grid, (m, candidates) each, for t (n, m) and c (n, m, K)."""
    n, m = t.shape
    if activation.kinks:
        return _kinked_grid_search(t, c, activation, order, options)
    grid_s, grid_b = profile_grid(float(np.abs(t).max(initial=1.0)), options)
    best_s = np.ones((m, options.candidates))
    best_b = np.zeros((m, options.candidates))
    block = max(1, _GRID_ENTRIES // (n * len(grid_s)))
    for start in range(0, m, block):
        check()
        rows = slice(start, start + block)
        z = t[:, rows, None] * grid_s + grid_b  # (n, block, grid)
        shape = _without_affine(activation.jet(z, order)[order], t, order)
        chosen = _separated_best(explained_part(shape, c[:, rows]), options.candidates)
        best_s[rows], best_b[rows] = grid_s[chosen], grid_b[chosen]
    return best_s, best_b


def _kinked_grid_search(
    t: Array, c: Array, activation: Activation, order: int, options: ProfileOptions
) -> tuple[Array, Array]:
    """Return the same where kinks lie between two samples: every gap between neighbours is tried."""
    n, m = t.shape
    scales = np.geomspace(*options.scales, options.scale_count)
    ascending = np.sort(t, axis=0)
    ends = np.ones((1, m)) / options.scales[1]
    places = np.concatenate([ascending[:1] - ends, ascending, ascending[-1:] + ends])
    centers = (places[1:] + places[:-1]).T / 2  # (m, n + 1)
    best_s = np.ones((m, options.candidates))
    best_b = np.zeros((m, options.candidates))
    block = max(1, _GRID_ENTRIES // (n * centers.shape[1] * len(scales)))
    grid_s = np.tile(scales[:, None], (1, centers.shape[1])).reshape(-1)
    for start in range(0, m, block):
        check()
        rows = slice(start, start + block)
        grid_b = (-scales[:, None] * centers[rows, None, :]).reshape(-1, len(grid_s))
        shape = activation.jet(t[:, rows, None] * grid_s + grid_b, order)[order]
        chosen = _separated_best(
            explained_part(_without_affine(shape, t, order), c[:, rows]), options.candidates
        )
        best_s[rows], best_b[rows] = grid_s[chosen], np.take_along_axis(grid_b, chosen, 1)
    return best_s, best_b


def profile_grid(reach: float, options: ProfileOptions = PROFILES) -> tuple[Array, Array]:
    """Return pairs (s, b) whose centers -b/s cover a little more than [-reach, reach], finer if steeper."""
    pairs = []
    for s in np.geomspace(*options.scales, options.scale_count):
        extent = reach + 1.5 / s
        count = int(np.ceil(2 * extent * s * options.centers_per_width)) | 1
        pairs.append(np.stack([np.full(count, s), -s * np.linspace(-extent, extent, count)]))
    grid_s, grid_b = np.concatenate(pairs, axis=1)
    return grid_s, grid_b


def _separated_best(explained: Array, candidates: int) -> IntArray:
    """Return indices (m, candidates) of the best grid points, neighbours of a better one left out."""
    working = explained.copy()
    rows = np.arange(len(working))
    chosen = np.empty((len(working), candidates), dtype=np.int64)
    for i in range(candidates):
        best = np.argmax(working, axis=1)
        chosen[:, i] = best
        for shift in (-1, 0, 1):
            working[rows, np.clip(best + shift, 0, working.shape[1] - 1)] = -np.inf
    return chosen


def _shape(s: Array, b: Array, t: Array, activation: Activation, order: int) -> tuple[Array, Array]:
    """g^(n)(s t + b) and its derivative with respect to b, (n, m, candidates) each."""
    jet = activation.jet(s * t + b, order + 1)
    return _without_affine(jet[order], t, order), jet[order + 1]


def _without_affine(columns: Array, t: Array, order: int) -> Array:
    """Remove from columns (n, ...) what is affine in t, if values (order 0) were sampled."""
    if order != 0:
        return columns
    line = t.reshape(len(t), -1)[:, 0]  # the same for every unit
    q = np.linalg.qr(np.stack([np.ones_like(line), line], axis=1))[0]
    flat = columns.reshape(len(columns), -1)
    return np.asarray((flat - q @ (q.T @ flat)).reshape(columns.shape))


def best_amplitudes(shape: Array, samples: Array) -> Array:
    """Return the amplitudes (m, candidates, K) of ``shape`` (n, m, candidates) that fit (n, m, K) best."""
    norm = np.einsum("nmc,nmc->mc", shape, shape)[:, :, None]
    overlap = np.einsum("nmc,nmk->mck", shape, samples)
    return np.asarray(np.divide(overlap, norm, out=np.zeros_like(overlap), where=norm > 0))


def explained_part(shape: Array, samples: Array) -> Array:
    """Return the squared length (m, grid) of samples (n, m, K) along ``shape`` (n, m, grid)."""
    norm = np.einsum("nmg,nmg->mg", shape, shape)
    overlap = np.einsum("nmg,nmk->mgk", shape, samples)
    explained = np.einsum("mgk,mgk->mg", overlap, overlap)
    return np.asarray(np.divide(explained, norm, out=np.zeros_like(norm), where=norm > 0))


def _misfit(shape: Array, amplitude: Array, c: Array) -> Array:
    """Squared norm (m, candidates) of c - shape * amplitude, one output at a time to save memory."""
    total = np.zeros(shape.shape[1:])
    for k in range(c.shape[3]):
        residual = c[:, :, :, k] - shape * amplitude[None, :, :, k]
        total += np.einsum("nmc,nmc->mc", residual, residual)
    return total


def _refine(
    s: Array, b: Array, t: Array, c: Array, activation: Activation, order: int, options: ProfileOptions
) -> tuple[Array, Array, Array]:
    """Run Levenberg-Marquardt on (log s, b) with the amplitude projected out (Kaufman's Jacobian).

    Every (unit, candidate) has its own damping and is accepted or not by itself.
    """
    steps = _ProfileSteps(t, c, activation, order, options.longest_step)
    end = minimise(steps, steps.at(np.log(s), b), options.schedule).point
    return np.exp(end.log_s), end.b, end.size


@dataclass(frozen=True, eq=False)
class _ProfilePoint:
    """All fits at once, (m, candidates)."""

    log_s: Array
    b: Array
    shape: Array  # g^(n)(s t + b), (n, m, candidates)
    slope: Array  # its derivative by b
    amplitude: Array  # (m, candidates, K)
    size: Array  # squared misfit


def _clipped(values: Array, low: float, high: float) -> Array:
    """Clip small arrays: `np.clip` takes three times as long."""
    return np.minimum(np.maximum(values, low), high)


class _ProfileSteps(Steps[_ProfilePoint]):
    def __init__(
        self, t: Array, c: Array, activation: Activation, order: int, longest: tuple[float, float]
    ) -> None:
        self._t, self._c, self._activation, self._order = t, c, activation, order
        self._longest_s, self._longest_b = longest

    def at(self, log_s: Array, b: Array) -> _ProfilePoint:
        shape, slope = _shape(np.exp(log_s), b, self._t, self._activation, self._order)
        amplitude = best_amplitudes(shape, self._c[:, :, 0, :])
        return _ProfilePoint(log_s, b, shape, slope, amplitude, _misfit(shape, amplitude, self._c))

    def trial(self, point: _ProfilePoint, damping: float | Array) -> _ProfilePoint:
        step_s, step_b = self._step(point, damping)
        log_s = point.log_s + _clipped(step_s, -self._longest_s, self._longest_s)
        log_s = _clipped(log_s, *_PROFILE_LOG_SCALES)
        kept = point.b * np.exp(log_s - point.log_s) if self._activation.kinks else point.b
        return self.at(log_s, kept + _clipped(step_b, -self._longest_b, self._longest_b))

    def _step(self, point: _ProfilePoint, damping: float | Array) -> tuple[Array, Array]:
        t, shape, amplitude = self._t, point.shape, point.amplitude
        norm = np.maximum(np.einsum("nmc,nmc->mc", shape, shape), np.finfo(np.float64).tiny)
        by_b = _without_affine(point.slope, t, self._order)
        by_b = by_b - shape * (np.einsum("nmc,nmc->mc", shape, by_b) / norm)
        by_s = np.exp(point.log_s) * t
        if self._activation.kinks:  # a kink stays between its neighbours while the scale changes
            by_s = by_s + point.b
        by_s = _without_affine(point.slope * by_s, t, self._order)
        by_s -= shape * (np.einsum("nmc,nmc->mc", shape, by_s) / norm)
        power = np.einsum("mck,mck->mc", amplitude, amplitude)
        normal = (
            power * np.einsum("nmc,nmc->mc", by_s, by_s),
            power * np.einsum("nmc,nmc->mc", by_s, by_b),
            power * np.einsum("nmc,nmc->mc", by_b, by_b),
        )
        # The part of the samples along the shape projects out.
        weighted = np.einsum("nmk,mck->nmc", self._c[:, :, 0, :], amplitude)
        gradient = np.einsum("nmc,nmc->mc", by_s, weighted), np.einsum("nmc,nmc->mc", by_b, weighted)
        return pair_steps(normal, gradient, damping)

    def accepted(self, better: bool | BoolArray, trial: _ProfilePoint, point: _ProfilePoint) -> _ProfilePoint:
        return _ProfilePoint(
            np.where(better, trial.log_s, point.log_s),
            np.where(better, trial.b, point.b),
            np.where(better, trial.shape, point.shape),
            np.where(better, trial.slope, point.slope),
            np.where(np.asarray(better)[:, :, None], trial.amplitude, point.amplitude),
            np.where(better, trial.size, point.size),
        )
