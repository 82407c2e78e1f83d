"""PAC-Bayes bounds on the risk of a classifier: from norms, from the distance to the start, from a cluster.

All have the form given in `margins`; they differ in the prior. Notation: d layers, D the largest
dimension of any layer, inputs and outputs included, beta^d = prod_l |W_l|, |x| <= B, m samples.

- `nbs_bound` ([mathematics] Thm. 6.1.3, after Neyshabur et al. [spectral-margin]): prior and posterior N(0,
  sigma^2) and N(W, sigma^2), sigma from the grid point next to beta in [(gamma/2B)^{1/d}, (sqrt(m-1) gamma/(4
  e^{3-2/(d-1)} B))^{1/d}].
- `cluster_bound` (Thm. 6.3.1): the prior is a mixture of Gaussians at starts B_j near one another, the
  posterior a Gaussian at one of the networks A_i trained from them, which must answer nearly like the one
  bounded.
- `dist_from_init_bound`: prior N(W0, sigma^2) at the network that training began at; sigma from
  `noise_resilience_sigma`. Not in the source; the only one of them that covers biases.

Where a hypothesis fails they return infinity and say which. In particular a beta outside its interval is not
moved to the nearest grid point, which would give a smaller number that means nothing. Layers are rescaled to
equal norms first where the proof assumes it, which leaves a bias-free ReLU network the same function. D
includes the inputs: with the hidden width alone, as printed, the noise of a first layer of 100 x 3072 is
underestimated by a factor of two.

Experience: vacuous, by three orders of magnitude and more, on networks of 100 units trained on 1000 samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from unweave.arrays import Array
from unweave.certify.margins import (
    BASEL,
    SMALLEST_MARGIN,
    LabelledData,
    RiskBound,
    balanced,
    checked,
    grid_point,
    homogeneous_problem,
    infinite,
    integer_cost,
    kl_square_root,
    layer_distances,
    norm_problem,
    require_alike,
    squared_distances,
)
from unweave.certify.perturbation import (
    LayerNorms,
    is_resilient_kind,
    noise_resilience_sigma,
    noise_resilience_sigmas,
)
from unweave.errors import InvalidInput
from unweave.networks.network import Network

_MARGINS_TRIED = 12  # powers of two tried below the largest margin: the complexity doubles with each
_CLUSTER_ANGLES = 314  # clusters possible before training: half-angles 0.01, ..., 3.14 around the start
_MARGIN_PARTS = 8  # the proof keeps noise and cluster within gamma/8 each, (6.26); gamma is printed
_CLUSTER_REACH = 1.5  # "stated": the interval ends at this multiple of the largest beta
_STRICT_EXCESS = 1 + 1e-9  # factor that makes the inequality of niceness strict


def nbs_bound(
    network: Network,
    x: ArrayLike,
    y: ArrayLike,
    margin: float,
    input_norm: float,
    delta: float = 0.05,
    form: Literal["proved", "stated"] = "proved",
) -> RiskBound:
    """Spectrally normalized margin bound, with probability 1 - ``delta`` over the samples x (m, n), y (m,).

    ``margin`` (gamma) and ``input_norm`` (B) must be chosen before the samples are seen. Infinite if the
    network has biases or other units than relu, if some |x| > B, or if beta is outside its interval.
    ``form="stated"`` evaluates the printed formula at beta itself, wherever it lies; it is here to repeat
    published comparisons.
    """
    data = checked(network, x, y, margin, input_norm, delta)
    loss = data.margin_loss(network, margin / 2)
    problem = homogeneous_problem(network) or norm_problem(data, input_norm)
    if problem:
        return infinite(loss, margin, problem)
    network = balanced(network)
    norms = LayerNorms.of(network)
    d, largest, beta = len(norms.weights), max(map(max, norms.shapes)), norms.geometric_mean
    shrink = 2 * np.exp(3 - 2 / (d - 1))
    low = (margin / (2 * input_norm)) ** (1 / d)
    high = (np.sqrt(data.m - 1) * margin / (2 * shrink * input_norm)) ** (1 / d)
    proved = form == "proved"
    if proved and not low <= beta <= high:
        return infinite(loss, margin, f"beta = {beta:.3g} is outside [{low:.3g}, {high:.3g}]")
    points = max(1, int(np.ceil(d / 2 * (np.sqrt(data.m - 1) / shrink) ** (1 / d))))
    near = grid_point(beta, low, high, points) if proved else beta
    noise = min(margin / (4 * math.e**2 * input_norm * near ** (d - 1)), near * np.exp(-1 / (d - 1)))
    sigma = float(noise / (d * np.sqrt(2 * largest * np.log(4 * d * largest))))
    divergence = float(sum(np.sum(w**2) for w in network.weights)) / (2 * sigma**2)
    complexity = kl_square_root(divergence, data.m, np.log(3 * data.m * points / delta))
    return RiskBound(loss + complexity, loss, complexity, margin, sigma, divergence, 1 - delta, proved)


def nice_margins(network: Network, trained: Sequence[Network], x: ArrayLike) -> tuple[float, float]:
    """Least eps and gamma with which ``trained`` answer like ``network`` on x ([mathematics] Def. 25).

    eps is the largest |f_i(x) - f(x)| / |f(x)|, gamma = eps max |f(x)|; infinite where an answer is zero.
    """
    rows = np.asarray(x, dtype=np.float64)
    answers = network(rows)
    lengths = np.linalg.norm(answers, axis=1)
    if not lengths.min() > 0:
        return np.inf, np.inf  # relative distances to an answer of zero are infinite
    apart = [np.linalg.norm(other(rows) - answers, axis=1) / lengths for other in trained]
    eps = float(np.max(apart))
    return eps, eps * float(lengths.max())


def dist_from_init_bound(
    network: Network,
    initial: Network,
    x: ArrayLike,
    y: ArrayLike,
    margin: float | None = None,
    delta: float = 0.05,
    per_layer: bool = True,
) -> RiskBound:
    """Bound from the distance of ``network`` to ``initial``, which must not depend on the samples.

    The standard deviations are powers 2^-j, j = 1, 2, ..., at most those which `noise_resilience_sigmas` (or
    `noise_resilience_sigma`, if not ``per_layer``) allows at gamma/4; their choice costs log(pi^2 j^2 / 6)
    for each. ``margin`` None: the power of two that gives the least bound, at the price of its choice.

    Infinite where no noise is borne: a skip, activations outside `LIPSCHITZ_ONE`.
    """
    require_alike(network, (initial,))
    data = checked(network, x, y, 1.0 if margin is None else margin, 1.0, delta)
    if margin is not None:
        return _from_start(network, initial, data, margin, 0.0, delta, per_layer)
    candidates = [
        _from_start(network, initial, data, gamma, cost, delta, per_layer)
        for gamma, cost in _margin_grid(data.margins(network))
    ]
    return min(candidates, key=lambda bound: bound.value)


def _from_start(
    network: Network,
    initial: Network,
    data: LabelledData,
    margin: float,
    cost: float,
    delta: float,
    per_layer: bool,
) -> RiskBound:
    loss = data.margin_loss(network, margin / 2)
    if not is_resilient_kind(network):
        return infinite(
            loss, margin, "noise is only borne by relu, tanh, sine or identity layers without skip"
        )
    reach = max(data.largest_norm, np.finfo(np.float64).tiny)
    layers = len(network.weights)
    if per_layer:
        sigmas = np.array(noise_resilience_sigmas(network, reach, margin / 4))
    else:
        sigmas = np.full(layers, noise_resilience_sigma(network, reach, margin / 4))
    if not np.all(sigmas > 0):
        return infinite(loss, margin, "no noise is borne")
    exponents = np.maximum(1, np.ceil(-np.log2(sigmas)))
    sigmas = 2.0**-exponents
    divergence = sum(
        squares / (2 * sigma**2)
        for squares, sigma in zip(layer_distances(network, initial), sigmas, strict=True)
    )
    paid = exponents if per_layer else exponents[:1]
    logs = float(np.log(3 * data.m / delta) + np.sum(np.log(BASEL * paid**2)) + cost)
    complexity = kl_square_root(divergence, data.m, logs)
    least = float(sigmas.min())
    return RiskBound(loss + complexity, loss, complexity, margin, least, float(divergence), 1 - delta)


def _margin_grid(sample_margins: Array) -> list[tuple[float, float]]:
    """Powers of two up to twice the largest margin, each with the logarithm that its choice costs."""
    top = max(float(sample_margins.max()), SMALLEST_MARGIN)
    last = int(np.ceil(np.log2(2 * top)))
    return [(2.0**j, integer_cost(j)) for j in range(last - _MARGINS_TRIED, last + 1)]


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
    needed = nice_margins(network, trained, data.x)[1] * (_MARGIN_PARTS if proved else 1)
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
    problem = next(filter(None, map(homogeneous_problem, every)), "")
    problem = problem or norm_problem(data, input_norm)
    if not problem and not needed < margin:
        problem = f"the samples are not nice: gamma must exceed {needed:.3g}"
    if problem:
        return infinite(loss, margin, problem, proved)
    if proved:
        trained, initial = [balanced(n) for n in trained], [balanced(n) for n in initial]
    norms = [LayerNorms.of(n) for n in trained]
    betas = np.array([n.geometric_mean for n in norms])
    dimension = max(map(max, norms[0].shapes)) if proved else max(network.hidden, default=1)
    distances = squared_distances(trained, initial)
    d = len(norms[0].weights)
    low = (margin / (2 * input_norm)) ** (1 / d)
    if betas.min() < low:
        reason = f"beta = {betas.min():.3g} is below {low:.3g}: no margin can be reached"
        return infinite(loss, margin, reason, proved)
    grid, share = _beta_grid(betas, low, delta, d, proved)
    gamma = margin / (_MARGIN_PARTS if proved else 1)
    sigmas = _cluster_sigmas(grid, gamma, input_norm, d, dimension, share)
    divergences = -(logsumexp(-distances / (2 * sigmas[:, None] ** 2), axis=1) - np.log(len(initial)))
    best = int(np.argmin(divergences))
    sigma, divergence = float(sigmas[best]), float(divergences[best])
    complexity = kl_square_root(divergence, data.m, float(np.log(3 * data.m / share) + cost))
    value, confidence = loss + complexity, 1 - delta
    return RiskBound(value, loss, complexity, margin, sigma, divergence, confidence, proved)


def _beta_grid(betas: Array, low: float, delta: float, d: int, proved: bool) -> tuple[Array, float]:
    """Grid points next to the betas (k,), and the share of ``delta`` left for each possible choice.

    Proved: in the interval [low, 2^r low] with r paid for. As stated: in the one that just holds every beta.
    """
    doublings = max(1, int(np.ceil(np.log2(betas.max() / low))))
    high = low * 2.0**doublings if proved else _CLUSTER_REACH * betas.max()
    points = max(1, int(np.ceil(d / 2 * high / low)))
    choices = points * (doublings * (doublings + 1) if proved else 1)
    return np.array([grid_point(beta, low, high, points) for beta in betas]), delta / (
        _CLUSTER_ANGLES * choices
    )


def _cluster_sigmas(
    betas: Array, margin: float, input_norm: float, d: int, dimension: int, share: float
) -> Array:
    first = betas * np.exp(-1 / (d - 1)) / d
    second = margin / (math.e**2 * d * input_norm * betas ** (d - 1))
    return np.asarray(np.minimum(first, second) / np.sqrt(2 * dimension * np.log(2 * d * dimension / share)))
