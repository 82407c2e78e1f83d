"""From directions and samples along them to a first network, for one activation or the best of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array, IntArray
from unweave.execution.executor import Executor, SerialExecutor
from unweave.methods.shared.profiles.profiles import (
    Profiles,
    fit_profiles,
    fit_profiles_from,
    grid_subset,
    pooled,
    refine_profiles,
)
from unweave.networks.activations import Activation, get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing

_NEURONS_THAT_VOTE = 64  # neurons on which activations are compared
_POOR_FIT = 1e-4  # relative misfit of a neuron's profile above which it is fitted from scratch,
_POOR_FIT_RATIO = 30.0  # if it is also this much worse than the typical one


def rank_one_coefficients(directions: Array, hessians: Array) -> Array:
    """Least-squares coefficients (n, m, K) of Hessians (n, K, p) on the squares of directions (m, d)."""
    packing = symmetric_packing(directions.shape[1])
    terms = packing.outer(directions).T  # (p, m)
    if terms.shape[1] > terms.shape[0]:
        raise np.linalg.LinAlgError("more directions than symmetric matrices have dimensions")
    q, r = scipy.linalg.qr(terms, mode="economic", check_finite=False)
    n, outputs, size = hessians.shape
    coefficients = scipy.linalg.solve_triangular(r, q.T @ hessians.reshape(-1, size).T, check_finite=False)
    return np.ascontiguousarray(coefficients.reshape(-1, n, outputs).transpose(1, 0, 2))


def rank_activations(
    names: tuple[str, ...],
    projections: Array,
    samples: Array,
    order: int,
    rng: np.random.Generator,
    on_name: Callable[[int], None],
    executor: Executor | None = None,
) -> dict[str, float]:
    """Pooled misfit of every activation on some of the neurons; nan if there is no choice.

    Every activation is a task of ``executor`` (in this process by default).
    """
    if len(names) == 1:
        return {names[0]: np.nan}
    voters = np.sort(rng.permutation(projections.shape[1])[:_NEURONS_THAT_VOTE])
    tasks = [(name, grid_subset(len(projections), rng)) for name in names]  # drawn before work is shared out
    # In one layout of memory whoever computes: sums over strided arrays are rounded otherwise.
    few = np.ascontiguousarray(projections[:, voters]), np.ascontiguousarray(samples[:, voters])
    shared = _Ballot(*few, order)
    key = ("activations", shared.projections, shared.samples, order)
    residuals = {}
    on_name(0)
    for (name, _), misfits in zip(
        tasks, (executor or SerialExecutor()).map(_misfits_task, tasks, shared=shared, key=key), strict=True
    ):
        residuals[name] = pooled(misfits[0])
        on_name(len(residuals))
    return residuals


@dataclass(frozen=True, eq=False)
class _Ballot:
    """The neurons on which activations are compared."""

    projections: Array
    samples: Array
    order: int


def _misfits_task(ballot: _Ballot, task: tuple[str, IntArray]) -> tuple[Array]:
    """(m,) relative misfits of the neurons for one activation."""
    name, subset = task
    activation = get_activation(name)
    return (
        fit_profiles_from(subset, ballot.projections, ballot.samples, activation, ballot.order).residuals,
    )


def refit(
    projections: Array, samples: Array, activation: Activation, start: Profiles, rng: np.random.Generator
) -> Profiles:
    """Refine the profiles that are known; fit anew those that do not fit, and those behind them."""
    known = len(start.scales)
    refined = refine_profiles(projections[:, :known], samples[:, :known], activation, 2, start)
    misfit = max(_POOR_FIT, _POOR_FIT_RATIO * float(np.median(refined.residuals)))
    poor = np.flatnonzero(refined.residuals > misfit)
    again = np.concatenate([poor, np.arange(known, projections.shape[1])])
    if len(again) == 0:
        return refined
    fresh = fit_profiles(projections[:, again], samples[:, again], activation, 2, rng)
    return refined.updated(again, fresh)


def model_of(directions: Array, profiles: Profiles, activation: Activation) -> NetworkParameters:
    """The network of these neurons, its linear part still zero; directions are rows (m, d)."""
    return NetworkParameters.shallow(
        activation,
        weights=directions.T * profiles.scales,
        biases=profiles.biases,
        outgoing=profiles.outgoing,
        offset=np.zeros(profiles.outgoing.shape[1]),
    )
