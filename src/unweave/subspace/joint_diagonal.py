"""Directions of at most D units from a handful of Hessians, by matrix pencils.

Hessians H_i = U diag(c_i) U^T with an invertible D x D matrix U share their congruence: for two random
combinations, H_a H_b^{-1} = U diag(c_a / c_b) U^{-1}, whose eigenvectors are the columns of U (Jennrich).
Several pencils are tried and the one whose rank-one terms explain all the Hessians best is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.numerics.clock import check
from unweave.subspace.symmetric import symmetric_packing

_EIGENVECTOR_FLOPS = 25  # times D^3: eigenvectors of a matrix that is not symmetric


@dataclass(frozen=True, eq=False)
class JointDiagonalisation:
    """Common directions of a set of symmetric matrices."""

    directions: Array
    """(D, D) unit rows."""
    residual: float
    """Norm of what the rank-one terms leave of the matrices, relative to the matrices."""


def jointly_diagonalise(
    packed: Array, dimension: int, rng: np.random.Generator, pencils: int = 24
) -> JointDiagonalisation | None:
    """Directions u_1..u_D with every matrix of ``packed`` (N, p) close to a combination of u_k u_k^T.

    None if none of ``pencils`` random pencils has D real eigenvectors. With N >= 3 matrices the residual
    tells whether the hypothesis of D units holds: for more units it is of order one.
    """
    packing = symmetric_packing(dimension)
    total = np.linalg.norm(packed)
    if total == 0:
        return None
    balanced = packed / np.maximum(np.linalg.norm(packed, axis=1, keepdims=True), total * 1e-300)
    best: JointDiagonalisation | None = None
    for _ in range(pencils):
        check(_EIGENVECTOR_FLOPS * dimension**3 + 2 * packed.size * dimension**2)
        first, second = packing.unpack(rng.standard_normal((2, len(packed))) @ balanced)
        directions = _pencil_directions(first, second)
        if directions is None:
            continue
        terms = packing.outer(directions).T
        coefficients, *_ = np.linalg.lstsq(terms, balanced.T, rcond=None)
        residual = float(np.linalg.norm(balanced.T - terms @ coefficients) / np.linalg.norm(balanced))
        if best is None or residual < best.residual:
            best = JointDiagonalisation(directions, residual)
    return best


def _pencil_directions(first: Array, second: Array) -> Array | None:
    """(D, D) real unit eigenvectors of first second^{-1} as rows, or None."""
    try:
        matrix = np.linalg.solve(second, first).T
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(matrix).all():
        return None
    values, vectors = np.linalg.eig(matrix)
    scale = np.abs(values).max(initial=0.0)
    if np.abs(values.imag).max(initial=0.0) > 1e-8 * scale:
        return None
    directions = np.ascontiguousarray(vectors.real.T)
    norms = np.linalg.norm(directions, axis=1, keepdims=True)
    return directions / norms if (norms > 0).all() else None
