"""Directions, norms and biases of a layer from Hessians of the unknown rest: a start for the exact fit.

With c the coordinates that the layer reads,

    H_c = B diag(s(c)) B^T + N(c) K(c) N(c)^T,      N = B D W:

B is square and constant, s varies a lot, the second term has the rank of the next layer, points elsewhere
from c to c and is damped by D = diag g' twice. So the Hessians at widely spread c are jointly diagonal by
congruence, approximately; for the last hidden layer the second term is absent, and they are so exactly.

On the diagonal, S_j = (B^{-1} H B^{-T})_jj and p = B^{-1} grad satisfy S_j = (g''/g')(z_j) p_j, with
z_j = a_j u_j . c + tau_j for unit columns u_j of norm a_j: a fit of two numbers per unit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.smooth_deep.saturating import Saturating
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Steps, minimise
from unweave.numerics.least_squares.pair_steps import pair_steps
from unweave.subspace.congruence import diagonalise_by_congruence

_GRID_NORMS = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 2.6, 3.5, 5.0)
_GRID_BIASES = np.linspace(-5, 5, 61)
_LONGEST_UNIT_STEP = (0.2, 0.3)  # of a Gauss-Newton step in norm and bias
_NORM_RANGE, _BIAS_RANGE = (0.02, 20.0), 9.0
_UNIT_FIT_SCHEDULE = LevenbergMarquardtOptions(
    steps=30, stalls=None, needed=np.inf, damping=0.01, damping_fall=1.0, damping_rise=1.0
)


@dataclass(frozen=True, eq=False)
class LayerStart:
    """A first guess of a layer."""

    mixing: Array
    """B, (m, m)."""
    biases: Array
    off_diagonal: float
    """What joint diagonalisation leaves: at rounding level this is the last hidden layer."""
    misfit: float
    """Relative misfit of the diagonal: at rounding level too, then."""

    @property
    def mismatch(self) -> float:
        """Squared share of the Hessians that a last hidden layer would not explain."""
        return max(self.off_diagonal, self.misfit**2)


def layer_start(
    coordinates: Array, gradients: Array, hessians: Array, g: Saturating, normalise: bool = True
) -> LayerStart:
    """From coordinates (n, m), gradients (n, m, K) and Hessians (n, K, m, m)."""
    m = coordinates.shape[1]
    flat = hessians.reshape(-1, m, m)
    flat = flat[np.linalg.norm(flat, axis=(1, 2)) > 0]
    diagonal = diagonalise_by_congruence(flat, normalise)
    norms, biases, misfit = norms_and_biases(diagonal.directions, coordinates, gradients, hessians, g)
    return LayerStart(diagonal.directions * norms, biases, diagonal.off_diagonal, misfit)


def norms_and_biases(
    directions: Array, coordinates: Array, gradients: Array, hessians: Array, g: Saturating
) -> tuple[Array, Array, float]:
    """Least squares fit of S = a r(a u.c + tau) p, r = g''/g', over all sites and outputs: (m,), (m,),
    misfit.
    """
    inverse = np.linalg.inv(directions)
    diagonal = np.einsum("ja,noab,jb->noj", inverse, hessians, inverse, optimize=True)
    slopes = np.einsum("ja,nao->noj", inverse, gradients)
    mixed, squares = (diagonal * slopes).sum(axis=1), (slopes * slopes).sum(axis=1)  # (n, m)
    places = coordinates @ directions
    norms, biases = _best_on_grid(places, mixed, squares, g)
    start = _UnitFits(norms, biases, np.ones(len(norms)))
    end = minimise(_UnitSteps(places, mixed, squares, g), start, _UNIT_FIT_SCHEDULE).point
    norms, biases = end.norms, end.biases
    r = norms * g.bending(norms * places + biases)[0]
    left = (squares * r * r - 2 * mixed * r).sum() + (diagonal**2).sum()
    return norms, biases, float(np.sqrt(max(left, 0.0) / max((diagonal**2).sum(), 1e-300)))


@dataclass(frozen=True, eq=False)
class _UnitFits:
    """All units at once, (m,)."""

    norms: Array
    biases: Array
    size: Array  # ones: every step is taken, and no misfit need be known


class _UnitSteps(Steps[_UnitFits]):
    def __init__(self, places: Array, mixed: Array, squares: Array, g: Saturating) -> None:
        self._places, self._mixed, self._squares, self._g = places, mixed, squares, g

    def trial(self, point: _UnitFits, damping: float | Array) -> _UnitFits:
        norms, places, squares = point.norms, self._places, self._squares
        r, slope = self._g.bending(norms * places + point.biases)
        by_norm, by_bias = r + norms * places * slope, norms * slope
        misfit = squares * norms * r - self._mixed
        normal = (
            (squares * by_norm**2).sum(axis=0),
            (squares * by_norm * by_bias).sum(axis=0),
            (squares * by_bias**2).sum(axis=0),
        )
        gradient = (misfit * by_norm).sum(axis=0), (misfit * by_bias).sum(axis=0)
        step_norm, step_bias = pair_steps(normal, gradient, damping)
        norms = norms - np.clip(step_norm, -_LONGEST_UNIT_STEP[0], _LONGEST_UNIT_STEP[0])
        biases = point.biases - np.clip(step_bias, -_LONGEST_UNIT_STEP[1], _LONGEST_UNIT_STEP[1])
        return _UnitFits(np.clip(norms, *_NORM_RANGE), np.clip(biases, -_BIAS_RANGE, _BIAS_RANGE), point.size)


def _best_on_grid(places: Array, mixed: Array, squares: Array, g: Saturating) -> tuple[Array, Array]:
    m = places.shape[1]
    best, norms, biases = np.full(m, np.inf), np.ones(m), np.zeros(m)
    for norm in _GRID_NORMS:
        for bias in _GRID_BIASES:
            r = norm * g.bending(norm * places + bias)[0]
            cost = (squares * r * r - 2 * mixed * r).sum(axis=0)
            better = cost < best
            best[better], norms[better], biases[better] = cost[better], norm, bias
    return norms, biases
