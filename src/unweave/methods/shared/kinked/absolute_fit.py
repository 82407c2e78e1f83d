"""Fit what is linear in an absolute form: given the units, heights and affine part on (|z|, x, 1)."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.kinked.units import Units
from unweave.networks.absolute_form import AbsoluteForm
from unweave.numerics.clock import check

_MOST_INPUTS_FITTED = 4000  # with an affine part in all of them, whose flops grow with their cube
_ONE_SIDED = 1e-10  # of the largest: smaller singular values come from units seen from one side only
_LEAST_SQUARES_FLOPS = 8  # times rows and squared columns: singular values, twice


def affine_frame(units: Units) -> Array | None:
    """Return the directions (d, r) that the affine part may have; None for all.

    Of very many inputs they are those of the units, as in a network without a skip: no more rows are needed.
    """
    if len(units.weights) <= _MOST_INPUTS_FITTED:
        return None
    return np.asarray(np.linalg.qr(units.weights)[0])


def fit_all(units: Units, points: Array, answers: Array) -> tuple[AbsoluteForm, float]:
    """Fit heights and affine part to answers (n, K) at points (n, d); return the relative misfit, too.

    Heights are the measured ones plus the smallest correction that the rows ask for: where all rows lie on
    one side of a unit, its |z| is affine, and they do not tell its height.
    """
    m, frame = units.width, affine_frame(units)
    read = points if frame is None else points @ frame
    check(_LEAST_SQUARES_FLOPS * len(points) * (read.shape[1] + m) ** 2)
    features = np.hstack([_magnitudes(units, points), read, np.ones((len(points), 1))])
    solution = np.vstack([units.heights, np.zeros((features.shape[1] - m, answers.shape[1]))])
    solution[m:] = np.linalg.lstsq(features[:, m:], answers - features @ solution, rcond=None)[0]
    solution += np.linalg.lstsq(features, answers - features @ solution, rcond=_ONE_SIDED)[0]
    misfit = np.linalg.norm(features @ solution - answers, axis=0)
    spread = np.linalg.norm(answers - answers.mean(axis=0), axis=0)
    slope = solution[m:-1] if frame is None else frame @ solution[m:-1]
    form = AbsoluteForm(units.weights, units.biases, solution[:m], slope, solution[-1])
    return form, float((misfit / np.where(spread > 0, spread, 1.0)).max())


def fit_affine(units: Units, points: Array, answers: Array) -> AbsoluteForm:
    """Fit the affine part, and the heights of units that were not refined."""
    free, frame = ~units.refined, affine_frame(units)
    read = points if frame is None else points @ frame
    check(_LEAST_SQUARES_FLOPS / 2 * len(points) * read.shape[1] ** 2)
    magnitudes = _magnitudes(units, points)
    rest = answers - magnitudes @ units.heights
    features = np.hstack([magnitudes[:, free], read, np.ones((len(points), 1))])
    # Heights move as little as the rows ask for: those of units that are seen from one side are not told.
    rank = _ONE_SIDED if free.any() else np.finfo(np.float64).eps * len(points)
    solution = np.asarray(np.linalg.lstsq(features, rest, rcond=rank)[0], dtype=np.float64)
    heights, count = units.heights.copy(), int(free.sum())
    heights[free] += solution[:count]
    slope = solution[count:-1] if frame is None else frame @ solution[count:-1]
    return AbsoluteForm(units.weights, units.biases, heights, slope, solution[-1])


def relative_misfit(form: AbsoluteForm, points: Array, answers: Array) -> float:
    """Return the largest error over |x| at points x (n, d), relative to the largest answer over |x|."""
    distance = np.linalg.norm(points, axis=1)
    errors = np.abs(form(points) - answers).max(axis=1) / distance
    return float(errors.max() / (np.abs(answers).max(axis=1) / distance).max())


def _magnitudes(units: Units, points: Array) -> Array:
    """Return |z| (n, m)."""
    return np.abs(points @ units.weights + units.biases)
