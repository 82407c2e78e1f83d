"""Approximate joint diagonalization by congruence: one square B with H_i close to B diag(s_i) B^T for all i.

Unlike matrix pencils (`unweave.subspace.joint_diagonal`) it uses all matrices at once and tolerates terms
that are not diagonal, as long as they point elsewhere from matrix to matrix.

Alternating pairwise solution: with X_i = V H_i V^T and d_i = diag X_i, the off-diagonal pair (a, b) of the
update V <- A^{-1} V is the least squares solution of X_ab = A_ab d_b + A_ba d_a over all i, a 2 x 2 system
in sums over i. Each sweep costs a congruence of N matrices; from the whitened start 10 to 30 sweeps suffice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.numerics.clock import check
from unweave.subspace.symmetric import symmetric_packing

_MAX_SWEEPS = 300  # ten times what matrices of this form need
_LARGEST_ENTRY_UPDATE = 0.5  # entry of A: larger ones overshoot far from the solution
_LEAST_RELATIVE_DETERMINANT = 1e-6  # of a 2 x 2 system: below, no matrix separates the two columns
_LEAST_RELATIVE_VARIANCE = 1e-6  # over the largest: keeps the whitening finite
_SETTLED_UPDATE = 1e-9  # largest entry of A: after a smaller one only rounding is left


@dataclass(frozen=True, eq=False)
class CongruenceDiagonalisation:
    """Common directions of symmetric matrices, as many as they have rows."""

    directions: Array
    """(D, D) unit columns."""
    off_diagonal: float
    """Squared share of the (whitened) matrices that stays off the diagonal: rounding if H_i = B s_i B^T."""
    sweeps: int


def diagonalise_by_congruence(matrices: Array, normalise: bool = True) -> CongruenceDiagonalisation:
    """Directions of ``matrices`` (N, D, D); ``normalise`` gives every matrix the same weight."""
    d = matrices.shape[1]
    balanced = _normalised(matrices) if normalise else matrices / np.linalg.norm(matrices)
    whitening = _whitening(balanced)
    white = whitening @ balanced @ whitening
    if normalise:
        white = _normalised(white)
    packing = symmetric_packing(d)
    packed = np.asarray(packing.pack(white))
    if len(packed) > packing.size:  # as many principal components do as well, and are fewer
        values, vectors = np.linalg.eigh(packed.T @ packed)
        packed = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    inverse, off_diagonal, sweeps = _pairwise_sweeps(np.asarray(packing.unpack(packed)))
    directions = np.linalg.inv(inverse @ whitening)
    return CongruenceDiagonalisation(directions / np.linalg.norm(directions, axis=0), off_diagonal, sweeps)


def _normalised(matrices: Array) -> Array:
    norms = np.linalg.norm(matrices, axis=(1, 2), keepdims=True)
    return np.asarray(matrices / np.where(norms > 0, norms, 1.0))


def _whitening(matrices: Array) -> Array:
    """R^{-1/2} for the mean R of the matrices' absolute values."""
    values, vectors = np.linalg.eigh(matrices)
    mean = ((vectors * np.abs(values)[:, None, :]) @ vectors.transpose(0, 2, 1)).mean(axis=0)
    spread, axes = np.linalg.eigh(mean)
    spread = np.maximum(spread, _LEAST_RELATIVE_VARIANCE * spread[-1])
    return np.asarray((axes / np.sqrt(spread)) @ axes.T)


def _pairwise_sweeps(matrices: Array) -> tuple[Array, float, int]:
    d = matrices.shape[1]
    v = np.eye(d)
    sweeps = 0
    while sweeps < _MAX_SWEEPS:
        check()
        sweeps += 1
        x = v @ matrices @ v.T
        diagonals = np.einsum("nii->ni", x)
        scale = np.mean(diagonals**2, axis=0) ** -0.25
        v = v * scale[:, None]
        x = x * scale[:, None] * scale
        diagonals = diagonals * scale**2
        products = diagonals.T @ diagonals
        mixed = np.einsum("nab,nb->ab", x, diagonals)
        squares = np.diag(products)
        largest = np.outer(squares, squares)
        determinant = np.maximum(largest - products**2, _LEAST_RELATIVE_DETERMINANT * largest)
        update = (mixed * squares[:, None] - products * mixed.T) / determinant
        np.fill_diagonal(update, 0.0)
        size = float(np.abs(update).max(initial=0.0))
        if size > _LARGEST_ENTRY_UPDATE:
            update *= _LARGEST_ENTRY_UPDATE / size
        v = np.linalg.solve(np.eye(d) + update, v)
        if size < _SETTLED_UPDATE:
            break
    x = v @ matrices @ v.T
    on_diagonal, everything = float(np.sum(np.einsum("nii->ni", x) ** 2)), float(np.sum(x**2))
    return v, 1 - on_diagonal / everything if everything > 0 else 0.0, sweeps
