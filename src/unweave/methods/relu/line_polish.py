"""Gauss-Newton on all parameters of a network with one hidden layer of kinked units.

Rows on both sides of every unit's hyperplane, none of them within the error of a parameter of one, make
f(x) = g(x W + b) A + c (+ x S) a smooth function of its parameters around the truth, and a step or two of

    min_delta |y - f - J delta|        (minimum norm: the length of w_i is free)

ends at the rounding of the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters

LARGEST_EXACT = 6e8
"""Rows of J times its columns squared up to which steps are exact."""
LARGEST_POLISH = 3e10
"""The same up to which a polish is worth its seconds."""
_RIDGE = 1e-12  # on the diagonal of the scaled J^T J, whose symmetries make it singular
_RIDGE_RISE = 10.0  # where rounding takes even that away
_STEPS = 3
_RANK = 1e-11  # relative singular values below which a direction is one of the symmetries
_WORTHWHILE = 0.7  # ratio of residuals after and before a step beyond which it was the last one


@dataclass(frozen=True, eq=False)
class Polished:
    """A network after Gauss-Newton."""

    network: Network
    history: tuple[float, ...]
    """Root mean square residual, the start first."""


def polish(network: Network, points: Array, answers: Array) -> Polished:
    """Polish ``network`` on answers (n, K) at points (n, d); it never gets worse."""
    history = [_rms(answers - network(points))]
    if not worth_polishing(answers.size, network.n_parameters) or answers.size < network.n_parameters:
        return Polished(network, tuple(history))
    small = answers.size * network.n_parameters**2 <= LARGEST_EXACT
    solver = _exact_solver if small else _gram_solver
    solve = solver(_jacobian(network, points))
    for step in range(_STEPS):
        if small and step:
            solve = solver(_jacobian(network, points))
        moved = _moved(network, solve((answers - network(points)).reshape(-1)))
        rms = _rms(answers - moved(points))
        if not rms < history[-1]:
            break
        network, enough = moved, rms > _WORTHWHILE * history[-1]
        history.append(rms)
        if enough:
            break
    return Polished(network, tuple(history))


def _exact_solver(jacobian: Array) -> Callable[[Array], Array]:
    """Minimum norm solutions of J d = r."""
    size = _column_sizes(jacobian)

    def solve(residual: Array) -> Array:
        return np.asarray(np.linalg.lstsq(jacobian / size, residual, rcond=_RANK)[0] / size)

    return solve


def _gram_solver(jacobian: Array) -> Callable[[Array], Array]:
    """The same through J^T J, good to a few digits: one factor serves all steps."""
    size = _column_sizes(jacobian)
    scaled = jacobian / size
    gram = scipy.linalg.blas.dsyrk(1.0, scaled.T, lower=1)
    ridge = _RIDGE
    while True:
        try:
            damped = gram + ridge * np.eye(len(size))
            factor = scipy.linalg.cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
            break
        except scipy.linalg.LinAlgError:
            ridge *= _RIDGE_RISE

    def solve(residual: Array) -> Array:
        return np.asarray(scipy.linalg.cho_solve(factor, scaled.T @ residual, check_finite=False) / size)

    return solve


def _column_sizes(jacobian: Array) -> Array:
    size = np.linalg.norm(jacobian, axis=0)
    return np.asarray(np.where(size > 0, size, 1.0))


def worth_polishing(equations: int, parameters: int) -> bool:
    """Whether a polish of this size takes no more than about a second."""
    return equations * parameters**2 <= LARGEST_POLISH


def _jacobian(network: Network, points: Array) -> Array:
    """J (n K, P), parameters in the order of `NetworkParameters`."""
    return ValueJacobian(NetworkParameters.from_network(network), points).dense()


def _moved(network: Network, step: Array) -> Network:
    """The network after a step (P,)."""
    parameters = NetworkParameters.from_network(network)
    return parameters.from_vector(parameters.to_vector() + step).to_network()


def _rms(residual: Array) -> float:
    return float(np.sqrt(np.mean(residual**2)))
