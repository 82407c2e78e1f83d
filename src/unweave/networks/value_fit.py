"""Fit a network to values: minimize |w (f(x_n; theta) - a_n)|^2 over all weights and biases theta."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.least_squares import Fit, LevenbergMarquardtOptions, levenberg_marquardt

MANY_OUTPUTS = 0.25
"""Outputs per unit of one hidden layer from which a row shows so much of every unit that conjugate gradients
take few steps."""
_LARGEST_GRAM = 3000  # parameters beyond which they are then quicker than a factored J^T J
_LARGE = 2000  # parameters from which on a step takes a second
_LAST_RATIO = 0.9  # of |r| after and before a step of such a fit that is the last one, near rounding
_NEAR_ROUNDING = 10.0  # times the rounding: below, later steps fit nothing but that
_NEAR_RESIDUAL = 1e-2  # rms residual over that of the answers, below which full Gauss-Newton steps succeed
_DAMPING_NEAR = 1e-9  # first damping of a near start, relative: next to none
_DAMPING_FAR = 1e-3  # the same of a far start: keeps the first step where the linear model holds


@dataclass(frozen=True, eq=False)
class ValueFit:
    """Least squares on values: rows ordered by point and output, w (answer - model)."""

    template: NetworkParameters
    points: Array
    """(n, D)"""
    answers: Array
    """(n, K)"""
    weights: Array | None = None
    """Factors on the residuals, (n,) or (n, K), for instance 1 / standard deviation; None: all one"""

    def __post_init__(self) -> None:
        n, inputs, outputs = len(self.points), self.template.n_inputs, self.template.n_outputs
        if self.points.shape != (n, inputs):
            raise InvalidInput(
                f"points must be of shape (n, {inputs}). Got shape {self.points.shape} instead. "
                f"Give one row per point and one column per input."
            )
        _check_shape("answers", self.answers, ((n, outputs),), "one row per point and one column per output")
        if self.weights is not None:
            allowed = ((n,), (n, outputs))
            _check_shape("weights", self.weights, allowed, "one factor per point, or per point and output")

    @cached_property
    def _factors(self) -> Array | None:
        """The weights as (n, K) or (n, 1)."""
        if self.weights is None or self.weights.ndim == 2:
            return self.weights
        return self.weights[:, None]

    @property
    def n_equations(self) -> int:
        """Number of rows n K."""
        return int(self.answers.size)

    def residual(self, vector: Array) -> Array:
        """Data minus model, weighted, (n K,)."""
        difference = self.answers - self.template.from_vector(vector).values(self.points)
        if self._factors is not None:
            difference *= self._factors
        return difference.reshape(-1)

    def linearise(self, vector: Array) -> ValueJacobian:
        """The Jacobian at ``vector``."""
        return ValueJacobian(self.template.from_vector(vector), self.points, self._factors)


def _check_shape(name: str, array: Array, allowed: tuple[tuple[int, ...], ...], give: str) -> None:
    if array.shape not in allowed:
        shapes = " or ".join(str(shape) for shape in allowed)
        raise InvalidInput(f"{name} must be of shape {shapes}. Got shape {array.shape} instead. Give {give}.")


@dataclass(frozen=True, eq=False)
class ValueFitResult:
    """The fitted network and how well its equations determine it."""

    model: NetworkParameters
    history: tuple[float, ...]
    """Root mean square residual, step by step."""
    floor: float
    """What the answers' rounding or noise would leave of it."""
    prediction_floor: float
    """What the same leaves of a prediction, on average: floor sqrt(P / (n - P)) for n equations."""
    condition: float
    error_bar: float | None
    """Largest standard error of a parameter; None if the equations do not determine them all."""

    @classmethod
    def of(cls, model: NetworkParameters, fit: Fit, floor: float, equations: int) -> ValueFitResult:
        """Judge ``fit``, which led to ``model``, by the ``floor`` of its residuals."""
        error_bar = None
        if fit.covariance_diagonal is not None:
            error_bar = max(fit.rms, floor) * float(np.sqrt(fit.covariance_diagonal.max()))
        amplified = float(np.sqrt(model.size / max(equations - model.size, 1)))
        return cls(model, fit.history, floor, floor * amplified, fit.condition, error_bar)


def suited_to(model: NetworkParameters, options: LevenbergMarquardtOptions) -> LevenbergMarquardtOptions:
    """Return ``options`` with the solver that is quickest for networks like ``model``."""
    if model.depth == 2 and model.n_outputs >= MANY_OUTPUTS * model.width:
        return replace(options, gram_parameters=_LARGEST_GRAM)
    return options


def fit_values(
    model: NetworkParameters,
    points: Array,
    answers: Array,
    noise: float = 0.0,
    on_step: Callable[[int, float], None] | None = None,
    *,
    acceleration: bool = True,
    max_memory: int | None = None,
) -> ValueFitResult:
    """Fit all parameters of ``model`` to ``answers`` (n, K) at ``points`` (n, D), until progress ends.

    ``noise`` is the standard deviation of an answer; below the rounding of float64 it counts as that.
    ``on_step`` is called with (accepted steps, rms); an exception it raises ends the fit.
    ``acceleration`` bends steps along the valleys of nearly linear networks. Matrices take at most
    ``max_memory`` bytes (None: no limit).
    """
    problem = ValueFit(model, points, answers)
    size = float(np.sqrt(np.mean(answers**2)))
    rounding = float(np.finfo(np.float64).eps) * size
    floor = max(noise, rounding)
    start = model.to_vector()
    near = float(np.sqrt(np.mean(problem.residual(start) ** 2))) < _NEAR_RESIDUAL * size
    damping = _DAMPING_NEAR if near else _DAMPING_FAR
    # Not stopped at the floor: the least residual of noisy answers lies below it.
    options = LevenbergMarquardtOptions(
        damping=damping,
        rounding=rounding,
        last_ratio=_LAST_RATIO if model.size >= _LARGE else 1.0,
        last_below=_NEAR_ROUNDING * rounding,
        acceleration=acceleration,
        max_memory=max_memory,
    )
    fit = levenberg_marquardt(problem, start, options, on_step)
    return ValueFitResult.of(model.from_vector(fit.vector), fit, floor, problem.n_equations)


def points_to_fit(network: Network, equations_per_parameter: float = 1.5, spare_points: int = 20) -> int:
    """Return how many points give enough equations for every parameter, behind every bottleneck.

    The parameters of layers 1..l act through every later layer, so a point gives no more equations
    for them than the narrowest of those has units. One and a half equations per parameter keep the fit well
    conditioned; ``spare_points`` do so for networks of few parameters.
    """
    widths = (*network.hidden, network.n_outputs)
    sizes = [w.size + b.size for w, b in zip(network.weights, network.biases, strict=True)]
    per_point = [sum(sizes[: layer + 1]) / min(widths[layer:]) for layer in range(len(widths))]
    return int(np.ceil(equations_per_parameter * max(per_point))) + spare_points


@dataclass(frozen=True, eq=False)
class OutputFit:
    """Weights (m, K) and biases (K,) of an output layer, and what they leave."""

    weights: Array
    biases: Array
    residual: float
    """Root mean square misfit relative to the spread of phi^{-1}(answers)."""


def fit_output(states: Array, answers: Array, output: Link) -> OutputFit:
    """Fit phi^{-1}(answers) (n, K) by an affine function of ``states`` (n, m), in least squares."""
    usable = output.unsaturated(answers)
    values = output.inverse(answers[usable])
    design = np.concatenate([states[usable], np.ones((int(usable.sum()), 1))], axis=1)
    solution, *_ = np.linalg.lstsq(design, values, rcond=None)
    misfit = values - design @ solution
    spread = float(np.sqrt(np.mean((values - values.mean(axis=0)) ** 2))) if len(values) else 0.0
    residual = float(np.sqrt(np.mean(misfit**2))) / spread if spread > 0 else np.inf
    return OutputFit(solution[:-1], solution[-1], residual)
