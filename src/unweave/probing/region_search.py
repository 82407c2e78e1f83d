"""Find where a target is alive, and on which scale of each input, from its answers alone.

Nothing is known beforehand: one feature may live on 1e-3 and another on 1e4, and at x = 0 every unit may
be saturated. Steps of all sizes along each axis give rough scales. For a target that saturates, the
crossings of its units' hyperplanes far away tell the rest; for any other, one that grows or oscillates,
slopes and bending around 0 do.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.probing.crossings import ScaledAnswers, locate_by_crossings
from unweave.targets.queries import Queries
from unweave.targets.region import Region

_AXIS_STEPS = 10.0 ** np.arange(-7, 10)  # steps along one axis, both signs: inputs of any usual unit
_LADDER_NUMBERS = 100_000_000  # of the rows of steps that are made at once: 800 MB
_MOST_INPUTS = 20_000  # beyond, the rows of all steps would be more than 100 GB
_SATURATED_SHARE = 0.02  # of a feature's variation in the last decade of steps, at most: it saturates
_BEND_STEPS = 10.0 ** np.arange(-4.0, 4.1, 0.25)  # along a line, in rough scales
_BEND_LINES = 10  # random lines that are pooled
_BENT_DEVIATION = 0.35  # relative distance from the tangent at which units vary by about one
_AVERAGED_SLOPE_POINTS = 8  # points over which slopes are averaged
_LEAST_SLOPE_OF_LARGEST = 1e-6  # share of the largest slope below which a feature counts as without effect


def find_region(ledger: Queries, sigma: float | Array, rng: np.random.Generator) -> Region | None:
    """Return a region in which every unit of the target varies by about one, or None.

    ``sigma``, one number or (m,), is the standard deviation of one answer's error. None: the answers show
    no scale (constant, affine, or below the noise everywhere), or there are more than 20,000 inputs. Cost:
    34 D + C (D + 26) queries for a target that saturates, with C = 5 D crossings (at most 300), 50 D + 1400
    for any other.
    """
    if ledger.n_inputs > _MOST_INPUTS:
        return None
    ladder = _axis_ladder(ledger)
    spread = np.ptp(ladder.reshape(-1, ladder.shape[-1]), axis=0)
    alive = spread > 10 * sigma
    if not alive.any():
        return None
    weight = np.where(alive, 1.0 / np.where(alive, spread, 1.0), 0.0)
    ask = ScaledAnswers(ledger, weight, float(np.max(sigma * weight)))
    scale, active, settled = _axis_scales(ladder * weight, ask.error)
    if not active.any():
        return None
    if not settled:
        found = _scale_from_bending(ask, scale, active, rng)
        return None if found is None else Region(np.zeros(scale.size), np.where(active, found, 1.0))
    location, scale = locate_by_crossings(ask, scale, active, rng)
    return Region(location, np.where(active, scale, 1.0))


def _axis_ladder(ledger: Queries) -> Array:
    """Ask 0 and plus or minus each step along each axis. Shape (D, 2, steps + 1, m), step 0 first."""
    n_inputs, n_steps = ledger.n_inputs, _AXIS_STEPS.size
    steps = np.concatenate([[0.0], _AXIS_STEPS])
    signed = np.stack([steps, -steps])  # (2, steps + 1)
    parts, at_once = [], max(1, _LADDER_NUMBERS // (signed.size * n_inputs))
    for start in range(0, n_inputs, at_once):
        axes = np.arange(start, min(start + at_once, n_inputs))
        x = np.zeros((len(axes), 2, n_steps + 1, n_inputs))
        x[np.arange(len(axes)), :, :, axes] = signed
        parts.append(ledger(x.reshape(-1, n_inputs)).reshape(len(axes), 2, n_steps + 1, -1))
    return np.concatenate(parts)


def _axis_scales(ladder: Array, error: float) -> tuple[Array, BoolArray, bool]:
    """Return rough scales (D,), which features have an effect (D,), and whether the target saturates.

    The scale of a feature is the step at which half of the variation seen along its axis has passed. For a
    target that does not saturate it is the step that moves its answer as far as a unit step moves it in
    the median over features, or half as far as any step does if that is less: growth and oscillation.
    """
    change = np.linalg.norm(np.diff(ladder, axis=2), axis=-1).sum(axis=1)  # (D, steps), both signs together
    change = np.where(change > 10 * error, change, 0.0)
    total = change.sum(axis=1)
    active = total > 0
    if not active.any():
        return np.ones(total.size), active, False
    settled = bool(np.median(change[active, -1] / total[active]) < _SATURATED_SHARE)
    if settled:
        passed, level = np.cumsum(change, axis=1), total / 2
    else:
        away = np.linalg.norm(ladder[:, :, 1:] - ladder[:, :, :1], axis=-1).max(axis=1)  # (D, steps)
        passed = np.maximum.accumulate(np.where(away > 10 * error, away, 0.0), axis=1)
        by_unit_step = np.median(passed[active, int(np.searchsorted(_AXIS_STEPS, 1.0))])
        level = np.minimum(passed[:, -1] / 2, by_unit_step if by_unit_step > 0 else np.inf)
    scale = np.array([_reached(p, one) for p, one in zip(passed, level, strict=True)])
    return np.where(active, scale, 1.0), active, settled


def _reached(passed: Array, level: float) -> float:
    """Return the step at which the growing sequence ``passed`` (steps,) reaches ``level``, in log scale."""
    k = int(np.searchsorted(passed, level))
    if k == 0 or k >= passed.size:
        return float(_AXIS_STEPS[min(k, passed.size - 1)])
    share = (level - passed[k - 1]) / (passed[k] - passed[k - 1])
    return float(_AXIS_STEPS[k - 1] * (_AXIS_STEPS[k] / _AXIS_STEPS[k - 1]) ** share)


def _scale_from_bending(
    ask: ScaledAnswers, scale: Array, active: BoolArray, rng: np.random.Generator
) -> Array | None:
    """Return scales (D,) around 0 with equal slopes in all features, at which the function starts to bend."""
    location = np.zeros(scale.size)
    for _ in range(2):
        factor = _bending_length(ask, location, np.where(active, scale, 0.0), rng)
        if factor is None:
            return None
        scale = scale * factor
        slopes = _slopes(ask, location, scale, active, rng)
        largest = slopes.max()
        if not largest > 0:
            return scale
        seen = slopes > _LEAST_SLOPE_OF_LARGEST * largest
        typical = np.sqrt(np.mean(slopes[seen] ** 2))
        scale = np.where(seen, scale * typical / np.where(seen, slopes, 1.0), scale)
    return scale


def _bending_length(
    ask: ScaledAnswers, location: Array, scale: Array, rng: np.random.Generator
) -> float | None:
    """Return the t at which f(location + t scale d), d Gaussian, leaves its tangent by a set share, or None.

    The share is that of sqrt(S^2 + (A - t A')^2) in t A', with S and A the even and odd parts along the line
    and A' the slope at 0, all pooled over lines and outputs.
    """
    d = rng.standard_normal((_BEND_LINES, scale.size))
    t = np.concatenate([-_BEND_STEPS[::-1], [0.0], _BEND_STEPS])
    values = ask(location + t[:, None] * (scale * d)[:, None, :])  # (lines, t, m)
    n = _BEND_STEPS.size
    plus, minus, center = values[:, n + 1 :], values[:, n - 1 :: -1], values[:, n : n + 1]
    odd, even = (plus - minus) / 2, (plus + minus) / 2 - center  # (lines, steps, m)
    size = np.sqrt(np.mean(np.sum(odd**2, axis=-1), axis=0))  # (steps,)
    clear = np.flatnonzero(size > 30 * max(ask.error, np.finfo(np.float64).eps))
    if clear.size == 0:
        return None
    first = clear[0]
    slope = odd[:, first : first + 1] / _BEND_STEPS[first]
    straight = _BEND_STEPS[:, None] * slope
    bend = np.sqrt(np.mean(np.sum(even**2 + (odd - straight) ** 2, axis=-1), axis=0))
    share = bend / np.sqrt(np.mean(np.sum(straight**2, axis=-1), axis=0))
    beyond = np.flatnonzero(share[first:] > _BENT_DEVIATION) + first
    return float(_BEND_STEPS[beyond[0]]) if beyond.size else None


def _slopes(
    ask: ScaledAnswers, location: Array, scale: Array, active: BoolArray, rng: np.random.Generator
) -> Array:
    """Return the root mean square slope (D,) of each feature over Gaussian points, in scaled coordinates."""
    points = np.where(active, rng.standard_normal((_AVERAGED_SLOPE_POINTS, scale.size)), 0.0)
    used = np.flatnonzero(active)
    step = float(np.clip(np.sqrt(ask.error), 1e-4, 0.3))
    moved = np.repeat(points[:, None, :], used.size, axis=1)
    moved[:, np.arange(used.size), used] += step
    center = ask(location + scale * points)
    difference = (ask(location + scale * moved) - center[:, None, :]) / step
    slopes = np.zeros(scale.size)
    slopes[used] = np.sqrt(np.mean(np.sum(difference**2, axis=-1), axis=0))
    return slopes
