"""Standard errors of a network fitted to noisy answers.

At the least-squares parameters theta, with sigma^2 = RSS / (n - P) per output,

    cov(theta) = T (T^T (sum_k J_k^T J_k / sigma_k^2) T)^{-1} T^T,

J_k the Jacobian of output k and T an orthonormal basis of the directions that change the function: lengths of
incoming weights are fixed at one, because homogeneous units trade them for outer weights. Valid while errors
are small against the distances between kinks; intervals of +-1.645 standard errors cover nine times in ten.

Cost: n P^2 + P^3 flops.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.network import Network

LARGEST = 4000
"""Number of parameters up to which standard errors are computed."""
_BLOCK_ENTRIES = 4_000_000


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """Standard errors of the parameters of ``network``, in its own shapes."""

    network: Network
    """The network given, with incoming weights of length one."""
    weights: tuple[Array, Array]
    biases: tuple[Array, Array]
    skip: Array | None
    sigma: Array
    """(K,) estimated standard deviation of the answers."""
    condition: float
    """Of the scaled information matrix' square root."""

    @property
    def largest(self) -> float:
        """The largest one."""
        arrays = [*self.weights, *self.biases] + ([] if self.skip is None else [self.skip])
        return max(float(array.max(initial=0.0)) for array in arrays)


def standard_errors(network: Network, x: Array, y: Array) -> StandardErrors | None:
    """Of a network with one hidden layer of homogeneous units fitted to x (n, d), y (n, K).

    ``x`` and ``y`` are the samples that were fitted, without those held out: with more than were used, errors
    come out too small. None where they do not determine all parameters, or for more than `LARGEST` of them.
    """
    if len(network.hidden) != 1 or get_activation(network.activations[0]).homogeneity is None:
        raise InvalidInput(
            "network must have one hidden layer of homogeneous units (relu, leaky_relu, squared_relu). "
            f"Got {network!r} instead."
        )
    network = _unit_length(network)
    residual = y - network(x)
    outputs, inputs, width = network.n_outputs, network.n_inputs, network.hidden[0]
    linear = width + 1 + (0 if network.skip is None else inputs)
    nonlinear = width * (inputs + 1)
    free = nonlinear - width + outputs * linear
    if free >= y.size or nonlinear + outputs * linear > LARGEST:
        return None
    sigma = np.sqrt((residual**2).sum(axis=0) / (len(x) - free / outputs))
    sigma = np.maximum(sigma, np.finfo(np.float64).eps * np.abs(y).max(axis=0) + np.finfo(np.float64).tiny)
    information = _information(network, x, sigma)
    tangents = block_diag(*(_tangent(w) for w in network.weights[0].T), np.eye(outputs * linear))
    reduced = tangents.T @ information @ tangents
    scale = np.sqrt(reduced.diagonal())
    if not (scale > 0).all():
        return None
    reduced /= scale[:, None] * scale
    try:
        factor = cho_factor(reduced)
    except LinAlgError:
        return None
    eigenvalues = np.linalg.eigvalsh(reduced)
    directions = tangents / scale
    variances = np.einsum("ij,ji->i", directions, cho_solve(factor, directions.T))
    errors = np.sqrt(np.maximum(variances, 0.0))
    hidden = errors[:nonlinear].reshape(width, inputs + 1)
    per_output = errors[nonlinear:].reshape(outputs, linear)
    return StandardErrors(
        network,
        (hidden[:, :-1].T, per_output[:, :width].T),
        (hidden[:, -1], per_output[:, width]),
        None if network.skip is None else per_output[:, width + 1 :].T,
        sigma,
        float(np.sqrt(eigenvalues[-1] / eigenvalues[0])) if eigenvalues[0] > 0 else np.inf,
    )


def _unit_length(network: Network) -> Network:
    length = np.linalg.norm(network.weights[0], axis=0)
    length = np.where(length > 0, length, 1.0)
    power = get_activation(network.activations[0]).homogeneity or 1
    weights = [network.weights[0] / length, network.weights[1] * length[:, None] ** power]
    return Network(
        weights, [network.biases[0] / length, network.biases[1]], network.activations, network.skip
    )


def _tangent(direction: Array) -> Array:
    """Orthonormal basis (d+1, d) of the changes of (w, b) that leave |w| = 1."""
    full = np.linalg.qr(np.column_stack([direction, np.eye(len(direction))]))[0]
    return np.asarray(block_diag(full[:, 1 : len(direction)], np.ones((1, 1))))


def _information(network: Network, x: Array, sigma: Array) -> Array:
    """sum_k J_k^T J_k / sigma_k^2, parameters ordered unit by unit (w_i, b_i), then (a_.k, c_k, skip_.k)."""
    activation = get_activation(network.activations[0])
    outputs, inputs, width = network.n_outputs, network.n_inputs, network.hidden[0]
    nonlinear = width * (inputs + 1)
    linear = width + 1 + (0 if network.skip is None else inputs)
    total = np.zeros((nonlinear + outputs * linear,) * 2)
    block = max(1, _BLOCK_ENTRIES // (nonlinear + linear))
    for begin in range(0, len(x), block):
        rows = x[begin : begin + block]
        value, slope = activation.jet(rows @ network.weights[0] + network.biases[0], 1)
        extended = np.hstack([rows, np.ones((len(rows), 1))])
        parts = [value, np.ones((len(rows), 1))] + ([] if network.skip is None else [rows])
        own = np.hstack(parts)
        for k in range(outputs):
            hidden = ((slope * network.weights[1][:, k])[:, :, None] * extended[:, None]).reshape(
                len(rows), -1
            )
            part = slice(nonlinear + k * linear, nonlinear + (k + 1) * linear)
            weight = 1 / sigma[k] ** 2
            total[:nonlinear, :nonlinear] += weight * (hidden.T @ hidden)
            total[:nonlinear, part] += weight * (hidden.T @ own)
            total[part, part] += weight * (own.T @ own)
    total[nonlinear:, :nonlinear] = total[:nonlinear, nonlinear:].T
    return total
