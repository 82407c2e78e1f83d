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
from unweave.methods.smooth_deep.options import StartOptions
from unweave.networks.saturation import Saturating
from unweave.numerics.clock import check
from unweave.numerics.least_squares import Steps, minimise
from unweave.numerics.least_squares.pair_steps import pair_steps
from unweave.subspace.congruence import diagonalise_by_congruence


@dataclass(frozen=True, eq=False)
class LayerStart:
    """First guess of a layer."""

    mixing: Array
    """B, (m, m)."""
    biases: Array
    off_diagonal: float
    """Squared share that joint diagonalisation leaves: rounding if this is the last hidden layer."""
    misfit: float
    """Relative misfit of the diagonal: rounding too, then."""

    @property
    def mismatch(self) -> float:
        """Return the squared share of the Hessians that a last hidden layer would not explain."""
        return max(self.off_diagonal, self.misfit**2)


def layer_start(
    coordinates: Array,
    gradients: Array,
    hessians: Array,
    g: Saturating,
    normalise: bool = True,
    options: StartOptions | None = None,
) -> LayerStart:
    """Guess a layer from coordinates (n, m), gradients (n, m, K) and Hessians (n, K, m, m)."""
    m = coordinates.shape[1]
    flat = hessians.reshape(-1, m, m)
    flat = flat[np.linalg.norm(flat, axis=(1, 2)) > 0]
    diagonal = diagonalise_by_congruence(flat, normalise)
    directions = diagonal.directions
    norms, biases, misfit = norms_and_biases(directions, coordinates, gradients, hessians, g, options)
    return LayerStart(directions * norms, biases, diagonal.off_diagonal, misfit)


def norms_and_biases(
    directions: Array,
    coordinates: Array,
    gradients: Array,
    hessians: Array,
    g: Saturating,
    options: StartOptions | None = None,
) -> tuple[Array, Array, float]:
    """Fit S = a r(a u.c + tau) p, r = g''/g', over all sites and outputs; return a (m,), tau (m,), misfit.

    ``directions`` u (m, m), ``coordinates`` c (n, m), ``gradients`` (n, m, K), ``hessians`` (n, K, m, m).
    """
    options = options or StartOptions()
    inverse = np.linalg.inv(directions)
    diagonal = np.einsum("ja,noab,jb->noj", inverse, hessians, inverse, optimize=True)
    slopes = np.einsum("ja,nao->noj", inverse, gradients)
    mixed, squares = (diagonal * slopes).sum(axis=1), (slopes * slopes).sum(axis=1)  # (n, m)
    places = coordinates @ directions
    norms, biases = _best_on_grid(places, mixed, squares, g, options)
    start = _UnitFits(norms, biases, np.ones(len(norms)))
    end = minimise(_UnitSteps(places, mixed, squares, g, options), start, options.schedule).point
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
    def __init__(
        self, places: Array, mixed: Array, squares: Array, g: Saturating, options: StartOptions
    ) -> None:
        self._places, self._mixed, self._squares, self._g = places, mixed, squares, g
        self._options = options

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
        (by_most, bias_by_most), largest = self._options.longest_step, self._options.largest_bias
        norms = np.clip(norms - np.clip(step_norm, -by_most, by_most), *self._options.norm_range)
        biases = np.clip(point.biases - np.clip(step_bias, -bias_by_most, bias_by_most), -largest, largest)
        return _UnitFits(norms, biases, point.size)


def _best_on_grid(
    places: Array, mixed: Array, squares: Array, g: Saturating, options: StartOptions
) -> tuple[Array, Array]:
    m = places.shape[1]
    best, norms, biases = np.full(m, np.inf), np.ones(m), np.zeros(m)
    for norm in options.norms:
        check()
        for bias in np.linspace(*options.biases):
            r = norm * g.bending(norm * places + bias)[0]
            cost = (squares * r * r - 2 * mixed * r).sum(axis=0)
            better = cost < best
            best[better], norms[better], biases[better] = cost[better], norm, bias
    return norms, biases
