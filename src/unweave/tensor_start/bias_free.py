"""One hidden layer without biases and with known output weights, as a least-squares problem in W.

    f_S(W) = 1/(2n) sum_s (sum_i v_i g(w_i . x_s) - y_s)^2,

whose Jacobian has the rows (v_i g'(w_i . x_s) x_s)_i, (n, k d). Parameters are ordered unit by unit.
Only W is free here: a different problem from that of `unweave.networks.parameters`, where everything is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg.blas

from unweave.arrays import Array, RealArray
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation, get_activation
from unweave.networks.network import Network
from unweave.numerics.least_squares.problem import Linearisation


@dataclass(frozen=True, eq=False)
class BiasFreeFit:
    """Residual y - sum_i v_i g(w_i . x) on samples; the vector of parameters is W^T, row by row."""

    activation: Activation
    outer: Array
    """v, (k,)."""
    x: Array
    """(n, d)."""
    y: Array
    """(n,)."""

    @property
    def n_equations(self) -> int:
        """n"""
        return len(self.y)

    def weights(self, vector: Array) -> Array:
        """W, (d, k)."""
        return np.asarray(vector.reshape(len(self.outer), self.x.shape[1]).T)

    def vector(self, weights: Array) -> Array:
        """The parameters of W (d, k), unit by unit."""
        return np.asarray(weights.T.reshape(-1))

    def residual(self, vector: Array) -> Array:
        """Data minus model, (n,)."""
        return np.asarray(self.y - self.activation(self.x @ self.weights(vector)) @ self.outer)

    def linearise(self, vector: Array) -> BiasFreeLinearisation:
        """The model's Jacobian."""
        slopes = self.activation.jet(self.x @ self.weights(vector), 1)[1] * self.outer
        return BiasFreeLinearisation(slopes, self.x)

    def network(self, vector: Array) -> Network:
        """The network with these weights."""
        return bias_free_network(self.weights(vector), self.outer, self.activation.name)


class BiasFreeLinearisation(Linearisation):
    """The Jacobian as slopes v_i g'(w_i . x_s), (n, k), and points, (n, d)."""

    def __init__(self, slopes: RealArray, points: RealArray) -> None:
        self._slopes, self._points = slopes, points

    def apply(self, vector: RealArray) -> RealArray:
        """J v."""
        steps = vector.reshape(self._slopes.shape[1], -1)
        return np.asarray(np.einsum("nk,nk->n", self._slopes, self._points @ steps.T))

    def adjoint(self, rows: RealArray) -> RealArray:
        """J^T r."""
        return np.asarray(((self._slopes * rows[:, None]).T @ self._points).reshape(-1))

    def dense(self) -> Array:
        """J."""
        return np.asarray(_rows(self._slopes, self._points), dtype=np.float64)

    def gram(self) -> RealArray:
        """J^T J, block of rows by block of rows."""
        return gauss_newton_matrix(self._slopes, self._points)

    def in_single_precision(self) -> BiasFreeLinearisation:
        """The same in float32."""
        return BiasFreeLinearisation(self._slopes.astype(np.float32), self._points.astype(np.float32))

    def preconditioner_diagonal(self) -> Array:
        """1 / diag(J^T J)."""
        diagonal = np.asarray((self._slopes**2).T @ self._points**2, dtype=np.float64).reshape(-1)
        return np.asarray(1 / np.where(diagonal > 0, diagonal, 1.0))

    def precondition(self, vector: RealArray) -> RealArray:
        """Division by diag(J^T J)."""
        return np.asarray(vector * self.preconditioner_diagonal())


def gauss_newton_matrix(slopes: RealArray, points: RealArray, block_entries: int = 4_000_000) -> RealArray:
    """J^T J, (k d, k d) and symmetric, for slopes (n, k) and points (n, d): n (k d)^2 flops.

    ``block_entries`` limits the entries of J formed at once, by default to 32 MB.
    """
    size = slopes.shape[1] * points.shape[1]
    syrk = scipy.linalg.blas.dsyrk if slopes.dtype == np.float64 else scipy.linalg.blas.ssyrk
    total = np.zeros((size, size), dtype=slopes.dtype, order="F")
    step = max(1, block_entries // size)
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        # The transpose of rows in C order is the Fortran matrix that BLAS wants: nothing is copied.
        total = syrk(1.0, _rows(slopes[rows], points[rows]).T, beta=1.0, c=total, overwrite_c=True)
    return np.asarray(np.triu(total) + np.triu(total, 1).T)


def bias_free_network(weights: Array, outer: Array, activation: str) -> Network:
    """sum_i v_i g(w_i . x) as a network, from W (d, k) and v (k,)."""
    return Network([weights, outer[:, None]], [np.zeros(len(outer)), np.zeros(1)], [activation, "identity"])


def bias_free_parts(network: Network) -> tuple[Array, Array, Activation]:
    """W (d, k), v (k,) and g of a network of this class; others are refused."""
    biased = any(np.any(bias != 0) for bias in network.biases) or network.skip is not None
    shape = len(network.hidden) == 1 and network.n_outputs == 1 and network.activations[-1] == "identity"
    if biased or not shape:
        raise InvalidInput(
            f"network must have one hidden layer, one identity output and no biases. Got {network} "
            f"{'with biases or a skip ' if biased else ''}instead. The theory covers sum_i v_i g(w_i . x) "
            "only."
        )
    return network.weights[0], network.weights[1][:, 0], get_activation(network.activations[0])


def _rows(slopes: RealArray, points: RealArray) -> RealArray:
    return np.asarray((slopes[:, :, None] * points[:, None, :]).reshape(len(points), -1))
