"""Standard errors of a network fitted to noisy answers.

At the least-squares parameters theta, with sigma^2 = RSS / (n - P) per output,

    cov(theta) = T (T^T (sum_k J_k^T J_k / sigma_k^2) T)^{-1} T^T,

J_k the Jacobian of output k and T an orthonormal basis of the directions that change the function: lengths of
incoming weights are fixed at one, because homogeneous units trade them for outer weights. Valid while errors
are small against the distances between kinks; intervals of +-1.645 standard errors cover nine times in ten.

T is one block per unit, so that products with it are cheap: the cost is n P^2 flops for the information, P^3
for its factor and that factor's inverse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cholesky, lapack

from unweave.arrays import Array
from unweave.errors import InvalidInput, OutOfTime
from unweave.networks.activations import get_activation
from unweave.networks.error_bars import with_fixed_lengths
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check
from unweave.numerics.lanczos import root_condition

MOST_PARAMETERS = 4000
"""Number of parameters up to which standard errors are computed: P^3 flops are seconds there."""
_JACOBIAN_BLOCK_ENTRIES = 4_000_000  # rows times parameters taken at once: 32 MB

_FACTOR_FLOPS = 2  # times P^3: the factor, and its inverse


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
    tangents = _tangents(network.weights[0])
    reduced = _projected(_projected(information, tangents).T, tangents)
    scale = np.sqrt(reduced.diagonal())
    if not (scale > 0).all():
        return None
    reduced /= scale[:, None] * scale
    try:
        lower = cholesky(reduced, lower=True, check_finite=False)
    except LinAlgError:
        return None
    inverse = lapack.dtrtri(lower, lower=1)[0] / scale
    errors = model.from_vector(_lengths(inverse, tangents))
    return StandardErrors(
        network,
        (errors.weights[0], errors.weights[1]),
        (errors.biases[0], errors.biases[1]),
        errors.skip,
        sigma,
        root_condition(reduced, lower),
    )


def _tangents(weights: Array) -> Array:
    """Return for each unit an orthonormal basis (m, d+1, d) of the changes of (w; b) that leave |w| = 1."""
    inputs, width = weights.shape
    result = np.zeros((width, inputs + 1, inputs))
    for unit, direction in enumerate(weights.T):
        full = np.linalg.qr(np.column_stack([direction, np.eye(inputs)]))[0]
        result[unit, :-1, :-1] = full[:, 1:inputs]
        result[unit, -1, -1] = 1.0
    return result


def _projected(matrix: Array, tangents: Array) -> Array:
    """Return T^T A for A (P, c), whose rows are [W; b] and then the linear parameters."""
    units, numbers, directions = tangents.shape
    nonlinear = units * numbers
    by_unit = matrix[:nonlinear].reshape(numbers, units, -1).transpose(1, 0, 2)
    moved = (tangents.transpose(0, 2, 1) @ by_unit).reshape(units * directions, -1)
    return np.vstack([moved, matrix[nonlinear:]])


def _lengths(inverse: Array, tangents: Array) -> Array:
    """Return the lengths of the columns of ``inverse`` T^T (P,): roots of a covariance's diagonal."""
    units, numbers, directions = tangents.shape
    squares = np.zeros((numbers, units))
    for unit, basis in enumerate(tangents):
        columns = inverse[:, unit * directions : (unit + 1) * directions] @ basis.T
        squares[:, unit] = np.einsum("ij,ij->j", columns, columns)
    linear = inverse[:, units * directions :]
    lengths: Array = np.sqrt(np.concatenate([squares.reshape(-1), np.einsum("ij,ij->j", linear, linear)]))
    return lengths


def _information(model: NetworkParameters, x: Array, sigma: Array) -> Array:
    """Return sum_k J_k^T J_k / sigma_k^2 (P, P)."""
    total = np.zeros((model.size, model.size))
    block = max(1, _JACOBIAN_BLOCK_ENTRIES // model.size)
    for begin in range(0, len(x), block):
        rows = x[begin : begin + block]
        factors = np.broadcast_to(1 / sigma, (len(rows), len(sigma)))
        total += ValueJacobian(model, rows, factors).gram()
    return np.asarray(np.triu(total) + np.triu(total, 1).T)
