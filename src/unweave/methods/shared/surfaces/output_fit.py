"""Fit the outputs to the last hidden layer, whose signs are open.

Behind a last layer z = A phi with open signs the outputs are V^T |z| + U^T phi + c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class OutputFitOptions:
    """Which rows are used, and what they count."""

    rank: float = 1e-12
    """Singular values of the fit of outputs, relative to the largest one, below which they are zero."""
    reweightings: int = 15
    """Times that rows are weighted anew by their residuals."""
    agrees: float = 1e-7
    """Misfit above which a row counts less, relative to the typical answer at its distance."""
    near: float = 300.0
    """Distance from the origin, over sqrt(d), up to which rows are used."""
    rows: tuple[int, int] = (4000, 6)
    """Rows of the fit at most: so many, and so many per number that is fitted."""
    rare_rows: int = 60
    """Rows on the rarer side of every unit that are always among them."""


@dataclass(frozen=True, eq=False)
class OutputFit:
    """Outputs as affine functions of (|z|, phi) of the last layer."""

    solution: Array
    """(V, U, c), (F, K)"""
    misfits: Array
    """(n,) error of every row, relative to the typical answer at its distance"""
    points: Array
    """(n, d)"""


def fit_outputs(
    lifted: LiftedLayers,
    points: Array,
    answers: Array,
    rng: np.random.Generator,
    options: OutputFitOptions,
) -> OutputFit:
    """Fit affine functions of phi to answers (n, K) at points (n, d).

    Rows get weights 1 / |residual|, so that those at which a unit is missing do not spoil the fit of the
    others, as long as these are many; their misfits tell them.
    """
    near = np.flatnonzero(np.linalg.norm(points, axis=1) <= options.near * np.sqrt(points.shape[1]))
    most = options.rows[0] + options.rows[1] * lifted.dimension
    if len(near) > most:
        near = np.union1d(rng.permutation(near)[:most], near[_rare_sides(lifted, points[near], rng, options)])
    points, answers = points[near], answers[near]
    size = 1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1])
    features = lifted.values(points) / size[:, None]
    scale = np.linalg.norm(features, axis=0)
    features /= np.where(scale > 0, scale, 1.0)
    wanted = answers / size[:, None]
    typical = max(float(np.sqrt(np.mean(wanted**2))), np.finfo(np.float64).tiny)
    weights = np.ones((len(points), 1))
    for _ in range(options.reweightings):
        check()
        solution = np.linalg.lstsq(weights * features, weights * wanted, rcond=options.rank)[0]
        misfits = np.abs(features @ solution - wanted).max(axis=1) / typical
        if misfits.max() <= options.agrees:
            break
        weights = 1 / np.sqrt(np.maximum(misfits, options.agrees))[:, None]
    return OutputFit(solution / np.where(scale > 0, scale, 1.0)[:, None], misfits, points)


def _rare_sides(
    lifted: LiftedLayers, points: Array, rng: np.random.Generator, options: OutputFitOptions
) -> IntArray:
    """Return the numbers of points on the rarer side of every unit of the last layer."""
    on = lifted.preactivations(points)[:, lifted.top] > 0
    chosen: list[int] = []
    for unit in range(on.shape[1]):
        side = on[:, unit] if 2 * on[:, unit].sum() < len(on) else ~on[:, unit]
        chosen += rng.permutation(np.flatnonzero(side))[: options.rare_rows].tolist()
    return np.unique(np.array(chosen, dtype=int))
