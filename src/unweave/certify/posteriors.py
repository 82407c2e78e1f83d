"""Posteriors on networks: the general PAC-Bayes bounds, the shrunk posterior, and noise from a mixture.

For a prior P fixed before the m samples, every posterior Q and losses in [0, 1], with probability 1 - delta
([mathematics] Thm. 6.1.1)

    E_Q L <= E_Q L^ + sqrt( (KL(Q|P) + log(m/delta)) / (2 (m - 1)) ).

Margins of classifiers need a posterior that moves no answer on the samples by gamma/4: the *shrunk* one, mu
conditioned on that set, which has probability Z >= 1/2 (Thm. 6.1.2). Its price is

    KL(shrunk|P) <= (KL(mu|P) + h(Z)) / Z,    h(Z) = -Z log Z - (1 - Z) log(1 - Z).

**Noise from a mixture** (Thm. 6.2.1). A' ~ sum_i p_i N(A_i, sigma^2), where the A_i answer within eps |f(x)|
of f on the samples: then |f_A'(x) - f(x)| <= 2 gamma for gamma > eps max |f(x)|, but for a share delta. The
draw picks one i first, so that it suffices that N(A_i, sigma^2) moves f_{A_i} by at most gamma for every i:

    sigma = min_i sigma_i(gamma, delta),     sigma_i from `noise_resilience_sigma`.

The printed sigma has gamma/(k p_i) in place of gamma and delta/k in place of delta. It comes from a bound on
sum_i p_i |f_{A_i + U_i} - f_{A_i}|, of which the proof needs the single terms: a component with p_i < 1/k may
then move its answers by gamma/(k p_i). It is no guarantee for small p_i, and needlessly small for others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unweave.certify.margins import kl_square_root, require_alike
from unweave.certify.perturbation import Form, draw_noise, noise_resilience_sigma
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.numerics.clock import check


def pac_bayes_bound(empirical: float, divergence: float, samples: int, delta: float = 0.05) -> float:
    """E_Q L^ + sqrt((KL + log(m/delta)) / (2 (m - 1))) ([mathematics] Thm. 6.1.1).

    Example:
        >>> round(pac_bayes_bound(0.1, divergence=5.0, samples=1000), 4)
        0.1864
    """
    _check(divergence, samples, delta)
    return empirical + kl_square_root(divergence, samples, math.log(samples / delta)) / math.sqrt(2)


def margin_pac_bayes_bound(margin_loss: float, divergence: float, samples: int, delta: float = 0.05) -> float:
    """L^_{gamma/2}(f) + sqrt((KL + log(3 m/delta)) / (m - 1)) for the shrunk posterior (Thm. 6.1.2).

    ``divergence`` is that of the posterior before it is shrunk; at least half of it must move no answer by
    gamma/4 (`shrunk_posterior` tells).
    """
    _check(divergence, samples, delta)
    return margin_loss + kl_square_root(divergence, samples, math.log(3 * samples / delta))


def shrunk_divergence(divergence: float, share: float) -> float:
    """(KL + h(Z)) / Z: bound of KL(shrunk|P) for a posterior of which the ``share`` Z is kept.

    Example:
        >>> shrunk_divergence(3.0, 1.0), shrunk_divergence(3.0, 0.5) <= 2 * 3 + 2
        (3.0, True)
    """
    if not 0 < share <= 1 or not divergence >= 0:
        raise InvalidInput(
            f"share must be above 0 and at most 1, divergence at least 0. Got {share} and {divergence} "
            f"instead. Change those."
        )
    entropy = -sum(z * math.log(z) for z in (share, 1 - share) if z > 0)
    return (divergence + entropy) / share


@dataclass(frozen=True)
class ShrunkPosterior:
    """Draws that move no answer on the samples by gamma/4 or more, and how many had to be thrown away."""

    networks: tuple[Network, ...]
    share: float
    """Part of all draws that was kept; the theorem asks for a half."""


def shrunk_posterior(
    network: Network,
    draw: Callable[[np.random.Generator], Network],
    x: ArrayLike,
    margin: float,
    count: int,
    rng: np.random.Generator,
    most_tries: int = 1000,
) -> ShrunkPosterior:
    """``count`` networks of ``draw(rng)`` with max over x (m, n) of |f'(x) - f(x)|_inf < ``margin``/4.

    By rejection, ``most_tries`` draws at most; fewer networks come back where too many are rejected.
    """
    rows = np.asarray(x, dtype=np.float64)
    answers, tries = network(rows), 0
    kept: list[Network] = []
    while len(kept) < count and tries < most_tries:
        check()
        other, tries = draw(rng), tries + 1
        if np.abs(other(rows) - answers).max() < margin / 4:
            kept.append(other)
    return ShrunkPosterior(tuple(kept), len(kept) / max(tries, 1))


def mixture_resilience_sigma(
    networks: Sequence[Network],
    input_norm: float,
    margin: float,
    failure: float = 0.5,
    weights: Sequence[float] | None = None,
    form: Form = "recursion",
) -> float:
    """sigma with which sum_i p_i N(A_i, sigma^2) moves f_{A_i} by at most ``margin``, but for ``failure``.

    ``weights`` p (k,) sum to one; equal ones unless given. ``form="published"`` evaluates the printed
    formula; the other forms are those of `noise_resilience_sigma`, do not depend on p, and are proved.
    """
    shares = _shares(networks, weights)
    if form != "published":
        return min(noise_resilience_sigma(n, input_norm, margin, failure, form) for n in networks)
    k = len(networks)
    return min(
        noise_resilience_sigma(n, input_norm, margin / (k * p), failure / k, form)
        for n, p in zip(networks, shares, strict=True)
    )


def draw_mixture(
    networks: Sequence[Network],
    sigma: float,
    rng: np.random.Generator,
    weights: Sequence[float] | None = None,
) -> Network:
    """One of ``networks`` (with probabilities ``weights``) with Gaussian noise on its parameters."""
    chosen = int(rng.choice(len(networks), p=_shares(networks, weights)))
    return draw_noise(networks[chosen], sigma, rng)


def _shares(networks: Sequence[Network], weights: Sequence[float] | None) -> list[float]:
    if not networks:
        raise InvalidInput("networks must not be empty. Give the centers of the mixture.")
    require_alike(networks[0], networks[1:])
    shares = [1 / len(networks)] * len(networks) if weights is None else [float(p) for p in weights]
    if len(shares) != len(networks) or min(shares) <= 0 or not math.isclose(sum(shares), 1.0):
        raise InvalidInput(
            f"weights must be {len(networks)} positive numbers that sum to one. Got {weights} instead. None "
            f"stands for equal ones."
        )
    return shares


def _check(divergence: float, samples: int, delta: float) -> None:
    if not divergence >= 0 or samples < 2 or not 0 < delta < 1:
        raise InvalidInput(
            f"divergence must be at least 0, samples at least 2, delta between 0 and 1. Got {divergence}, "
            f"{samples} and {delta} instead. Change those."
        )
