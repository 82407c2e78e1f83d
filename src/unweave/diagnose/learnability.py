"""How well Hessians show the units: the learnability alpha, estimated from a spectrum or exact.

alpha is the m-th eigenvalue of E[vec H vec H^T], H the Hessian of f(x) = sum_k a_k g(w_k . x + tau_k) at
Gaussian x. With the packed squares of the weights as columns of U this matrix is U E_2 U^T, where

    (E_n)_kl = E[ g^(n)(w_k.X + tau_k) g^(n)(w_l.X + tau_l) ] = sum_r mu_r(k) mu_r(l) <w_k, w_l>^r,

mu_r(k) being the Hermite coefficients of g^(n)(. + tau_k). Hence alpha = lambda_min(E_2^{1/2} G_2 E_2^{1/2}),
which is at least lambda_min(G_2) lambda_min(E_2) ([identification] Thm. 3.5). The error of the span is (error
of a Hessian) / sqrt(alpha).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.diagnose.incoherence import checked_unit_columns, hadamard_gram
from unweave.errors import InvalidInput
from unweave.networks.activations import Activation

_HERMITE_NODES = 200  # also coefficients: their squares then sum to the quadrature of the square
_OMEGA_SHIFTS = 61  # shifts over which the minimum that defines omega is taken


@dataclass(frozen=True)
class Learnability:
    """Expected learnability of a network with unit weights, and what bounds it."""

    alpha: float
    """lambda_m(E[vec H vec H^T]): the sampled sigma_m^2 / N_h tends to it; small means that many Hessians,
    or very exact ones, are needed before all units show."""
    alpha_lower_bound: float
    """lambda_min(G_2) lambda_min(E_2) <= alpha ([identification] Thm. 3.5), usually within a factor of 2."""
    curvature_smallest: float
    """lambda_min(E_2): hardly depends on the weights, so alpha is governed by lambda_min(G_2)."""
    curvature_largest: float
    """lambda_max(E_2): sigma_1^2 / N_h is at most this times lambda_max(G_2)."""
    slope_smallest: float
    """lambda_min(E_1): curvature of the shift problem, zero when shifts cannot be separated."""
    omega: float
    """Half the least sum_{r >= 4} mu_r(g'(. + tau))^2 over the network's range of shifts: the part of g'
    beyond cubic polynomials, on which the source's bound rests. Zero for polynomial activations."""
    slope_lower_bound: float
    """2 omega - (m - 1) mu_2^2 max_tau sum_{r >= 4} mu_r^2 <= lambda_min(E_1) ([identification] Lemma 3.9
    with its constant); negative means that the lemma says nothing. `slope_bounds` takes any order."""


def expected_learnability(
    weights: Array, shifts: Array, activation: Activation, outgoing: Array | None = None
) -> Learnability:
    """Exact learnability for unit columns ``weights`` (D, m), ``shifts`` (m,) and ``outgoing`` (m, K),
    default ones.

    Gaussian inputs. With several outputs the Hessians of all of them count. Cost: O(m^3 + 200 m^2) flops.
    """
    curvature = derivative_gram(weights, shifts, activation, 2)
    slope = derivative_gram(weights, shifts, activation, 1)
    weighted = curvature if outgoing is None else curvature * (outgoing @ outgoing.T)
    gram = hadamard_gram(weights, 2)
    off = np.abs(weights.T @ weights - np.eye(weights.shape[1]))
    bends = scipy.linalg.eigvalsh(weighted)
    reach = float(np.abs(shifts).max(initial=0.0))
    tails = hermite_tail(activation, np.concatenate([shifts, np.linspace(-reach, reach, _OMEGA_SHIFTS)]), 1)
    coherence = float(off.max(initial=0.0)) ** 2
    return Learnability(
        alpha=_smallest_of_product(gram, weighted),
        alpha_lower_bound=max(0.0, float(scipy.linalg.eigvalsh(gram)[0])) * max(0.0, float(bends[0])),
        curvature_smallest=float(bends[0]),
        curvature_largest=float(bends[-1]),
        slope_smallest=float(scipy.linalg.eigvalsh(slope)[0]),
        omega=float(tails.min()) / 2,
        slope_lower_bound=float(tails.min() - (weights.shape[1] - 1) * coherence**2 * tails.max()),
    )


def slope_bounds(weights: Array, shifts: Array, activation: Activation, orders: range) -> Array:
    """Lower bounds (n,) of lambda_min(E_1), one for each R of the n ``orders`` ([identification]
    (3.94)).

        min_tau sum_{r > R} mu_r^2 - (m - 1) mu^(R+1) max_tau sum_{r > R} mu_r^2,     mu = max |<w_k, w_l>|,

    tau over ``shifts``: the terms r <= R of the series are positive semidefinite and are left out, the others
    are dominated by their diagonal. Larger R need a less polynomial activation and gain from incoherence;
    R = 3 is Lemma 3.9. The source has 1/2 in front and a constant C; both are known here.
    """
    checked_unit_columns(weights)
    if orders.start < 0:
        raise InvalidInput(f"orders must be 0 or more. Got {orders} instead. The source takes 3.")
    off = np.abs(weights.T @ weights - np.eye(weights.shape[1]))
    mu = float(off.max(initial=0.0))
    tails = [hermite_tail(activation, shifts, 1, order + 1) for order in orders]
    others = weights.shape[1] - 1
    bounds = [
        tail.min() - others * mu ** (order + 1) * tail.max()
        for order, tail in zip(orders, tails, strict=True)
    ]
    return np.array(bounds)


def learnability_estimate(singular_values: Array, rank: int, count: int) -> tuple[float, float]:
    """alpha_hat = sigma_m^2 / N and the gap sigma_m / sigma_{m+1} of ``count`` Hessians' ``singular_values``.

    ``rank`` is m. The gap is infinite when no value follows; a large one confirms m.
    """
    if not 1 <= rank <= len(singular_values):
        raise InvalidInput(
            f"rank must be between 1 and {len(singular_values)}. Got {rank} instead. "
            "Sample at least as many Hessians as there are units."
        )
    last = float(singular_values[rank - 1])
    below = float(singular_values[rank]) if rank < len(singular_values) else 0.0
    return last**2 / count, last / below if below > 0 else np.inf


def derivative_gram(weights: Array, shifts: Array, activation: Activation, derivative: int) -> Array:
    """E_n (m, m): E[g^(n)(w_k.X + tau_k) g^(n)(w_l.X + tau_l)] for Gaussian X, n = ``derivative``.

    ``weights`` (D, m) unit columns, ``shifts`` (m,). The diagonal is a quadrature of the square, the rest
    the Hermite series cut where <w_k, w_l>^r has fallen below rounding.
    """
    checked_unit_columns(weights)
    coefficients = _coefficients(activation, shifts, derivative)
    cosines = weights.T @ weights
    np.fill_diagonal(cosines, 0.0)
    largest = float(np.abs(cosines).max(initial=0.0))
    power, total = np.ones_like(cosines), np.zeros_like(cosines)
    for r in range(_HERMITE_NODES):
        total += np.outer(coefficients[:, r], coefficients[:, r]) * power
        power *= cosines
        if largest ** (r + 1) < np.finfo(np.float64).eps:
            break
    np.fill_diagonal(total, np.einsum("kr,kr->k", coefficients, coefficients))
    return total


def hermite_tail(activation: Activation, shifts: Array, derivative: int, start: int = 4) -> Array:
    """sum_{r >= start} mu_r(g^(n)(. + tau))^2 at every shift tau of ``shifts`` (m,): what no polynomial of
    lower degree explains, n = ``derivative``. The source's bound starts at 4."""
    coefficients = _coefficients(activation, shifts, derivative)[:, start:]
    return np.asarray(np.einsum("kr,kr->k", coefficients, coefficients))


def _coefficients(activation: Activation, shifts: Array, derivative: int) -> Array:
    """(m, _HERMITE_NODES) Hermite coefficients of g^(n)(. + tau_k)."""
    if not activation.smooth:
        raise InvalidInput(
            f"activation must be smooth. Got {activation.name!r} instead. "
            "Networks with kinks are recovered without Hessians, and this theory does not cover them."
        )
    return activation.hermite_coefficients(_HERMITE_NODES, shifts, derivative, nodes=_HERMITE_NODES)


def _smallest_of_product(gram: Array, curvature: Array) -> float:
    """lambda_min(S G S) with S the symmetric root of the semidefinite ``curvature``."""
    values, vectors = scipy.linalg.eigh(curvature)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return max(0.0, float(scipy.linalg.eigvalsh(root.T @ gram @ root)[0]))
