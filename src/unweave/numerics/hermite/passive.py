"""Mean derivatives of a function from its values at inputs of a known law, without asking anything.

For x of density p, smooth and vanishing at the border of its support ([identification] (1.17), Stein's lemma)

    E[grad f] = -E[f s],      E[Hessian f] = E[f (s s^T + J)],      s = grad log p,   J = grad s,

since (-1)^n grad^n p / p is -s for n = 1 and s s^T + J for n = 2. The right sides are means over samples,
with errors that fall like N^-1/2. Taking a constant off the labels changes no expectation and lessens the
noise. For the standard Gaussian, s = -x and J = -I: the Hermite tensors of `estimated_coefficients`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from unweave.arrays import Array
from unweave.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class PassiveDerivatives:
    """Estimates with their standard errors, entry by entry."""

    gradient: Array
    """(d,) E[grad f]."""
    hessian: Array
    """(d, d) E[Hessian f]."""
    gradient_error: Array
    hessian_error: Array


def passive_derivatives(x: Array, y: Array, scores: Array, jacobians: Array) -> PassiveDerivatives:
    """Mean gradient and Hessian from samples x (N, d), y (N,), scores s (N, d) and J (N, d, d) or (d, d).

    Example:
        >>> rng = np.random.default_rng(1000)
        >>> x = rng.standard_normal((200_000, 2))
        >>> found = passive_derivatives(x, 3 * x[:, 0] + x[:, 0] * x[:, 1], -x, -np.eye(2))
        >>> bool(np.abs(found.gradient - [3, 0]).max() < 0.1), bool(abs(found.hessian[0, 1] - 1) < 0.1)
        (True, True)
    """
    n, d = x.shape
    if y.shape != (n,) or scores.shape != (n, d) or jacobians.shape not in ((n, d, d), (d, d)):
        raise InvalidInput(
            f"x, y, scores and jacobians must be (N, d), (N,), (N, d) and (N, d, d). Got {x.shape}, "
            f"{y.shape}, {scores.shape} and {jacobians.shape} instead. Give one row per sample."
        )
    values = y - y.mean()
    first = -values[:, None] * scores
    second = values[:, None, None] * (scores[:, :, None] * scores[:, None, :] + jacobians)
    root = np.sqrt(n)
    return PassiveDerivatives(
        gradient=first.mean(axis=0),
        hessian=second.mean(axis=0),
        gradient_error=first.std(axis=0) / root,
        hessian_error=second.std(axis=0) / root,
    )


def mixture_scores(x: Array, shares: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    """s (N, d) and J (N, d, d) of the mixture sum_k shares_k N(means_k, covariances_k) at x (N, d).

    With r_k(x) the probability of component k given x and s_k, J_k its own score and Jacobian,

        s = sum_k r_k s_k,      J = sum_k r_k (J_k + s_k s_k^T) - s s^T.

    One component is the general Gaussian. ``means`` (K, d), ``covariances`` (K, d, d).
    """
    precisions = np.linalg.inv(covariances)
    each = -np.einsum("kab,nkb->nka", precisions, x[:, None, :] - means)  # (N, K, d)
    logs = 0.5 * np.einsum("nka,nka->nk", each, x[:, None, :] - means)
    logs += np.log(shares) - 0.5 * np.linalg.slogdet(covariances)[1]
    posterior = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    scores = np.einsum("nk,nka->na", posterior, each)
    squares = np.einsum("nk,nka,nkb->nab", posterior, each, each)
    own = np.einsum("nk,kab->nab", posterior, precisions)
    return scores, squares - own - scores[:, :, None] * scores[:, None, :]


def product_scores(scores: Array, slopes: Array) -> tuple[Array, Array]:
    """s (N, d) and J (N, d, d) of independent inputs, from (log p_i)' (N, d) and (log p_i)'' (N, d)."""
    return scores, slopes[:, :, None] * np.eye(slopes.shape[1])
