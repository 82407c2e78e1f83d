"""A layer from Hessians of the rest with respect to its *states*, where widths do not fall.

Where the next layer is as wide as this one, gradients say nothing (`gradient_subspace` has no
complement left). Hessians do. With z = B^T c + tau, M = B^{-1}, p = M grad_c and r = g''/g', the Hessian
with respect to y = g(z) is

    X = D^{-1} ( M H_c M^T - diag(r(z) p) ) D^{-1},     D = diag g'(z).

If the next hidden layer is the last one, the rest is a network with one hidden layer in y, so that all X
lie in span{w_j w_j^T}: its dimension is k = m_{l+1}. (B, tau) minimise the energy of the Hessians'
singular values beyond the k-th. In deeper networks the same with a larger k is biased, but a good start.

Variable projection: rows R of packed, weighted X with leading singular vectors U, Q; the derivatives of
the tail are (I - U U^T) dR (I - Q Q^T). A step multiplies B by I + E.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.smooth_deep.options import TailOptions
from unweave.networks.saturation import Saturating
from unweave.numerics.clock import check, svd_flops
from unweave.subspace.symmetric import symmetric_packing


@dataclass(frozen=True, eq=False)
class TailState:
    """B (m, m) and tau (m,)."""

    mixing: Array
    biases: Array


class HessianTail:
    """The least squares problem for one layer; see the module.

    ``directions_known``: E is diagonal, so that columns of B keep their directions.
    ``exact_entries``: entries of J up to which it is formed (96 MB); beyond, a sketch of it.
    """

    def __init__(
        self,
        coordinates: Array,
        gradients: Array,
        hessians: Array,
        dimension: int,
        g: Saturating,
        start: TailState,
        directions_known: bool = False,
        exact_entries: int = 12_000_000,
        options: TailOptions | None = None,
    ) -> None:
        self._c = coordinates
        self._gradients = gradients
        self._hessians = hessians
        self._dimension = dimension
        self._g = g
        self._directions_known = directions_known
        self._exact_entries = exact_entries
        self._options = options or TailOptions()
        self._packing = symmetric_packing(coordinates.shape[1])
        self._rng = np.random.default_rng(0)  # of sketches, which only cost accuracy of a step
        rows = np.asarray(self._packing.pack(self._parts(start)[0])).reshape(-1, self._packing.size)
        energy = np.linalg.norm(rows, axis=1)
        self._weights = 1 / np.where(energy > 0, energy, 1.0) / np.sqrt(len(energy))

    def _parts(self, state: TailState) -> tuple[Array, ...]:
        inverse = np.linalg.inv(state.mixing)
        z = self._c @ state.mixing + state.biases
        slope, _ = self._g.slopes(z)
        hz = inverse @ self._hessians @ inverse.T  # (n, K, m, m)
        p = np.swapaxes(inverse @ self._gradients, 1, 2)  # (n, K, m)
        r, dr = self._g.bending(z)
        x = hz.copy()
        axis = np.arange(z.shape[1])
        x[:, :, axis, axis] -= r[:, None, :] * p
        x /= slope[:, None, :, None] * slope[:, None, None, :]
        return x, hz, p, slope, z, r, dr

    def _rows(self, state: TailState) -> Array:
        rows = np.asarray(self._packing.pack(self._parts(state)[0])).reshape(-1, self._packing.size)
        return np.asarray(rows * self._weights[:, None])

    def cost(self, state: TailState) -> float:
        """Return the energy of the singular values beyond the dimension."""
        rows = self._rows(state)
        if not np.isfinite(rows).all():
            return np.inf
        check(svd_flops(*rows.shape) / 2)
        values = np.linalg.svd(rows, compute_uv=False)
        return float(np.sum(values[self._dimension :] ** 2))

    def spectrum(self, state: TailState) -> Array:
        """Return the singular values of the weighted Hessians with respect to the states."""
        return np.asarray(np.linalg.svd(self._rows(state), compute_uv=False), dtype=np.float64)

    def normal_equations(self, state: TailState) -> tuple[Array, Array, float]:
        """Return J^T J, J^T r and |r|^2; the parameters are E (row by row, or its diagonal) and tau.

        For wide layers there are far more equations than unknowns. Each X is then projected on some random
        directions of the complement; at zero residual the solution is the same.
        """
        parts = self._parts(state)
        n, outputs, m, _ = parts[0].shape
        weights = self._weights
        rows = np.asarray(self._packing.pack(parts[0])).reshape(n * outputs, -1) * weights[:, None]
        check(svd_flops(*rows.shape))
        left, values, right = np.linalg.svd(rows, full_matrices=False)
        k = self._dimension
        left, right = left[:, :k], right[:k]
        unknowns = m + (m if self._directions_known else m * m)
        directions = self._complement(right, len(rows), unknowns)
        check(2 * len(rows) * len(directions) * (m**3 + k * unknowns))
        matrices = np.asarray(self._packing.unpack(directions))[None, None]
        jacobian = self._derivatives(state, parts, matrices).reshape(n * outputs, -1) * weights[:, None]
        jacobian -= left @ (left.T @ jacobian)
        jacobian = jacobian.reshape(-1, unknowns)
        residual = rows @ directions.T
        residual -= left @ (left.T @ residual)
        return jacobian.T @ jacobian, jacobian.T @ residual.ravel(), float(np.sum(values[k:] ** 2))

    def _complement(self, right: Array, rows: int, unknowns: int) -> Array:
        """Return orthonormal directions (q, p) outside the span ``right`` (k, p): all, or a random sketch."""
        k, p = right.shape
        count = p - k
        if rows * count * unknowns > self._exact_entries:
            kept = self._options.equations_per_unknown * unknowns / max(1, rows - k)
            count = min(count, int(np.ceil(kept)))
        drawn = self._rng.standard_normal((p, count))
        drawn -= right.T @ (right @ drawn)
        return np.asarray(np.linalg.qr(drawn)[0].T)

    def _derivatives(self, state: TailState, parts: tuple[Array, ...], matrices: Array) -> Array:
        """Return <dX, S> (n, K, q, P) for the P parameters and symmetric ``matrices`` S (n, K, q, m, m)."""
        x, hz, p, slope, z, r, dr = parts
        scaled = matrices / (slope[:, None, None, :, None] * slope[:, None, None, None, :])
        diagonal = np.einsum("noqaa->noqa", scaled)
        by_bias = -2 * r[:, None, None, :] * np.einsum("nobk,noqbk->noqb", x, matrices)
        by_bias -= (dr[:, None, :] * p)[:, :, None, :] * diagonal
        s = (z - state.biases)[:, None, None, :]
        turned = diagonal * r[:, None, None, :]  # of E_ab p_b
        if self._directions_known:
            by_mixing = -2 * np.einsum("noqak,noka->noqa", scaled, hz)
            by_mixing += turned * p[:, :, None, :] + s * by_bias
        else:
            full = -2 * (scaled @ hz[:, :, None])
            full += turned[..., None] * p[:, :, None, None, :] + s[..., None] * by_bias[..., None, :]
            by_mixing = full.reshape(*full.shape[:3], -1)
        return np.concatenate([by_mixing, by_bias], axis=-1)

    def moved(self, state: TailState, step: Array) -> TailState:
        """Return the state after a step (P,), shortened where it is long."""
        m, longest = len(state.biases), self._options.longest_step
        largest = float(np.abs(step).max(initial=0.0))
        if largest > longest:
            step = step * (longest / largest)
        change = np.diag(step[:m]) if self._directions_known else step[: m * m].reshape(m, m)
        return TailState(state.mixing @ (np.eye(m) + change), state.biases + step[-m:])


def tail_dimension(next_width: int, matrices: int, next_is_last: bool | None) -> int:
    """Return where the tail begins: exact if the next hidden layer is the last, else a compromise.

    Three times the width biases little; a third of the matrices leaves enough of them beyond.
    """
    if next_is_last:
        return next_width
    return max(1, min(3 * next_width, matrices // 3))


def has_tail(dimension: int, matrices: int, width: int) -> bool:
    """Return whether ``matrices`` Hessians of a layer leave a tail beyond ``dimension``."""
    return dimension < min(matrices, width * (width + 1) // 2)
