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
from unweave.errors import InvalidInput, OutOfTime
from unweave.networks.activations import get_activation
from unweave.networks.error_bars import with_fixed_lengths
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check

MOST_PARAMETERS = 4000
"""Number of parameters up to which standard errors are computed: P^3 flops are seconds there."""
_JACOBIAN_BLOCK_ENTRIES = 4_000_000  # rows times parameters taken at once: 32 MB

_FACTOR_FLOPS = 12  # times P^3: products with tangents, eigenvalues, the inverse


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

    def as_network(self) -> Network:
        """Return the errors in the shapes of the network."""
        return Network(self.weights, self.biases, self.network.activations, self.skip)

    @property
    def largest(self) -> float:
        """The largest standard error."""
        arrays = [*self.weights, *self.biases] + ([] if self.skip is None else [self.skip])
        return max(float(array.max(initial=0.0)) for array in arrays)


def standard_errors(network: Network, x: Array, y: Array) -> StandardErrors | None:
    """Return those of a network with one hidden layer of homogeneous units fitted to x (n, d), y (n, K).

    ``x`` and ``y`` are the samples that were fitted, without those held out: with more than were used, errors
    come out too small. None where they do not determine all parameters, for more than `MOST_PARAMETERS`, or
    where no time is left.
    """
    if len(network.hidden) != 1 or get_activation(network.activations[0]).homogeneity is None:
        raise InvalidInput(
            "network must have one hidden layer of homogeneous units (relu, leaky_relu, squared_relu). "
            f"Got {network!r} instead."
        )
    model = with_fixed_lengths(NetworkParameters.from_network(network))
    network = model.to_network()
    residual = y - network(x)
    outputs, inputs, width = network.n_outputs, network.n_inputs, network.hidden[0]
    linear = width + 1 + (0 if network.skip is None else inputs)
    nonlinear = width * (inputs + 1)
    free = nonlinear - width + outputs * linear
    if free >= y.size or nonlinear + outputs * linear > MOST_PARAMETERS:
        return None
    sigma = np.sqrt((residual**2).sum(axis=0) / (len(x) - free / outputs))
    sigma = np.maximum(sigma, np.finfo(np.float64).eps * np.abs(y).max(axis=0) + np.finfo(np.float64).tiny)
    try:
        information = _information(model, x, sigma)
        check(_FACTOR_FLOPS * model.size**3)
    except OutOfTime:
        return None
    tangents = block_diag(_tangents(network.weights[0]), np.eye(model.size - nonlinear))
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
    errors = model.from_vector(np.sqrt(np.maximum(variances, 0.0)))
    return StandardErrors(
        network,
        (errors.weights[0], errors.weights[1]),
        (errors.biases[0], errors.biases[1]),
        errors.skip,
        sigma,
        float(np.sqrt(eigenvalues[-1] / eigenvalues[0])) if eigenvalues[0] > 0 else np.inf,
    )


def _tangents(weights: Array) -> Array:
    """Return an orthonormal basis (m (d+1), m d) of the changes of [W; b] that leave every |w_r| = 1."""
    inputs, width = weights.shape
    result = np.zeros((inputs + 1, width, width, inputs))
    for unit, direction in enumerate(weights.T):
        full = np.linalg.qr(np.column_stack([direction, np.eye(inputs)]))[0]
        result[:-1, unit, unit, :-1] = full[:, 1:inputs]
        result[-1, unit, unit, -1] = 1.0
    return result.reshape(weights.size + width, -1)


def _information(model: NetworkParameters, x: Array, sigma: Array) -> Array:
    """Return sum_k J_k^T J_k / sigma_k^2 (P, P)."""
    total = np.zeros((model.size, model.size))
    block = max(1, _JACOBIAN_BLOCK_ENTRIES // model.size)
    for begin in range(0, len(x), block):
        rows = x[begin : begin + block]
        factors = np.broadcast_to(1 / sigma, (len(rows), len(sigma)))
        total += ValueJacobian(model, rows, factors).gram()
    return np.asarray(np.triu(total) + np.triu(total, 1).T)
