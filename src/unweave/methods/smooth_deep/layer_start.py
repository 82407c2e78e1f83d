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
from unweave.subspace.congruence import diagonalise_by_congruence

_NORMS = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 2.6, 3.5, 5.0)
_BIASES = np.linspace(-5, 5, 61)
_STEPS = 30
_LONGEST = (0.2, 0.3)  # of a Gauss-Newton step in norm and bias
_NORM_RANGE, _BIAS_RANGE = (0.02, 20.0), 9.0
_RIDGE = 1.01


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
    for _ in range(_STEPS):
        r, slope = g.bending(norms * places + biases)
        by_norm, by_bias = r + norms * places * slope, norms * slope
        misfit = squares * norms * r - mixed
        a11 = _RIDGE * (squares * by_norm**2).sum(axis=0)
        a22 = _RIDGE * (squares * by_bias**2).sum(axis=0)
        a12 = (squares * by_norm * by_bias).sum(axis=0)
        b1, b2 = (misfit * by_norm).sum(axis=0), (misfit * by_bias).sum(axis=0)
        determinant = np.maximum(a11 * a22 - a12**2, 1e-300)
        norms = norms - np.clip((a22 * b1 - a12 * b2) / determinant, -_LONGEST[0], _LONGEST[0])
        biases = biases - np.clip((a11 * b2 - a12 * b1) / determinant, -_LONGEST[1], _LONGEST[1])
        norms, biases = np.clip(norms, *_NORM_RANGE), np.clip(biases, -_BIAS_RANGE, _BIAS_RANGE)
    r = norms * g.bending(norms * places + biases)[0]
    left = (squares * r * r - 2 * mixed * r).sum() + (diagonal**2).sum()
    return norms, biases, float(np.sqrt(max(left, 0.0) / max((diagonal**2).sum(), 1e-300)))


def _best_on_grid(places: Array, mixed: Array, squares: Array, g: Saturating) -> tuple[Array, Array]:
    m = places.shape[1]
    best, norms, biases = np.full(m, np.inf), np.ones(m), np.zeros(m)
    for norm in _NORMS:
        for bias in _BIASES:
            r = norm * g.bending(norm * places + bias)[0]
            cost = (squares * r * r - 2 * mixed * r).sum(axis=0)
            better = cost < best
            best[better], norms[better], biases[better] = cost[better], norm, bias
    return norms, biases
