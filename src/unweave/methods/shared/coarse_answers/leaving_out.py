"""What leaving a neuron out costs once all the others make up for it, to first order.

With r the weighted residuals of a fit, J its Jacobian and J_k that without the parameters of neuron k,

    cost_k = min_v |r + d_k - J_k v|^2 - |r|^2,        d_k = what neuron k adds to the answers, weighted.

The size of d_k alone is no measure: a steep neuron with tiny outgoing weights may add several sigmas that two
others take away again, and cost nothing. All costs come from one inverse: with H = (J^T J)^{-1}, g = J^T t
for t = r + d_k and 0 in place of the parameters left out,

    g^T (J_k^T J_k)^{-1} g = g^T H g - (H g)_k^T (H_kk)^{-1} (H g)_k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.linalg

from unweave.arrays import Array, BoolArray, IntArray, RealArray
from unweave.methods.shared.coarse_answers.averaging import AveragedFit, fit_averaged
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.parameters import NetworkParameters

_DAMPING = 1e-3  # of a fit without a neuron
_TINY = float(np.finfo(np.float64).tiny)
_RIDGE = 1e-9  # of the diagonal: neurons that the rows do not determine make J^T J singular
_NO_EFFECT = _TINY / float(np.finfo(np.float64).eps)  # on the diagonal: its row is not exact


def without_neuron(model: NetworkParameters, neuron: int) -> NetworkParameters:
    """``model`` (one hidden layer) without one of its neurons."""
    return replace(
        model,
        weights=(np.delete(model.weights[0], neuron, axis=1), np.delete(model.weights[1], neuron, axis=0)),
        biases=(np.delete(model.biases[0], neuron), model.biases[1]),
    )


def pruned(
    fit: AveragedFit,
    rows: AnsweredRows,
    *,
    skip_helps: bool = False,
    on_step: Callable[[int, float], None] | None = None,
) -> AveragedFit:
    """``fit`` without the neurons that the others make up for, one after the other."""
    while fit.model.weights[0].shape[1] > 1:
        smaller = _with_one_less(fit, rows, skip_helps, on_step)
        if smaller is None:
            return fit
        fit = smaller
    return fit


def _with_one_less(
    fit: AveragedFit, rows: AnsweredRows, skip_helps: bool, on_step: Callable[[int, float], None] | None
) -> AveragedFit | None:
    """The fit without the neuron that is needed least; None if all are needed.

    A neuron gains no more than noise would let it if the squared residuals rise by less than log(n) per
    parameter without it (BIC), in units of what is left of them per equation.
    """
    model = fit.model
    noise = np.log(rows.answers.size) * (model.n_inputs + 1 + model.weights[1].shape[1])
    if not np.isfinite(fit.misfit) or least_significance(fit) ** 2 > noise:
        return None
    allowed = noise * fit.misfit**2
    costs = costs_of_leaving_out(model, rows.points, rows.answers, rows.sigma, skip_helps=skip_helps)
    for neuron in np.argsort(costs):
        if not costs[neuron] < allowed:
            break
        without = fit_averaged(
            without_neuron(model, int(neuron)),
            rows.points,
            rows.answers,
            rows.sigma,
            damping=_DAMPING,
            on_step=on_step,
        )
        if without.squares < fit.squares + allowed:
            return without
    return None


def least_significance(fit: AveragedFit) -> float:
    """Outgoing weight over standard error, at the output where it is most, of the neuron where that is least.

    Its square is a lower bound of what leaving the neuron out costs, in squared misfits: the incoming weights
    may make up for it there, too. 0 if there are no standard errors.
    """
    if fit.standard_errors is None:
        return 0.0
    outgoing = fit.model.weights[1]
    errors = fit.standard_errors[fit.model.ends[-2] :].reshape(fit.model.shapes[-1])[: len(outgoing)]
    return float((np.abs(outgoing) / np.maximum(errors, _TINY)).max(axis=1).min())


def costs_of_leaving_out(
    model: NetworkParameters, points: Array, answers: Array, sigma: Array, *, skip_helps: bool = True
) -> Array:
    """(m,) by how much the squared residuals, in ``sigma`` (K,), rise without each neuron.

    ``answers`` (n, K) at ``points`` (n, D) are those that the model was fitted to. Unless ``skip_helps``, a
    skip stays as it is and does not make up for the part of a neuron that is linear.
    """
    own = _own_parameters(model)
    free = np.ones(model.size, dtype=np.bool_)
    if model.skip is not None and not skip_helps:
        free[_skip_parameters(model)] = False
    with np.errstate(over="ignore", invalid="ignore"):
        jacobian = ValueJacobian(model, points, np.broadcast_to(1 / sigma, answers.shape))
        gram = jacobian.gram()
    if not np.isfinite(gram).all():  # of a fit that ran away: nothing is known
        return np.full(len(own), np.inf)
    inverse = _regularised_inverse(gram, free)
    left = np.sum(((answers - model.values(points)) / sigma) ** 2)
    costs = np.empty(len(own))
    for neuron, parameters in enumerate(own):
        more = ((answers - without_neuron(model, neuron).values(points)) / sigma).reshape(-1)
        gradient = np.where(free, jacobian.adjoint(more), 0.0)
        gradient[parameters] = 0
        solution = inverse @ gradient
        block = inverse[np.ix_(parameters, parameters)]
        explained = gradient @ solution - solution[parameters] @ np.linalg.solve(block, solution[parameters])
        costs[neuron] = more @ more - explained - left
    return costs


def _regularised_inverse(gram: RealArray, free: BoolArray) -> Array:
    """(J^T J + ridge)^{-1} from the upper triangle of J^T J; parameters that are not free are decoupled."""
    diagonal = np.diag(gram)
    scale = np.sqrt(np.where(diagonal > _NO_EFFECT, diagonal, 1.0))
    scaled = gram / (scale[:, None] * scale)
    scaled[~free, :] = 0
    scaled[:, ~free] = 0
    scaled[np.diag_indices_from(scaled)] = 1 + _RIDGE
    factor = scipy.linalg.cho_factor(scaled, lower=False, overwrite_a=True, check_finite=False)
    inverse = scipy.linalg.cho_solve(factor, np.diag(1 / scale), check_finite=False)
    return np.asarray(inverse / scale[:, None])


def _own_parameters(model: NetworkParameters) -> IntArray:
    """(m, D + 1 + K) where the parameters of each neuron stand in the vector of all."""
    first, last = _positions(model)
    return np.concatenate([first.T, last[: first.shape[1]]], axis=1)


def _skip_parameters(model: NetworkParameters) -> IntArray:
    """(D K,) where those of the skip stand: between the outgoing weights and the last biases."""
    first, last = _positions(model)
    return last[first.shape[1] : -1].reshape(-1)


def _positions(model: NetworkParameters) -> tuple[IntArray, IntArray]:
    """(D + 1, m) and (m + D (with a skip) + 1, K): where the rows of both layers stand."""
    first, last = np.split(np.arange(model.size), [model.ends[0]])
    return first.reshape(model.shapes[0]), last.reshape(model.shapes[1])
