"""Whitening: make independent weights orthonormal, and read profiles along the dual basis.

For f(x) = sum_k g_k(<w_k, x>) with independent w_1, .., w_m, m <= D, let W = span{w_k w_k^T} be known, and
let G = sum_k s_k w_k w_k^T be a member of W that is positive definite on span{w_k} ([identification] sec.
1.5). There G = V S V^T, and with T = S^(-1/2) V^T

    sum_k s_k (T w_k)(T w_k)^T = T G T^T = I:      the vectors sqrt(s_k) T w_k are orthonormal,

and they are the weights of y -> f(T^T y). (The source prints f(T y).) Members of T W T^T are diagonal in
them, so that the eigenvectors of any one with distinct eigenvalues are the weights.

**Positive definite members** are found by the perceptron's rule: while v^T G v <= 0 for the eigenvector v of
the least eigenvalue, add the projection of v v^T. It ends if one exists.

**Dual basis.** With <b_j, w_k> = 1{j = k}, f(t b_j) = g_j(t) + sum_{k != j} g_k(0): one line shows one
profile, exactly, and

    f(x) = f(0) + sum_k ( f(<w_k, x> b_k) - f(0) ).

No profile need be known, and none is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.clock import check
from unweave.subspace.rank_one_space import RankOneSpace

Function = Callable[[Array], Array]
"""Rows (N, D) to values (N,) or (N, K)."""

_ACTIVE_ROUNDING = 1e-9  # eigenvalue of the sum of squares over the largest: below it lies no weight


@dataclass(frozen=True, eq=False)
class Whitening:
    """The change of inputs that makes the weights orthonormal."""

    transform: Array
    """T (m, D): f(y @ T) has orthonormal weights."""
    member: Array
    """G (D, D), positive definite on the span of the weights."""
    active: Array
    """(D, m) orthonormal columns that span the weights."""

    def directions(self, space: RankOneSpace, rng: np.random.Generator) -> Array:
        """Unit rows w_k (m, D) up to signs: eigenvectors of one whitened member of ``space``, taken back."""
        basis = np.asarray(space.packing.unpack(space.basis.T), dtype=np.float64)
        member = np.einsum("j,jab->ab", rng.standard_normal(len(basis)), basis)
        vectors = np.linalg.eigh(self.transform @ member @ self.transform.T)[1]
        # T w = y and w in the active space, where T is invertible.
        rows = np.linalg.solve(self.transform @ self.active, vectors).T @ self.active.T
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def whiten(space: RankOneSpace, most_rounds: int = 1000) -> Whitening:
    """A positive definite member of ``space`` and the transform that it gives.

    ``space`` must be the span of m squares of independent vectors, m <= D; raises `InvalidInput` where no
    positive definite member is found within ``most_rounds``. Cost: a round is an eigenproblem of size m.

    Example:
        >>> from unweave.subspace import orthonormal_basis, symmetric_packing
        >>> w = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]])
        >>> packing = symmetric_packing(3)
        >>> space = RankOneSpace(orthonormal_basis(packing.outer(w).T), packing)
        >>> found = whiten(space)
        >>> y = found.transform @ w.T
        >>> abs(float(y[:, 0] @ y[:, 1])) < 1e-12
        True
    """
    basis = np.asarray(space.packing.unpack(space.basis.T), dtype=np.float64)  # (m, D, D)
    m = len(basis)
    sizes, vectors = np.linalg.eigh(np.einsum("jab,jbc->ac", basis, basis))
    inside = int(np.sum(sizes > _ACTIVE_ROUNDING * sizes[-1]))
    if inside != m:
        raise InvalidInput(
            f"space must be the span of squares of independent vectors: of dimension {inside}, that of the "
            f"vectors they reach. Got dimension {m} instead. For more units than inputs use "
            f"subspace_power_method."
        )
    active = vectors[:, -m:]
    small = np.einsum("ai,jab,bk->jik", active, basis, active)  # members, in coordinates of the active space
    coefficients = np.einsum("jii->j", small)  # the projection of the identity
    for _ in range(most_rounds):
        check()
        coefficients /= np.linalg.norm(coefficients)
        values, columns = np.linalg.eigh(np.einsum("j,jik->ik", coefficients, small))
        if values[0] > 0:
            transform = (columns / np.sqrt(values)).T @ active.T
            return Whitening(transform, np.einsum("j,jab->ab", coefficients, basis), active)
        least = columns[:, 0]
        coefficients = coefficients + np.einsum("i,jik,k->j", least, small, least)
    raise InvalidInput(
        f"space must hold a positive definite matrix. None was found in {most_rounds} rounds. Check "
        f"that it is the span of squares, and not of other matrices."
    )


def dual_basis(directions: Array) -> Array:
    """b (m, D) with <b_j, w_k> = 1{j = k} for independent rows w (m, D), in their span."""
    rows = np.asarray(directions, dtype=np.float64)
    if rows.ndim != 2 or np.linalg.matrix_rank(rows) < len(rows):
        raise InvalidInput(
            f"directions must be independent rows (m, D). Got shape {rows.shape} instead, or dependent ones. "
            f"More units than inputs have no dual basis."
        )
    return np.asarray(np.linalg.pinv(rows).T)


def dual_profiles(function: Function, directions: Array, times: Array) -> Array:
    """g_j(t) - g_j(0) at ``times`` (T,) for every row of ``directions`` (m, D): (m, T), or (m, T, K).

    Cost: m T + 1 rows.
    """
    duals = dual_basis(directions)
    rows = (times[None, :, None] * duals[:, None, :]).reshape(-1, duals.shape[1])
    values = np.asarray(function(rows)) - np.asarray(function(np.zeros((1, duals.shape[1]))))
    return values.reshape(len(duals), len(times), *values.shape[1:])


def along_duals(function: Function, directions: Array) -> Function:
    """x -> f(0) + sum_k (f(<w_k, x> b_k) - f(0)): equal to ``function`` if these are its weights' lines."""
    rows, duals = np.asarray(directions, dtype=np.float64), dual_basis(directions)

    def rebuilt(x: Array) -> Array:
        start = np.asarray(function(np.zeros((1, rows.shape[1]))))
        parts = [np.asarray(function((x @ w)[:, None] * b)) - start for w, b in zip(rows, duals, strict=True)]
        return np.asarray(start + sum(parts))

    return rebuilt
