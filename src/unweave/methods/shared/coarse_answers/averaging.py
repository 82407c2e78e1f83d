"""Least squares on many answers: the parameters' error falls with the square root of their number.

Minimises sum_nk ((y_nk - T(f(x_n; theta))_k) / sigma_k)^2. At the minimum the root mean square is sqrt(1 -
P/n) if the model and sigma are right, and the covariance of theta is (J^T J)^{-1} (the Cramer-Rao bound for
Gaussian errors; rounding errors at random points behave as independent ones).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt


@dataclass(frozen=True, eq=False)
class AveragedFit:
    """A network fitted to noisy answers."""

    model: NetworkParameters
    misfit: float
    """Root mean square residual over sqrt(1 - P/n), in standard deviations of an answer: one if right."""
    standard_errors: Array | None
    """(P,) of every parameter, times the misfit where that exceeds one; None if they are not determined"""
    condition: float
    history: tuple[float, ...]
    """Root mean square residual after every step, in standard deviations"""
    equations: int

    @property
    def squares(self) -> float:
        """Sum of the squared residuals, in squared standard deviations."""
        return self.misfit**2 * _free(self.equations, self.model)


def fit_averaged(
    model: NetworkParameters,
    points: Array,
    answers: Array,
    sigma: Array,
    *,
    damping: float = 1e-3,
    steps: int = 60,
    stalls: int = 2,
    on_step: Callable[[int, float], None] | None = None,
) -> AveragedFit:
    """Fit all parameters to ``answers`` (n, K) at ``points`` (n, D) with errors of size ``sigma`` (K,)."""
    weights = np.broadcast_to(1 / sigma, answers.shape)
    problem = ValueFit(model, points, answers, weights)
    rounding = float(np.finfo(np.float64).eps * np.sqrt(np.mean((answers / sigma) ** 2)))
    options = LevenbergMarquardtOptions(
        damping=damping, steps=steps, stalls=stalls, rounding=rounding, acceleration=True
    )
    with np.errstate(over="ignore", invalid="ignore"):  # a fit that runs away ends with a large misfit ...
        try:
            fit = levenberg_marquardt(problem, model.to_vector(), options, on_step)
        except ValueError:  # ... or so far out that there is no Jacobian any more
            return AveragedFit(model, np.inf, None, np.inf, (), answers.size)
    misfit = fit.rms * float(np.sqrt(answers.size / _free(answers.size, model)))
    errors = None
    if fit.covariance_diagonal is not None:
        errors = np.sqrt(fit.covariance_diagonal) * max(misfit, 1.0)
    return AveragedFit(
        model.from_vector(fit.vector), misfit, errors, fit.condition, fit.history, answers.size
    )


def _free(equations: int, model: NetworkParameters) -> int:
    """Degrees of freedom that are left to the residuals."""
    return max(equations - model.size, 1)
