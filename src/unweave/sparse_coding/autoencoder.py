"""The weight-tied autoencoder y -> W^T relu(W y - eps): loss, gradient, and the gradient's proxy.

W is (h, n), rows W_i; eps is one bias. Over signals y,

    L = E |W^T r - y|^2 / 2,    r = relu(W y - eps),    f = W^T r - y,
    grad_i = E[ r_i f + 1{W_i . y > eps} (W_i . f) y ].

The *proxy* replaces "unit i fires" by "atom i is in the support", which is the same wherever supports are
recovered. It is then a polynomial in x, and its expectation over k-sparse codes is exact: with B = W A,
G = W W^T, given i in S,

    proxy_i = (k/h) ( sum_j P_ij W_j + sum_l Q_il A_l ),
    P_ij = E_i[ s_j (B_i . x - eps)(B_j . x - eps) ],
    Q_il = sum_j G_ij E_i[ s_j x_l (B_j . x - eps) ] - E_i[ (2 B_i . x - eps) x_l ],

s_j = 1{j in S}. So alpha_i = (k/h) P_ii, beta_i = -(k/h) Q_ii and the remainder e_i collects the other atoms:
proxy_i = alpha_i W_i - beta_i A_i + e_i, for some products of (h, h) matrices.

Near the dictionary it is small ([mathematics] Thm. 4.3.2): for k = h^p, mu = h^-zeta and columns within delta
= h^(-p - nu^2) of the atoms, p < 1/2, p < nu^2 and p + nu^2 < zeta,

    |E dL/dW_i| = o( max(m1^2, m2) h^(p-1) ),

so near-critical, in units of max(m1^2, m2) k/h. Measured here: the mean over hidden units of |grad_i| in
these units, the gradient averaged over signals and over points at a given distance from the dictionary;
beside it the exact expectation of the proxy, which has no sampling error. What is small is the coherence:
at spikes and waves themselves, k = 2 and the bias of training, the proxy is 0.73, 0.43 and 0.23 for 64, 256
and 1024 inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.sparse_coding.generative import SparseModel, checked_matrix, gaussian_dictionary, near_dictionary


def autoencoder_network(encoder: Array, bias: float) -> Network:
    """The autoencoder with encoder W (h, n) as a network n-h-n."""
    h, n = encoder.shape
    return Network([encoder.T, encoder], [np.full(h, -bias), np.zeros(n)], ["relu", "identity"])


def autoencoder_loss(encoder: Array, signals: Array, bias: float) -> float:
    """L over signals (N, n)."""
    active = np.maximum(signals @ encoder.T - bias, 0.0)
    return float(0.5 * np.sum((active @ encoder - signals) ** 2) / len(signals))


def autoencoder_gradient(encoder: Array, signals: Array, bias: float) -> Array:
    """dL/dW (h, n) over signals (N, n). Cost: 8 N n h flops."""
    before = signals @ encoder.T - bias
    active = np.maximum(before, 0.0)
    error = active @ encoder - signals
    through = np.where(before > 0, error @ encoder.T, 0.0)
    return np.asarray((active.T @ error + through.T @ signals) / len(signals))


@dataclass(frozen=True, eq=False)
class ProxyGradient:
    """The expected proxy gradient, and its parts along W_i, A_i and the rest."""

    gradient: Array
    """(h, n)"""
    along_encoder: Array
    """(h,) alpha."""
    along_atom: Array
    """(h,) beta."""
    remainder: Array
    """(h, n) e."""


def proxy_gradient(encoder: Array, model: SparseModel, bias: float) -> ProxyGradient:
    """The expected proxy gradient of encoder W (h, n) under ``model``, in closed form."""
    h, k = model.n_atoms, model.sparsity
    encoder = checked_matrix(encoder, "encoder", (h, model.n_inputs))
    if h < 4:
        raise InvalidInput(
            f"dictionary must have at least 4 atoms for the closed form. Got {h} instead. Average "
            f"autoencoder_gradient over codes."
        )
    products, gram = encoder @ model.dictionary, encoder @ encoder.T
    on_rows, on_atoms = _coefficients(products, gram, model, bias)
    share = k / h
    on_rows, on_atoms = share * on_rows, share * on_atoms
    gradient = on_rows @ encoder + on_atoms @ model.dictionary.T
    alpha, beta = np.diag(on_rows).copy(), -np.diag(on_atoms)
    remainder = gradient - alpha[:, None] * encoder + beta[:, None] * model.dictionary.T
    return ProxyGradient(gradient, alpha, beta, remainder)


def _coefficients(b: Array, gram: Array, model: SparseModel, eps: float) -> tuple[Array, Array]:
    """P and Q (h, h) of the module's formula, from B and G.

    Given i in S the other k - 1 entries are uniform among h - 1: one more atom is present with probability
    one, two more with probability two, and given i and j one more with p, two more with q.
    """
    h, k, m1, m2 = model.n_atoms, model.sparsity, model.mean, model.mean_square
    one, two = (k - 1) / (h - 1), (k - 1) * (k - 2) / ((h - 1) * (h - 2))
    p, q = (k - 2) / (h - 2), (k - 2) * (k - 3) / ((h - 2) * (h - 3))
    own = np.diag(b)
    total, other = b.sum(axis=1), b.sum(axis=1) - own
    # Entry (i, j) of these belongs to row j of B without columns i and j, row i without the same.
    rest_j = total[None, :] - b.T - own[None, :]
    rest_i = total[:, None] - own[:, None] - b
    inner = b @ b.T - own[:, None] * b.T - b * own[None, :]

    def first(i: Array, j: Array, rest: Array) -> Array:
        """E_ij[d . x] of a row with entries i and j of d and the sum of the others."""
        return np.asarray(m1 * (i + j + p * rest))

    # P_ij for j != i: both atoms i and j are present.
    mine, theirs = own[:, None], own[None, :]  # B_ii and B_jj
    square = m2 * (mine * b.T + b * theirs + p * inner) + m1**2 * (
        mine * theirs
        + b * b.T
        + p * ((mine + b) * rest_j + (b.T + theirs) * rest_i)
        + q * (rest_i * rest_j - inner)
    )
    mean_i, mean_j = first(mine, b, rest_i), first(b.T, theirs, rest_j)
    on_rows = one * (square - eps * (mean_i + mean_j) + eps**2)
    # P_ii: only atom i is present for certain.
    squares = np.sum(b**2, axis=1) - own**2
    variance = m2 * (own**2 + one * squares) + m1**2 * (2 * one * own * other + two * (other**2 - squares))
    np.fill_diagonal(on_rows, variance - 2 * eps * m1 * (own + one * other) + eps**2)

    # E_i[(B_i . x) x_l] and E_i[x_l].
    along = one * m2 * b + m1**2 * (one * own[:, None] + two * (other[:, None] - b))
    np.fill_diagonal(along, m2 * own + m1**2 * one * other)
    present = np.full((h, h), one * m1)
    np.fill_diagonal(present, m1)
    diagonal = np.diag(gram)[:, None]
    on_atoms = diagonal * (along - eps * present) - (2 * along - eps * present)

    # sum over j != i of G_ij E_i[s_j x_l (B_j . x - eps)], by where l is.
    weights = gram.copy()
    np.fill_diagonal(weights, 0.0)
    pulled = weights @ b
    elsewhere = m2 * p * pulled + m1**2 * (
        np.sum(weights * (p * (b.T + theirs) + q * rest_j), axis=1)[:, None] - q * pulled
    )
    elsewhere -= eps * m1 * p * weights.sum(axis=1)[:, None]
    # l = j was counted among the others: take that term out and put the right one in.
    elsewhere += weights * (
        m2 * (1 - p) * theirs
        + m1**2 * (b.T + p * rest_j - p * (b.T + theirs) - q * (rest_j - theirs))
        - eps * m1 * (1 - p)
    )
    at_own = np.sum(weights * (m2 * b.T + m1**2 * (theirs + p * rest_j) - eps * m1), axis=1)
    np.fill_diagonal(elsewhere, at_own)
    return on_rows, on_atoms + one * elsewhere


@dataclass(frozen=True)
class Criticality:
    """Norms of the gradient per unit, mean over units, in units of max(m1^2, m2) k/h."""

    distance: float
    bias: float
    gradient: float
    """Averaged over the signals and over all points, then taken per unit."""
    each: float
    """Averaged over the signals; the mean over points of the norm."""
    proxy: float
    """Like ``each``, for the exact expectation of the proxy."""
    gap: float
    """Of the gradient to the proxy: sampling, and supports that are not recovered."""
    scale: float
    """max(m1^2, m2) k/h, by which all of these are divided."""


def measure_criticality(
    model: SparseModel, distance: float, bias: float, signals: Array, points: int, rng: np.random.Generator
) -> Criticality:
    """Measure at ``points`` random encoders, every row ``distance`` away from its atom, on signals (N, n)."""
    if points < 1 or not np.isfinite(distance) or distance < 0:
        raise InvalidInput(
            f"points must be at least 1 and distance at least 0. Got {points} and {distance!r} instead. "
            f"The rows of the encoder are that far from the atoms."
        )
    scale = max(model.mean**2, model.mean_square) * model.sparsity / model.n_atoms
    total = np.zeros((model.n_atoms, model.n_inputs))
    each, proxies, gaps = [], [], []
    for _ in range(points):
        encoder = near_dictionary(model.dictionary, distance, rng).T
        gradient = autoencoder_gradient(encoder, signals, bias)
        proxy = proxy_gradient(encoder, model, bias).gradient
        total += gradient
        each.append(_mean_norm(gradient))
        proxies.append(_mean_norm(proxy))
        gaps.append(_mean_norm(gradient - proxy))
    return Criticality(
        distance=distance,
        bias=bias,
        gradient=_mean_norm(total / points) / scale,
        each=float(np.mean(each)) / scale,
        proxy=float(np.mean(proxies)) / scale,
        gap=float(np.mean(gaps)) / scale,
        scale=scale,
    )


def loss_slice(
    model: SparseModel, bias: float, signals: Array, distances: Array, rng: np.random.Generator
) -> Array:
    """Losses at A + t D for every t of ``distances`` (T,), D a random direction with unit columns."""
    direction = gaussian_dictionary(model.n_inputs, model.n_atoms, rng)
    return np.array(
        [autoencoder_loss((model.dictionary + t * direction).T, signals, bias) for t in distances]
    )


def _mean_norm(gradient: Array) -> float:
    return float(np.linalg.norm(gradient, axis=1).mean())
