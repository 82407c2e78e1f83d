"""Heights and affine part of an absolute form by least squares on (|z|, x, 1), and how much they explain."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.kinked.line_units import Units
from unweave.networks.absolute_form import AbsoluteForm

_EPS = float(np.finfo(np.float64).eps)
_CORRECTED = 1e-10  # relative singular values below which rows do not correct a height


def fit_all(units: Units, points: Array, answers: Array) -> tuple[AbsoluteForm, float]:
    """The form that answers (n, K) at points (n, d) speak for, and the misfit relative to their spread.

    Heights are taken as they were measured, plus the smallest correction that the rows ask for: where all
    rows lie on one side of a unit, its |z| is affine, and its height is not theirs to tell.
    """
    m = units.width
    features = np.hstack([_magnitudes(units, points), points, np.ones((len(points), 1))])
    solution = np.vstack([units.heights, np.zeros((features.shape[1] - m, answers.shape[1]))])
    solution[m:] = np.linalg.lstsq(features[:, m:], answers - features @ solution, rcond=None)[0]
    solution += np.linalg.lstsq(features, answers - features @ solution, rcond=_CORRECTED)[0]
    misfit = np.linalg.norm(features @ solution - answers, axis=0)
    spread = np.linalg.norm(answers - answers.mean(axis=0), axis=0)
    form = AbsoluteForm(units.weights, units.biases, solution[:m], solution[m:-1], solution[-1])
    return form, float((misfit / np.where(spread > 0, spread, 1.0)).max())


def fit_affine(units: Units, points: Array, answers: Array) -> AbsoluteForm:
    """The form with the heights of refined units as they are; the rest by least squares."""
    free = ~units.refined
    magnitudes = _magnitudes(units, points)
    rest = answers - magnitudes[:, ~free] @ units.heights[~free]
    features = np.hstack([magnitudes[:, free], points, np.ones((len(points), 1))])
    solution = np.asarray(np.linalg.lstsq(features, rest, rcond=_EPS * len(points))[0], dtype=np.float64)
    heights, count = units.heights.copy(), int(free.sum())
    heights[free] = solution[:count]
    return AbsoluteForm(units.weights, units.biases, heights, solution[count:-1], solution[-1])


def relative_misfit(form: AbsoluteForm, points: Array, answers: Array) -> float:
    """Largest error at points (n, d) over their distance from 0, relative to the largest such answer."""
    distance = np.linalg.norm(points, axis=1)
    errors = np.abs(form(points) - answers).max(axis=1) / distance
    return float(errors.max() / (np.abs(answers).max(axis=1) / distance).max())


def _magnitudes(units: Units, points: Array) -> Array:
    """|z| (n, m)."""
    return np.abs(points @ units.weights + units.biases)
