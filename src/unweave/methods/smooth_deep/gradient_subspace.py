"""One layer and the range of the next, from gradients alone: the deeper layers drop out.

With the layers below known, c the coordinates that layer l reads, z = B^T c + tau, D = diag g'(z) and W the
weights of layer l+1 with range Q (m, k), the gradient of every output is

    grad_c = B D W h(c)   in   range N(c),      N(c) = B D(c) Q,

whatever the deeper layers make of h. So (B, tau, Q) minimise the part of the gradients outside of
range N(c_i), a least squares problem with zero residual at the truth: norms and biases enter through D.

Variable projection: U_i an orthonormal basis of the complement of N_i, r_i = U_i^T G_i, h_i = N_i^+ G_i;
with q = Q h, a = D q, e = g''(z) q the (Kaufman) derivatives of r are

    d/dB_pr = -(U_p. a_r + (U^T B)_.r e_r c_p),   d/dtau_r = -(U^T B)_.r e_r,   d/dX = -(U^T B D Q') X h

where dQ = Q' X moves the subspace into its complement Q' (m, m-k), which has no redundant directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg.blas

from unweave.arrays import Array
from unweave.methods.smooth_deep.options import SubspaceOptions
from unweave.networks.saturation import Saturating
from unweave.numerics.clock import check
from unweave.numerics.least_squares.manifold_descent import Descent, descend


@dataclass(frozen=True, eq=False)
class LayerState:
    """A layer and the range of the next."""

    mixing: Array
    """B, (m, m)."""
    biases: Array
    """tau, (m,)."""
    next_range: Array
    """Q, (m, k) orthonormal."""


class GradientSubspace:
    """The least squares problem for one layer; see the module.

    ``directions_known``: the columns of B keep their directions, and only their lengths are free.
    ``chunk_entries``: of J that are formed at once (24 MB).
    """

    def __init__(
        self,
        coordinates: Array,
        gradients: Array,
        g: Saturating,
        directions_known: bool = False,
        chunk_entries: int = 3_000_000,
        options: SubspaceOptions | None = None,
    ) -> None:
        self._c = coordinates
        self._g = g
        self._directions_known = directions_known
        self._chunk_entries = chunk_entries
        self.options = options or SubspaceOptions()
        norms = np.linalg.norm(gradients, axis=(1, 2), keepdims=True)
        # Normalised per site; the mean square of a residual is then a relative one.
        self._gradients = gradients / np.where(norms > 0, norms, 1.0) / np.sqrt(len(coordinates))

    def compressed(self, rank: int) -> GradientSubspace:
        """Rotate the outputs of every gradient, and keep no more than ``rank`` of them."""
        if self._gradients.shape[2] <= rank:
            return self
        left, values, _ = np.linalg.svd(self._gradients, full_matrices=False)
        gradients = left[:, :, :rank] * values[:, None, :rank]
        return GradientSubspace(
            self._c, gradients, self._g, self._directions_known, self._chunk_entries, self.options
        )

    def cost(self, state: LayerState) -> float:
        """Return the squared relative part of the gradients outside the subspaces."""
        outside = self._parts(state, slice(None))[4]
        return float(np.sum(outside**2))

    def _parts(self, state: LayerState, rows: slice) -> tuple[Array, Array, Array, Array, Array]:
        slope, second = self._g.slopes(self._c[rows] @ state.mixing + state.biases)
        k = state.next_range.shape[1]
        spanning = (state.mixing * slope[:, None, :]) @ state.next_range
        full, upper = np.linalg.qr(spanning, mode="complete")
        data = self._gradients[rows]
        complement = full[:, :, k:]
        inside = full[:, :, :k].transpose(0, 2, 1) @ data
        try:
            h = np.linalg.solve(upper[:, :k], inside)
        except np.linalg.LinAlgError:
            h = np.full_like(inside, np.nan)
        return slope, second, complement, h, complement.transpose(0, 2, 1) @ data

    def normal_equations(self, state: LayerState) -> tuple[Array, Array, float]:
        """Return J^T J, J^T r and |r|^2; the parameters are B (or norms), tau and X."""
        (n, m), k = self._c.shape, state.next_range.shape[1]
        outputs = self._gradients.shape[2]
        first = m if self._directions_known else m * m
        size = first + m + (m - k) * k
        gram, gradient, cost = np.zeros((size, size), order="F"), np.zeros(size), 0.0
        per_site = (m - k) * outputs
        chunk = max(1, self._chunk_entries // max(1, per_site * size))
        complement_of_range = np.linalg.qr(state.next_range, mode="complete")[0][:, k:]
        unit = state.mixing / np.linalg.norm(state.mixing, axis=0)
        for start in range(0, n, chunk):
            check()
            rows = slice(start, min(n, start + chunk))
            slope, second, complement, h, outside = self._parts(state, rows)
            count = len(slope)
            q = state.next_range @ h  # (n, m, K)
            a = (slope[:, :, None] * q).transpose(0, 2, 1)[:, :, None, :]  # (n, K, 1, m)
            e = (second[:, :, None] * q).transpose(0, 2, 1)[:, :, None, :]
            ub = (complement.transpose(0, 2, 1) @ state.mixing)[:, None]  # (n, 1, m-k, m)
            jacobian = np.empty((count, outputs, m - k, size))
            bent = ub * e
            if self._directions_known:
                along = (complement.transpose(0, 2, 1) @ unit)[:, None]
                jacobian[..., :m] = along * a + bent * (self._c[rows] @ unit)[:, None, None, :]
            else:
                u = complement.transpose(0, 2, 1)[:, None, :, :, None]
                block = u * a[:, :, :, None, :]
                block += bent[:, :, :, None, :] * self._c[rows][:, None, None, :, None]
                jacobian[..., :first] = block.reshape(count, outputs, m - k, first)
            jacobian[..., first : first + m] = bent
            turned = ((ub[:, 0] * slope[:, None, :]) @ complement_of_range)[:, None, :, :, None]
            jacobian[..., first + m :] = (turned * h.transpose(0, 2, 1)[:, :, None, None, :]).reshape(
                count, outputs, m - k, -1
            )
            flat = jacobian.reshape(-1, size)
            residual = outside.transpose(0, 2, 1).ravel()
            gram = scipy.linalg.blas.dsyrk(1.0, flat.T, beta=1.0, c=gram, overwrite_c=1, lower=1)
            gradient -= flat.T @ residual
            cost += float(residual @ residual)
        gram += np.tril(gram, -1).T
        return gram, gradient, cost

    def moved(self, state: LayerState, step: Array) -> LayerState:
        """Return the state after a step (P,)."""
        m, k = state.next_range.shape
        first = m if self._directions_known else m * m
        if self._directions_known:
            norms = np.linalg.norm(state.mixing, axis=0)
            mixing = state.mixing / norms * (norms + step[:m])
        else:
            mixing = state.mixing + step[:first].reshape(m, m)
        biases = state.biases + step[first : first + m]
        complement = np.linalg.qr(state.next_range, mode="complete")[0][:, k:]
        turned = state.next_range + complement @ step[first + m :].reshape(m - k, k)
        return LayerState(mixing, biases, np.linalg.qr(turned)[0])

    def spectrum(self, state: LayerState) -> tuple[Array, Array]:
        """Return left singular vectors (m, m) and values (m,) of the normalised D^{-1} B^{-1} G.

        The leading vectors span the range of layer l+1.
        """
        slope, _ = self._g.slopes(self._c @ state.mixing + state.biases)
        m = len(state.biases)
        # A saturated unit says nothing, and its rounding a lot; but enough sites must be left.
        smallest = slope.min(axis=1)
        enough = min(len(smallest), -(-self.options.telling_columns * m // self._gradients.shape[2]))
        telling = smallest >= min(self.options.telling_slope, float(np.sort(smallest)[-enough]))
        slope = np.maximum(slope[telling], np.finfo(np.float64).eps)
        pulled = np.linalg.solve(state.mixing, self._gradients[telling]) / slope[:, :, None]
        columns = pulled.transpose(1, 0, 2).reshape(m, -1)
        lengths = np.linalg.norm(columns, axis=0)
        columns = columns[:, lengths > 0] / lengths[lengths > 0]
        left, values, _ = np.linalg.svd(columns, full_matrices=False)
        return left, values / np.sqrt(max(columns.shape[1], 1))

    def with_range(self, state: LayerState, width: int) -> LayerState:
        """Return the state with the range of the next layer taken from the gradients."""
        return replace(state, next_range=self.spectrum(state)[0][:, :width])


def range_gap(problem: GradientSubspace, state: LayerState) -> float | None:
    """Return the ratio of singular values at the end of the next layer's range; None if it is everything."""
    values, k = problem.spectrum(state)[1], state.next_range.shape[1]
    return float(values[k - 1] / max(values[k], 1e-300)) if k < len(values) else None


def is_solution(residual: float, gap: float | None, options: SubspaceOptions | None = None) -> bool:
    """Return whether a fit is the layer: nothing is left, and the range clearly ends.

    Where the next layer is hardly narrower, the residual alone says little: a wrong layer leaves little, too.
    """
    options = options or SubspaceOptions()
    if gap is None:
        return residual < options.solved
    return residual < options.nearly_solved and gap > options.clear_end


def narrowed(problem: GradientSubspace, fit: Descent[LayerState]) -> Descent[LayerState]:
    """Return the solution with the narrowest next layer, from one whose range is wide enough or too wide.

    A range that is too wide leaves other layers possible, so the end of the spectrum is only a first guess.
    From there the range shrinks as long as there is a solution.
    """
    k = fit.state.next_range.shape[1]
    values = problem.spectrum(fit.state)[1][: k + 1]
    guess = int(np.argmax(values[:-1] / np.maximum(values[1:], 1e-300))) + 1
    for width in (guess, *range(k - 1, 0, -1)):
        check()
        if width >= k:
            continue
        trial = descend(problem, problem.with_range(fit.state, width), steps=problem.options.narrowing_steps)
        if trial.residual < problem.options.solved:
            fit, k = trial, width
        elif width != guess:
            break
    return fit
