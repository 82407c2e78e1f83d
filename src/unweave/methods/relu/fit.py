"""Fits of all parameters of one hidden layer of kinked units.

Given the signs, f(x) = g(x W + b) A + c (+ x S) is a smooth function of its parameters around the truth on
rows that lie on both sides of every unit's hyperplane, none of them within the error of a parameter of one. A
step or two of

    min_delta |y - f - J delta|        (minimum norm: the length of w_i is free)

ends at the rounding of the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.signs import SignSolution, sign_matrix, to_form, to_network
from unweave.numerics.least_squares import LevenbergMarquardtOptions
from unweave.numerics.least_squares.cholesky_factor import cholesky_factor
from unweave.numerics.least_squares.full_steps import take_full_steps

_ERROR_DRAWS = 8  # patterns of signs over which the error of the sign equations is averaged
_ERROR_STEP = 1e-6  # relative length of the step that shows it


@dataclass(frozen=True, kw_only=True)
class PolishOptions:
    """What a polish of all parameters may cost, and how its steps are solved."""

    steps: int = 3
    """Number of steps, of which one or two reach the rounding of the answers."""
    last_ratio: float = 0.7
    """Ratio of residuals after and before a step beyond which it was the last one."""
    largest: float = 2e11
    """Rows of J times its columns squared up to which a polish is worth its second."""
    largest_exact: float = 6e8
    """The same up to which steps are exact."""
    ridge: float = 1e-12
    """Added to the diagonal of J^T J, relative to it: the symmetries make J^T J singular."""
    symmetry_rank: float = 1e-11
    """Relative singular values of J below which a direction is one of the symmetries."""


DEFAULT_POLISH_OPTIONS = PolishOptions()


@dataclass(frozen=True, eq=False)
class Polished:
    """A network after Gauss-Newton."""

    network: Network
    history: tuple[float, ...]
    """Root mean square residual, the start first."""


def polish(
    network: Network,
    points: Array,
    answers: Array,
    options: PolishOptions = DEFAULT_POLISH_OPTIONS,
    weights: Array | None = None,
) -> Polished:
    """Polish ``network`` on answers (n, K) at points (n, d); it never gets worse.

    Residuals are multiplied by ``weights`` (n,), if given.
    """
    start, size = NetworkParameters.from_network(network), network.n_parameters
    worth = answers.size >= size and worth_polishing(answers.size, size, options)
    exact = answers.size * size**2 <= options.largest_exact
    factors = None if weights is None else weights[:, None]
    kept = None if exact or not worth else _gram_solver(_jacobian(start, points, factors), options.ridge)

    def residual(model: NetworkParameters) -> Array:
        left = answers - model.values(points)
        return np.asarray((left if factors is None else factors * left).reshape(-1))

    def move(model: NetworkParameters, left: Array) -> NetworkParameters:
        solve = kept or _exact_solver(_jacobian(model, points, factors), options.symmetry_rank)
        return model.from_vector(model.to_vector() + solve(left))

    steps = options.steps if worth else 0
    schedule = LevenbergMarquardtOptions.undamped(steps, last_ratio=options.last_ratio)
    path = take_full_steps(start, residual, move, schedule)
    end = path.point.state
    return Polished(network if end is start else end.to_network(), path.history)


def effects(network: Network) -> Array:
    """Return by how much the slope of the answers changes at most at the kink of every unit, (m,)."""
    incoming, outgoing = network.weights
    return np.asarray(np.linalg.norm(incoming, axis=0) * np.linalg.norm(outgoing, axis=1))


def standard_error(
    network: Network, points: Array, weights: Array, noise: float, options: PolishOptions
) -> float:
    """Return the largest standard error of a parameter, infinite if rows leave more open than symmetries do.

    ``noise`` is the standard deviation of a residual times its weight (n,).
    """
    jacobian = _jacobian(NetworkParameters.from_network(network), points, weights[:, None])
    size = np.linalg.norm(jacobian, axis=0)
    if not (size > 0).all() or len(jacobian) < jacobian.shape[1]:
        return np.inf
    _, values, axes = np.linalg.svd(jacobian / size, full_matrices=False)
    known = values > options.symmetry_rank * values[0]
    if (~known).sum() > sum(network.hidden):  # one for the length of every unit's weights
        return np.inf
    return noise * float((np.linalg.norm(axes[known] / values[known, None], axis=0) / size).max())


def polished_form(
    form: AbsoluteForm, points: Array, answers: Array, options: PolishOptions, rng: np.random.Generator
) -> tuple[AbsoluteForm, float] | None:
    """Polish a form without knowing signs; return the standard error of its sign equations, too.

    The error is relative to the size of their matrix: what random errors of the answers do to the sums of
    randomly signed units less the slope. None if a polish is not worth its time, or rows are too few.
    """
    open_signs = SignSolution(np.ones(form.width), np.nan, "none", solved=False, unique=False)
    start = to_network(form, open_signs)
    size = start.n_parameters
    if answers.size <= size or not worth_polishing(answers.size, size, options):
        return None
    near = NetworkParameters.from_network(polish(start, points, answers, options).network)
    solve = _gram_solver(_jacobian(near, points), options.ridge)
    # One more step, on residuals that hold the target's rounding but not our own.
    left = _precise_residual(near, points, answers)
    model = near.from_vector(near.to_vector() + solve(left))
    if not np.linalg.norm(_precise_residual(model, points, answers)) < np.linalg.norm(left):
        model = near  # weak units that move across a row
    noise = np.linalg.norm(_precise_residual(model, points, answers)) / np.sqrt(answers.size - size)
    signs = rng.choice([-1.0, 1.0], (form.width, _ERROR_DRAWS))

    def equations(each: NetworkParameters) -> Array:
        moved = to_form(each.to_network())
        return np.asarray(sign_matrix(moved) @ signs - moved.slope.reshape(-1)[:, None])

    draw = solve(noise * rng.standard_normal(answers.size))
    # Parameters move by so little that differences would drown in rounding: a longer step is as linear.
    longer = _ERROR_STEP * float(np.linalg.norm(model.to_vector()) / np.linalg.norm(draw))
    apart = equations(model.from_vector(model.to_vector() + longer * draw)) - equations(model)
    better = to_form(model.to_network())
    error = float(np.sqrt(np.mean(apart**2))) / longer / float(np.linalg.norm(sign_matrix(better)))
    return better, max(error, float(np.finfo(np.float64).eps))


def _precise_residual(model: NetworkParameters, points: Array, answers: Array) -> Array:
    """Return what a ReLU model with a skip leaves of the answers (n K,), summed in extended precision."""
    wide = np.longdouble
    (incoming, outgoing), (biases, offset) = model.weights, model.biases
    active = np.maximum(points.astype(wide) @ incoming.astype(wide) + biases, 0)
    assert model.skip is not None
    values = active @ outgoing.astype(wide) + points.astype(wide) @ model.skip.astype(wide) + offset
    return np.asarray((answers - values).reshape(-1), dtype=np.float64)


def worth_polishing(equations: int, parameters: int, options: PolishOptions) -> bool:
    """Return whether a polish of this size takes no more than about a second."""
    return equations * parameters**2 <= options.largest


def _jacobian(model: NetworkParameters, points: Array, factors: Array | None = None) -> Array:
    """Return J (n K, P), its rows multiplied by ``factors`` (n, 1)."""
    return ValueJacobian(model, points, factors).dense()


def _exact_solver(jacobian: Array, rank: float) -> Callable[[Array], Array]:
    """Return minimum norm solutions of J d = r."""
    size = np.linalg.norm(jacobian, axis=0)
    size = np.where(size > 0, size, 1.0)
    return lambda residual: np.asarray(np.linalg.lstsq(jacobian / size, residual, rcond=rank)[0] / size)


def _gram_solver(jacobian: Array, ridge: float) -> Callable[[Array], Array]:
    """Return the same through J^T J, good to a few digits: one factor serves all steps."""
    factor = cholesky_factor(scipy.linalg.blas.dsyrk(1.0, jacobian.T, lower=1).T, ridge)
    if factor is None:
        raise np.linalg.LinAlgError("J^T J is not finite")
    return lambda left: np.asarray(factor.other_half_solve(factor.half_solve(jacobian.T @ left)), np.float64)
