"""Local strong convexity around the truth: extreme eigenvalues of the Hessian, measured and predicted.

At the truth the residual vanishes, and the Hessian of f_S (`unweave.tensor_start.bias_free`) is

    H = (1/n) sum_s J_s^T J_s,      J_s = (v_i g'(w_i . x_s) x_s)_i,      (k d, k d).

With m0 and M0 its extreme eigenvalues, gradient descent of step 1/M0 multiplies the error by at most
1 - m0/M0 a step, so the *squared* error by (1 - m0/M0)^2. The source states 1 - m0/M0 for the squared
error, which is true and a square root too weak; what is measured is the square.

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

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.tensor_start.activation_properties import activation_properties
from unweave.tensor_start.bias_free import bias_free_parts, gauss_newton_matrix


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
