"""Least squares on many answers: the parameters' error falls with the square root of their number.

Minimises sum_nk ((y_nk - T(f(x_n; theta))_k) / sigma_k)^2. At the minimum the root mean square is sqrt(1 -
P/n) if the model and sigma are right, and the covariance of theta is (J^T J)^{-1} (the Cramer-Rao bound for
Gaussian errors; rounding errors at random points behave as independent ones).

**Leaving a unit out** costs, once all the others make up for it, to first order

    cost_k = min_v |r + d_k - J_k v|^2 - |r|^2,        d_k = what unit k adds to the answers, weighted,

with r the weighted residuals of a fit, J its Jacobian and J_k that without the parameters of unit k. The size
of d_k alone is no measure: a steep unit with tiny outgoing weights may add several sigmas that two others
take away again, and cost nothing. All costs come from one inverse: with H = (J^T J)^{-1}, g = J^T t for
t = r + d_k and 0 in place of the parameters left out,

    g^T (J_k^T J_k)^{-1} g = g^T H g - (H g)_k^T (H_kk)^{-1} (H g)_k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from unweave.arrays import Array, BoolArray, RealArray
from unweave.errors import OutOfTime
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.networks.error_bars import has_own_error_bars
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit, suited_to
from unweave.numerics.clock import check
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.numerics.variable_projection.prune import OnStep

_SINGULAR_RIDGE = 1e-9  # of the diagonal: units that the rows do not determine make J^T J singular


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
    enough: float | None = None,
    on_step: OnStep | None = None,
) -> AveragedFit:
    """Fit all parameters to ``answers`` (n, K) at ``points`` (n, D).

    Errors are of size ``sigma``, (K,) or (n, K). From a start that is near, a step is the last one that gains
    next to nothing below a misfit of ``enough``: one step more takes as long as all before it.
    """
    weights = np.broadcast_to(1 / sigma, answers.shape)
    problem = ValueFit(model, points, answers, weights)
    rounding = float(np.finfo(np.float64).eps * np.sqrt(np.mean((answers / sigma) ** 2)))
    options = LevenbergMarquardtOptions(
        damping=damping,
        steps=steps,
        stalls=stalls,
        rounding=rounding,
        acceleration=enough is None,
        last_ratio=1.0 if enough is None else 0.95,
        last_below=np.inf if enough is None else enough,
        conditioning=not has_own_error_bars(model),
    )
    with np.errstate(over="ignore", invalid="ignore"):  # a fit that runs away ends with a large misfit ...
        try:
            fit = levenberg_marquardt(problem, model.to_vector(), suited_to(model, options), on_step)
        except ValueError:  # ... or so far out that there is no Jacobian any more
            return AveragedFit(model, np.inf, None, np.inf, (), answers.size)
    misfit = fit.rms * float(np.sqrt(answers.size / _free(answers.size, model)))
    errors = None
    if fit.covariance_diagonal is not None:
        errors = np.sqrt(fit.covariance_diagonal) * max(misfit, 1.0)
    return AveragedFit(
        model.from_vector(fit.vector), misfit, errors, fit.condition, fit.history, answers.size
    )


def fit_to_rows(
    model: NetworkParameters,
    rows: AnsweredRows,
    *,
    damping: float = 1e-3,
    enough: float | None = None,
    on_step: OnStep | None = None,
) -> AveragedFit:
    """Fit all parameters to all ``rows`` at hand."""
    return fit_averaged(
        model, rows.points, rows.answers, rows.errors, damping=damping, enough=enough, on_step=on_step
    )


def without_unit(model: NetworkParameters, unit: int) -> NetworkParameters:
    """Return ``model`` (one hidden layer) without one of its units."""
    return replace(
        model,
        weights=(np.delete(model.weights[0], unit, axis=1), np.delete(model.weights[1], unit, axis=0)),
        biases=(np.delete(model.biases[0], unit), model.biases[1]),
    )


def prune(
    fit: AveragedFit,
    rows: AnsweredRows,
    *,
    skip_helps: bool = False,
    on_step: OnStep | None = None,
) -> AveragedFit:
    """Leave out the units that the others make up for, one after the other, and fit again."""
    while fit.model.weights[0].shape[1] > 1:
        try:
            check()
            smaller = _with_one_less(fit, rows, skip_helps, on_step)
        except OutOfTime:
            return fit
        if smaller is None:
            return fit
        fit = smaller
    return fit


def _with_one_less(
    fit: AveragedFit, rows: AnsweredRows, skip_helps: bool, on_step: OnStep | None
) -> AveragedFit | None:
    """Leave out the unit that is needed least; None if all are needed.

    A unit gains no more than noise would let it if the squared residuals rise by less than log(n) per
    parameter without it (BIC), in units of what is left of them per equation.
    """
    model = fit.model
    noise = np.log(rows.answers.size) * (model.n_inputs + 1 + model.weights[1].shape[1])
    if not np.isfinite(fit.misfit) or least_significance(fit) ** 2 > noise:
        return None
    allowed = noise * fit.misfit**2
    costs = costs_of_leaving_out(model, rows.points, rows.answers, rows.errors, skip_helps=skip_helps)
    for unit in np.argsort(costs):
        if not costs[unit] < allowed:
            break
        without = fit_to_rows(without_unit(model, int(unit)), rows, on_step=on_step)
        if without.squares < fit.squares + allowed:
            return without
    return None


def least_significance(fit: AveragedFit) -> float:
    """Return the outgoing weight over its standard error of the least significant unit, at its best output.

    Its square is a lower bound of what leaving the unit out costs, in squared misfits: the incoming weights
    may make up for it there, too. 0 if there are no standard errors.
    """
    if fit.standard_errors is None:
        return 0.0
    outgoing = fit.model.weights[1]
    errors = fit.standard_errors[fit.model.ends[-2] :].reshape(fit.model.shapes[-1])[: len(outgoing)]
    return float((np.abs(outgoing) / np.maximum(errors, np.finfo(np.float64).tiny)).max(axis=1).min())


def costs_of_leaving_out(
    model: NetworkParameters, points: Array, answers: Array, sigma: Array, *, skip_helps: bool = True
) -> Array:
    """Return by how much (m,) the squared residuals, in ``sigma`` (K,) or (n, K), rise without each unit.

    ``answers`` (n, K) at ``points`` (n, D) are those that the model was fitted to. Unless ``skip_helps``, a
    skip stays as it is and does not make up for the part of a unit that is linear.
    """
    places = model.from_vector(np.arange(model.size, dtype=np.float64))  # where each parameter stands
    own = np.hstack([places.weights[0].T, places.biases[0][:, None], places.weights[1]]).astype(np.int64)
    free = np.ones(model.size, dtype=np.bool_)
    if places.skip is not None and not skip_helps:
        free[places.skip.astype(np.int64)] = False
    with np.errstate(over="ignore", invalid="ignore"):
        jacobian = ValueJacobian(model, points, np.broadcast_to(1 / sigma, answers.shape))
        gram = jacobian.gram()
    if not np.isfinite(gram).all():  # of a fit that ran away: nothing is known
        return np.full(len(own), np.inf)
    inverse = _regularized_inverse(gram, free)
    left = np.sum(((answers - model.values(points)) / sigma) ** 2)
    costs = np.empty(len(own))
    for unit, parameters in enumerate(own):
        check()
        more = ((answers - without_unit(model, unit).values(points)) / sigma).reshape(-1)
        gradient = np.where(free, jacobian.adjoint(more), 0.0)
        gradient[parameters] = 0
        solution = inverse @ gradient
        block = inverse[np.ix_(parameters, parameters)]
        explained = gradient @ solution - solution[parameters] @ np.linalg.solve(block, solution[parameters])
        costs[unit] = more @ more - explained - left
    return costs


def _regularized_inverse(gram: RealArray, free: BoolArray) -> Array:
    """Return (J^T J + ridge)^{-1} from its upper triangle, parameters that are not free decoupled."""
    check(len(gram) ** 3)
    diagonal, number = np.diag(gram), np.finfo(np.float64)
    no_effect = float(number.tiny / number.eps)  # a smaller entry belongs to a row that is not exact
    scale = np.sqrt(np.where(diagonal > no_effect, diagonal, 1.0))
    scaled = gram / (scale[:, None] * scale)
    scaled[~free, :] = 0
    scaled[:, ~free] = 0
    scaled[np.diag_indices_from(scaled)] = 1 + _SINGULAR_RIDGE
    factor = scipy.linalg.cho_factor(scaled, lower=False, overwrite_a=True, check_finite=False)
    inverse = scipy.linalg.cho_solve(factor, np.diag(1 / scale), check_finite=False)
    return np.asarray(inverse / scale[:, None])


def _free(equations: int, model: NetworkParameters) -> int:
    """Return the degrees of freedom that are left to the residuals."""
    return max(equations - model.size, 1)
