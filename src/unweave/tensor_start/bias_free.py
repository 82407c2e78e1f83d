"""One hidden layer without biases, output weights known: least squares in W, and convexity near the truth.

    f_S(W) = 1/(2n) sum_s (sum_i v_i g(w_i . x_s) - y_s)^2,

whose Jacobian has the rows (v_i g'(w_i . x_s) x_s)_i, (n, k d). Parameters are ordered unit by unit.
Only W is free here: a different problem from that of `unweave.networks.parameters`, where everything is.

**Local strong convexity.** At the truth the residual vanishes, and the Hessian of f_S is H = J^T J / n. With
m0 and M0 its extreme eigenvalues, gradient descent of step 1/M0 multiplies the error by at most 1 - m0/M0 a
step, so the *squared* error by (1 - m0/M0)^2. The source states 1 - m0/M0 for the squared error, which is
true and a square root too weak; what is measured is the square.

Predicted, up to constants (given here with constant one), for Gaussian x and k <= d:

    m0 ~ rho(sigma_k) / (kappa^2 lambda),      M0 ~ k sigma_1^(2 p),

sigma_1 >= ... >= sigma_k the singular values of W, kappa = sigma_1/sigma_k, lambda = prod_i
sigma_i/sigma_k^k, times min v_i^2 and max v_i^2 where the output weights are not +-1. Measured, M0 agrees
within a factor of three; m0 is larger than its prediction by five to millions: steps should be planned on
the measured one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.linalg.blas

from unweave.arrays import Array, RealArray
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation, get_activation
from unweave.networks.network import Network
from unweave.numerics.least_squares.problem import Linearisation
from unweave.tensor_start.activation_properties import activation_properties


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


@dataclass(frozen=True)
class LocalConvexity:
    """Extreme eigenvalues of the Hessian at a network, and what follows for descent."""

    smallest: float
    """m0. Zero up to rounding: some direction does not change the output, and no method finds it."""
    largest: float
    """M0."""
    predicted_smallest: float | None
    """rho(sigma_k)/(kappa^2 lambda) min v^2, a lower bound up to a constant; None if k > d or P1 to P3 fail.
    """
    predicted_largest: float | None
    """k sigma_1^(2p) max v^2, up to a constant; None if no power p bounds g'."""

    @property
    def step(self) -> float:
        """1/M0."""
        return 1 / self.largest if self.largest > 0 else np.inf

    @property
    def rate(self) -> float:
        """(1 - m0/M0)^2: what a step of length 1/M0 leaves of |W - W*|_F^2."""
        return (1 - self.smallest / self.largest) ** 2 if self.largest > 0 else 1.0

    def steps_for(self, gain: float) -> float:
        """Steps after which the error |W - W*|_F is ``gain`` < 1 times what it was."""
        if not 0 < gain < 1:
            raise InvalidInput(f"gain must be between 0 and 1. Got {gain} instead. 0.1 is one decimal digit.")
        return float(2 * np.log(gain) / np.log(self.rate)) if 0 < self.rate < 1 else np.inf


def empirical_hessian(network: Network, x: Array) -> Array:
    """H, (k d, k d), of the squared loss at samples x (n, d) whose labels are the network's own.

    Parameters are ordered unit by unit. Cost: n (k d)^2 flops, O((k d)^2) memory.
    """
    weights, outer, activation = bias_free_parts(network)
    if x.ndim != 2 or x.shape[1] != len(weights) or not len(x):
        raise InvalidInput(
            f"x must be of shape (n, {len(weights)}). Got {x.shape} instead. Give one row per sample."
        )
    slopes = activation.jet(x @ weights, 1)[1] * outer
    return np.asarray(gauss_newton_matrix(slopes, x) / len(x), dtype=np.float64)


def local_convexity(network: Network, x: Array) -> LocalConvexity:
    """m0 and M0 at ``network`` on samples x (n, d), beside their predictions.

    Example:
        >>> import unweave
        >>> net = unweave.random_network([4, 2, 1], activation="squared_relu", seed=1000, bias=0)
        >>> x = np.random.default_rng(1000).standard_normal((1000, 4))
        >>> bool(0 < local_convexity(net, x).rate < 1)
        True
    """
    values = scipy.linalg.eigvalsh(empirical_hessian(network, x))
    smallest, largest = max(float(values[0]), 0.0), float(values[-1])
    return LocalConvexity(smallest, largest, *predicted_extremes(network))


def predicted_extremes(network: Network) -> tuple[float | None, float | None]:
    """The predictions of m0 and M0, with constant one."""
    weights, outer, activation = bias_free_parts(network)
    width = weights.shape[1]
    sigma = np.linalg.svd(weights, compute_uv=False)
    if width > len(weights) or sigma[-1] == 0:
        properties = activation_properties(activation)
        smallest = None
    else:
        properties = activation_properties(activation, float(sigma[-1]))
        kappa, product = sigma[0] / sigma[-1], np.prod(sigma / sigma[-1])
        smallest = float(properties.rho.value / (kappa**2 * product) * np.min(outer**2))
    largest = None
    if properties.growth is not None:
        largest = float(width * sigma[0] ** (2 * properties.growth) * np.max(outer**2))
    return smallest if properties.holds else None, largest
