"""PAC-Bayes bound from a cluster of networks trained from starts near one another ([mathematics] Thm. 6.3.1).

The prior is a mixture of Gaussians at the starts B_j, the posterior a Gaussian at one of the trained networks
A_i, which must answer nearly like the network that is bounded. See `pac_bayes` for what all bounds share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from unweave.arrays import Array
from unweave.certify.hypotheses import (
    SMALLEST_MARGIN,
    balanced,
    checked,
    grid_point,
    homogeneous_problem,
    infinite,
    integer_cost,
    layer_distances,
    norm_problem,
    require_alike,
)
from unweave.certify.margins import LabelledData, RiskBound, kl_square_root
from unweave.certify.perturbation import LayerNorms
from unweave.errors import InvalidInput
from unweave.networks.network import Network

_CLUSTER_ANGLES = 314  # clusters possible before training: half-angles 0.01, ..., 3.14 around the start
_MARGIN_PARTS = 8  # the proof keeps noise and cluster within gamma/8 each, (6.26); gamma is printed
_CLUSTER_REACH = 1.5  # "stated": the interval ends at this multiple of the largest beta
_STRICT_EXCESS = 1 + 1e-9  # factor that makes the inequality of niceness strict


def cluster_bound(
    network: Network,
    trained: Sequence[Network],
    initial: Sequence[Network],
    x: ArrayLike,
    y: ArrayLike,
    input_norm: float,
    margin: float | None = None,
    delta: float = 0.05,
    form: Literal["proved", "stated"] = "proved",
) -> RiskBound:
    """Bound from a cluster: ``trained`` networks A_i, near ``network`` in answers, begun at ``initial`` B_j.

    The samples must be *nice*: |f_{A_i}(x) - f(x)| <= eps |f(x)| on all of them for an eps with gamma' > eps
    max |f(x)|; gamma' = gamma/8 is what the proof uses ([mathematics] (6.26)). The bound is the least over i
    of

        sqrt( (-log mean_j exp(-|A_i - B_j|^2 / (2 sigma_i^2)) + log(3 m / delta')) / (m - 1) ).

    ``form="stated"`` evaluates the theorem as printed, with gamma' = gamma, the hidden width for D and layers
    as they come; it does not follow from its proof, and is here for comparison. ``margin`` None takes the
    least nice gamma: in the proved form, the next power of two, at the price of its choice.

    Infinite if the samples are not nice at ``margin``, or for the reasons of `nbs_bound`.
    """
    require_alike(network, (*trained, *initial))
    data = checked(network, x, y, 1.0 if margin is None else margin, input_norm, delta)
    if not trained or not initial or form not in ("proved", "stated"):
        raise InvalidInput(
            f'trained and initial must not be empty, and form "proved" or "stated". Got {len(trained)}, '
            f"{len(initial)} and {form!r} instead. Train from several starts near the first one."
        )
    proved = form == "proved"
    needed = _nice_margin(network, trained, data) * (_MARGIN_PARTS if proved else 1)
    if needed == np.inf:
        return infinite(1.0, np.inf, "an answer is zero, to which no other is relatively close", proved)
    cost = 0.0
    if margin is None:
        margin = max(needed, SMALLEST_MARGIN) * _STRICT_EXCESS
        if proved:
            exponent = int(np.ceil(np.log2(margin)))
            margin, cost = 2.0**exponent, integer_cost(exponent)
    loss = data.margin_loss(network, margin / 2)
    every = (network, *trained, *initial)
    problem = next(filter(None, (homogeneous_problem(n, LayerNorms.of(n)) for n in every)), "")
    problem = problem or norm_problem(data, input_norm)
    if not problem and not needed < margin:
        problem = f"the samples are not nice: gamma must exceed {needed:.3g}"
    if problem:
        return infinite(loss, margin, problem, proved)
    setting = _ClusterSetting(data.m, margin, input_norm, delta, cost)
    if proved:
        trained, initial = [balanced(n) for n in trained], [balanced(n) for n in initial]
    norms = [LayerNorms.of(n) for n in trained]
    betas = np.array([n.geometric_mean for n in norms])
    dimension = max(map(max, norms[0].shapes)) if proved else max(network.hidden, default=1)
    distances = np.array([[sum(layer_distances(a, b)) for b in initial] for a in trained])
    result = _noise(setting, betas, len(norms[0].weights), dimension, proved)
    if isinstance(result, str):
        return infinite(loss, margin, result, proved)
    sigmas, logs = result
    divergences = -(logsumexp(-distances / (2 * sigmas[:, None] ** 2), axis=1) - np.log(len(initial)))
    best = int(np.argmin(divergences))
    complexity = kl_square_root(float(divergences[best]), data.m, logs)
    return RiskBound(
        loss + complexity,
        loss,
        complexity,
        margin,
        float(sigmas[best]),
        float(divergences[best]),
        1 - delta,
        proved,
    )


@dataclass(frozen=True)
class _ClusterSetting:
    m: int
    margin: float
    input_norm: float
    delta: float
    cost: float


def _noise(
    setting: _ClusterSetting, betas: Array, d: int, dimension: int, proved: bool
) -> tuple[Array, float] | str:
    """sigma_i (k,) and the logarithms to pay, or why there are none.

    Proved: gamma/8, and the interval [low, 2^r low] with r paid for. As stated: gamma itself, and the
    interval that just holds every beta.
    """
    low = (setting.margin / (2 * setting.input_norm)) ** (1 / d)
    if betas.min() < low:
        return f"beta = {betas.min():.3g} is below {low:.3g}: no margin can be reached"
    doublings = max(1, int(np.ceil(np.log2(betas.max() / low))))
    high = low * 2.0**doublings if proved else _CLUSTER_REACH * betas.max()
    points = max(1, int(np.ceil(d / 2 * high / low)))
    choices = points * (doublings * (doublings + 1) if proved else 1)
    share = setting.delta / (_CLUSTER_ANGLES * choices)
    grid = np.array([grid_point(beta, low, high, points) for beta in betas])
    margin = setting.margin / (_MARGIN_PARTS if proved else 1)
    sigmas = _cluster_sigmas(grid, margin, setting.input_norm, d, dimension, share)
    return sigmas, float(np.log(3 * setting.m / share) + setting.cost)


def _cluster_sigmas(
    betas: Array, margin: float, input_norm: float, d: int, dimension: int, share: float
) -> Array:
    first = betas * np.exp(-1 / (d - 1)) / d
    second = margin / (math.e**2 * d * input_norm * betas ** (d - 1))
    return np.asarray(np.minimum(first, second) / np.sqrt(2 * dimension * np.log(2 * d * dimension / share)))


def _nice_margin(network: Network, trained: Sequence[Network], data: LabelledData) -> float:
    """eps max |f|, eps the largest relative distance of an answer of ``trained`` to the network's."""
    answers = network(data.x)
    lengths = np.linalg.norm(answers, axis=1)
    if not lengths.min() > 0:
        return np.inf  # relative distances to an answer of zero are infinite
    apart = [np.linalg.norm(other(data.x) - answers, axis=1) / lengths for other in trained]
    return float(np.max(apart) * lengths.max())
