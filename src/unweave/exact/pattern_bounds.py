"""Lower bounds of the loss for tuples of patterns, many at once: squared, and any convex one by duality.

Write a unit with its sign as c_i = s_i a_i. Where the patterns P_i are fixed, the network is linear in the
c_i, and the least squares value without further conditions,

    B = min_c | y - sum_i P_i Z c_i |^2 = |y|^2 - r^T G^{-1} r,     G_ij = Z^T P_i P_j Z,   r_i = Z^T P_i y,

bounds every network with these patterns from below, whatever its signs. The blocks G_ij are one BLAS product
of the common active points with the products z_a z_b. B is the last pivot of elimination on the Gram matrix
bordered by r and |y|^2, done on all tuples of a block at once. Tuples with a small pivot are computed again
from the singular values of P Z, which separate rank from rounding.

With signs, every point gives a condition g . c >= 0. One violated condition alone raises the bound to

    B + (g . c*)^2 / (g^T G^{-1} g),      c* = G^{-1} r,

and the largest of these, per unit and sign, saves most of the quadratic programs.

Any convex loss: for v with A^T v = 0, A = [P_1 Z, ..., P_w Z],

    min_c sum_j l((A c)_j, y_j)  >=  - sum_j l*(v_j, y_j).

Such v come from reweighted least squares: at predictions f with derivatives g and weights h, the step d that
minimizes sum g_j (A d)_j + h_j (A d)_j^2 / 2 leaves v = g + h A d with A^T v = 0. Scaled into the domain of
l*, every step gives a bound; the largest is kept. A bound is never wrong for stopping early, only smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unweave.arrays import Array, BoolArray, IntArray
from unweave.exact.losses import ConvexLoss, dual_bounds
from unweave.exact.pattern_tree import Level

_LEAST_RELATIVE_PIVOT = 1e-6  # over the diagonal entry: smaller pivots lose digits that the bound needs
_DESIGN_RANK_TOLERANCE = 1e-12  # singular value over the largest: smaller ones are rounding
_TUPLES_PER_BLOCK = 4_096  # tuples eliminated at once, so that their Gram matrices stay in cache
_ENTRIES_PER_SVD = 2_000_000  # design matrix entries factorized at once: 16 MB
_REWEIGHTED_STEPS = 6  # later steps do not raise the bound
_DESIGN_ENTRIES = 1_000_000  # entries of design matrices held at once: 8 MB


@dataclass(frozen=True, eq=False)
class SquaredBounds:
    """Least squares bounds at one level; sums of one pattern are kept, those of two computed when needed."""

    level: Level
    products: Array
    """(n, q(q+1)/2): z_a z_b for a <= b."""
    grams: Array
    """(q(q+1)/2, M): Z^T P_i Z, packed."""
    right: Array
    """(q, M): Z^T P_i y."""

    def bounds(self, tuples: IntArray) -> Array:
        """B (K,) of tuples (K, w) of patterns of the level."""
        result = np.empty(len(tuples))
        for start in range(0, len(tuples), _TUPLES_PER_BLOCK):
            block = tuples[start : start + _TUPLES_PER_BLOCK]
            values, trusted = _eliminate(self._bordered(block))
            if not trusted.all():
                values[~trusted] = self._careful(block[~trusted])
            result[start : start + _TUPLES_PER_BLOCK] = values
        return np.maximum(result, 0.0)

    def sign_bounds(self, tuples: IntArray, bounds: Array) -> Array:
        """Bounds (K, 2^w) that one violated condition gives for every vector of signs, as `all_signs` orders.

        ``bounds`` (K,) are those of `bounds`. Where G is not safely invertible they are all there is.
        """
        count, width = tuples.shape
        raised = np.zeros((count, width, 2))
        for start in range(0, count, _TUPLES_PER_BLOCK // 4):
            rows = slice(start, start + _TUPLES_PER_BLOCK // 4)
            solution, spread, trusted = self._solved(tuples[rows])
            for unit in range(width):
                value = solution[unit].T @ self.level.z.T
                rise = value**2 / np.maximum(spread[unit].T @ self.products.T, np.finfo(np.float64).tiny)
                rise[~trusted] = 0.0
                sides = np.where(self.level.patterns[tuples[rows, unit]], value, -value)
                raised[rows, unit, 0] = np.max(rise, axis=1, where=sides < 0, initial=0.0)
                raised[rows, unit, 1] = np.max(rise, axis=1, where=sides > 0, initial=0.0)
        per_sign = [
            raised[:, np.arange(width), (row < 0).astype(int)].max(axis=1) for row in all_signs(width)
        ]
        return np.asarray(bounds[:, None] + np.column_stack(per_sign))

    def _solved(self, tuples: IntArray) -> tuple[list[Array], list[Array], BoolArray]:
        """Per unit c* (q, K) and its block of G^{-1}, packed (q(q+1)/2, K), off-diagonal entries doubled."""
        q, width = self.level.z.shape[1], tuples.shape[1]
        swept, trusted = _sweep(self._bordered(tuples))
        solution, spread = [], []
        for unit in range(width):
            own = range(unit * q, (unit + 1) * q)
            solution.append(np.array([swept[i][-1] for i in own]))
            spread.append(
                np.array([-swept[i][j] * (1.0 if i == j else 2.0) for i in own for j in own if j >= i])
            )
        return solution, spread, trusted

    def _bordered(self, tuples: IntArray) -> list[list[Array]]:
        """Upper triangle of the Gram matrix bordered by r and |y|^2; every entry is a vector (K,)."""
        q, width = self.level.z.shape[1], tuples.shape[1]
        size = width * q
        packed = _packing(q)
        rows: list[list[Array]] = [[np.empty(0)] * (size + 1) for _ in range(size + 1)]
        for i in range(width):
            own, right = self.grams[:, tuples[:, i]], self.right[:, tuples[:, i]]
            for a in range(q):
                rows[i * q + a][size] = right[a]
                for b in range(a, q):
                    rows[i * q + a][i * q + b] = own[packed[a, b]]
            for j in range(i + 1, width):
                both = self.level.patterns[tuples[:, i]] & self.level.patterns[tuples[:, j]]
                cross = self.products.T @ both.astype(np.float64).T
                for a in range(q):
                    for b in range(q):
                        rows[i * q + a][j * q + b] = cross[packed[a, b]]
        rows[size][size] = np.full(len(tuples), float(self.level.y @ self.level.y))
        return rows

    def _careful(self, tuples: IntArray) -> Array:
        """B by singular values; directions at rounding level are no directions."""
        z, y = self.level.z, self.level.y
        n, q = z.shape
        width = tuples.shape[1]
        block = max(1, _ENTRIES_PER_SVD // (n * q * width))
        result = np.empty(len(tuples))
        for start in range(0, len(tuples), block):
            basis, kept = range_basis(self.level, tuples[start : start + block])
            along = np.where(kept, np.einsum("knp,n->kp", basis, y), 0.0)
            residual = y - np.einsum("knp,kp->kn", basis, along)
            result[start : start + block] = np.einsum("kn,kn->k", residual, residual)
        return result


def squared_bounds(level: Level) -> SquaredBounds:
    """Prepare the sums of every single pattern of a level."""
    z, patterns = level.z, level.patterns.astype(np.float64)
    upper = np.triu_indices(z.shape[1])
    products = z[:, upper[0]] * z[:, upper[1]]
    return SquaredBounds(
        level,
        products,
        np.ascontiguousarray((patterns @ products).T),
        np.ascontiguousarray((patterns @ (z * level.y[:, None])).T),
    )


def design(level: Level, tuples: IntArray) -> Array:
    """(K, n, w q) the matrices [P_1 Z, ..., P_w Z] of tuples (K, w)."""
    active = level.patterns[tuples].transpose(0, 2, 1)  # (K, n, w)
    full = active[:, :, :, None] * level.z[None, :, None, :]
    return np.asarray(full.reshape(len(tuples), len(level.z), -1))


def range_basis(level: Level, tuples: IntArray) -> tuple[Array, BoolArray]:
    """Orthonormal vectors (K, n, p) and which of them (K, p) span the range of the design matrices."""
    basis, values, _ = np.linalg.svd(design(level, tuples), full_matrices=False)
    return basis, values > _DESIGN_RANK_TOLERANCE * np.maximum(values[:, :1], np.finfo(np.float64).tiny)


def all_signs(width: int) -> Array:
    """(2^w, w) all vectors of signs, the first all positive."""
    codes = np.arange(2**width)[:, None] >> np.arange(width - 1, -1, -1)[None, :]
    return np.asarray(1.0 - 2.0 * (codes & 1), dtype=np.float64)


def _eliminate(rows: list[list[Array]]) -> tuple[Array, BoolArray]:
    """Last pivot (K,) of elimination on the upper triangles; where every other pivot was large enough."""
    size = len(rows) - 1
    trusted = np.ones(len(rows[size][size]), dtype=np.bool_)
    rows = [list(row) for row in rows]
    diagonal = [rows[k][k] for k in range(size)]
    for k in range(size):
        pivot = rows[k][k]
        good = pivot > _LEAST_RELATIVE_PIVOT * diagonal[k]
        trusted &= good
        inverse = 1.0 / np.where(good, pivot, 1.0)
        for i in range(k + 1, size + 1):
            factor = rows[k][i] * inverse
            for j in range(i, size + 1):
                rows[i][j] = rows[i][j] - factor * rows[k][j]
    return np.array(rows[size][size]), trusted


def _sweep(rows: list[list[Array]]) -> tuple[list[list[Array]], BoolArray]:
    """The bordered matrices swept on all pivots but the last: -G^{-1}, bordered by G^{-1} r and B."""
    size = len(rows) - 1
    trusted = np.ones(len(rows[size][size]), dtype=np.bool_)
    rows = [list(row) for row in rows]
    diagonal = [rows[k][k] for k in range(size)]
    for k in range(size):
        good = rows[k][k] > _LEAST_RELATIVE_PIVOT * diagonal[k]
        trusted &= good
        inverse = 1.0 / np.where(good, rows[k][k], 1.0)
        column = [rows[min(i, k)][max(i, k)] for i in range(size + 1)]
        for i in range(size + 1):
            if i == k:
                continue
            factor = column[i] * inverse
            for j in range(i, size + 1):
                if j != k:
                    rows[i][j] = rows[i][j] - factor * column[j]
            rows[min(i, k)][max(i, k)] = factor
        rows[k][k] = -inverse
    return rows, trusted


def _packing(q: int) -> NDArray[np.int64]:
    """(q, q): where the product of columns a and b is kept."""
    table = np.zeros((q, q), dtype=np.int64)
    upper = np.triu_indices(q)
    table[upper] = np.arange(len(upper[0]))
    return np.maximum(table, table.T)


@dataclass(frozen=True, eq=False)
class ConvexBounds:
    """Dual bounds at one level."""

    level: Level
    loss: ConvexLoss

    def bounds(self, tuples: IntArray) -> Array:
        """Bounds (K,) of tuples (K, w) of patterns of the level."""
        n, q = self.level.z.shape
        block = max(1, _DESIGN_ENTRIES // (n * q * tuples.shape[1]))
        parts = [self._block(tuples[start : start + block]) for start in range(0, len(tuples), block)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def sign_bounds(self, tuples: IntArray, bounds: Array) -> Array:
        """Bounds (K, 2^w) for all signs, as `all_signs` orders them, not below ``bounds`` (K,).

        Where all active units of a point have one sign, so has its prediction; without active units the
        prediction is zero. A point that a prediction of that sign cannot help costs at least l(0, y).
        """
        y, loss = self.level.y, self.loss
        at_zero, slope = loss.value(np.zeros(len(y)), y), loss.derivative(np.zeros(len(y)), y)
        signs = all_signs(tuples.shape[1])
        result = np.repeat(bounds[:, None], len(signs), axis=1)
        block = max(1, _DESIGN_ENTRIES // tuples.shape[1] // len(y))
        for start in range(0, len(tuples), block):
            active = self.level.patterns[tuples[start : start + block]].astype(np.bool_)
            for column, sign in enumerate(signs):
                up, down = active[:, sign > 0].any(axis=1), active[:, sign < 0].any(axis=1)
                helped = (up & (slope < 0)) | (down & (slope > 0))
                part = result[start : start + block, column]
                np.maximum(part, (~helped) @ at_zero, out=part)
        return result

    def _block(self, tuples: IntArray) -> Array:
        y, loss = self.level.y, self.loss
        basis, kept = range_basis(self.level, tuples)
        basis = basis * kept[:, None, :]
        unused = np.eye(basis.shape[2]) * (~kept)[:, None, :]  # keeps the systems of deficient rank solvable
        coefficients = np.zeros((len(tuples), basis.shape[2]))
        best = np.zeros(len(tuples))
        for _ in range(_REWEIGHTED_STEPS):
            f = _times(basis, coefficients)
            weight = loss.weight(f, y)
            gradient = loss.derivative(f, y)
            matrix = np.swapaxes(basis, 1, 2) @ (weight[:, :, None] * basis) + unused
            right = _transposed_times(basis, gradient)[:, :, None]
            step = -np.asarray(np.linalg.solve(matrix, right)[:, :, 0], dtype=np.float64)
            v = gradient + weight * _times(basis, step)
            v = v - _times(basis, _transposed_times(basis, v))  # what the solve's rounding leaves
            best = np.maximum(best, dual_bounds(loss, v, y)[0])
            coefficients = coefficients + step
        return best


def _times(basis: Array, coefficients: Array) -> Array:
    return np.asarray((basis @ coefficients[:, :, None])[:, :, 0])


def _transposed_times(basis: Array, values: Array) -> Array:
    return np.asarray((np.swapaxes(basis, 1, 2) @ values[:, :, None])[:, :, 0])
