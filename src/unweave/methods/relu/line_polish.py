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
from unweave.numerics.least_squares import LevenbergMarquardtOptions
from unweave.numerics.least_squares.full_steps import take_full_steps

_SYMMETRY_RANK = 1e-11  # relative singular values below which a direction is one of the symmetries
_POLISH_RIDGE_RISE = 10.0  # factor on the ridge where rounding takes it away


@dataclass(frozen=True)
class PolishOptions:
    """What a polish may cost, and how its steps are solved."""

    steps: int = 3
    """Steps, of which one or two reach the rounding of the answers."""
    last_ratio: float = 0.7
    """Ratio of residuals after and before a step beyond which it was the last one."""
    largest: float = 3e10
    """Rows of J times its columns squared up to which a polish is worth its second."""
    largest_exact: float = 6e8
    """The same up to which steps are exact."""
    ridge: float = 1e-12
    """On the diagonal of the scaled J^T J, which its symmetries make singular."""


@dataclass(frozen=True, eq=False)
class Polished:
    """A network after Gauss-Newton."""

    network: Network
    history: tuple[float, ...]
    """Root mean square residual, the start first."""


def polish(network: Network, points: Array, answers: Array, options: PolishOptions | None = None) -> Polished:
    """Polish ``network`` on answers (n, K) at points (n, d); it never gets worse."""
    options = options or PolishOptions()
    size = network.n_parameters
    worth = answers.size >= size and worth_polishing(answers.size, size, options)
    exact = answers.size * size**2 <= options.largest_exact
    kept = None if exact or not worth else _gram_solver(_jacobian(network, points), options.ridge)

    def residual(candidate: Network) -> Array:
        return np.asarray((answers - candidate(points)).reshape(-1))

    def move(candidate: Network, left: Array) -> Network:
        solve = kept or _exact_solver(_jacobian(candidate, points))
        return _moved(candidate, solve(left))

    schedule = LevenbergMarquardtOptions.undamped(
        options.steps if worth else 0, last_ratio=options.last_ratio
    )
    path = take_full_steps(network, residual, move, schedule)
    return Polished(path.point.state, path.history)


def _exact_solver(jacobian: Array) -> Callable[[Array], Array]:
    """Minimum norm solutions of J d = r."""
    size = _column_sizes(jacobian)

    def solve(residual: Array) -> Array:
        return np.asarray(np.linalg.lstsq(jacobian / size, residual, rcond=_SYMMETRY_RANK)[0] / size)

    return solve


def _gram_solver(jacobian: Array, ridge: float) -> Callable[[Array], Array]:
    """The same through J^T J, good to a few digits: one factor serves all steps."""
    size = _column_sizes(jacobian)
    scaled = jacobian / size
    gram = scipy.linalg.blas.dsyrk(1.0, scaled.T, lower=1)
    while True:
        try:
            damped = gram + ridge * np.eye(len(size))
            factor = scipy.linalg.cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
            break
        except scipy.linalg.LinAlgError:
            ridge *= _POLISH_RIDGE_RISE

    def solve(residual: Array) -> Array:
        return np.asarray(scipy.linalg.cho_solve(factor, scaled.T @ residual, check_finite=False) / size)

    return solve


def _column_sizes(jacobian: Array) -> Array:
    size = np.linalg.norm(jacobian, axis=0)
    return np.asarray(np.where(size > 0, size, 1.0))


def worth_polishing(equations: int, parameters: int, options: PolishOptions | None = None) -> bool:
    """Whether a polish of this size takes no more than about a second."""
    return equations * parameters**2 <= (options or PolishOptions()).largest


def _jacobian(network: Network, points: Array) -> Array:
    """J (n K, P), parameters in the order of `NetworkParameters`."""
    return ValueJacobian(NetworkParameters.from_network(network), points).dense()


def _moved(network: Network, step: Array) -> Network:
    """The network after a step (P,)."""
    parameters = NetworkParameters.from_network(network)
    return parameters.from_vector(parameters.to_vector() + step).to_network()


def _rms(residual: Array) -> float:
    return float(np.sqrt(np.mean(residual**2)))
