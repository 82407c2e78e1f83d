"""The landscape of a quadratic network: risk, energy barrier, stationary points.

With A = W W^T - M, M = W* W*^T positive definite, and inputs with i.i.d. centered coordinates of variance
mu2 and fourth moment mu4,

    L(W) = E (x^T A x)^2 = mu2^2 (tr A)^2 + 2 mu2^2 |A|_F^2 + (mu4 - 3 mu2^2) sum_i A_ii^2
         >= min{mu4 - mu2^2, 2 mu2^2} |A|_F^2.

**Barrier.** Every W of rank below d has |A|_F >= s^2, s^2 the least eigenvalue of M, so descent that starts
below min{mu4 - mu2^2, 2 mu2^2} s^4 never loses rank. For Gaussian inputs the barrier is exactly

    min over rank(W) < d of L(W) = 2 (d+2)/(d+1) s^4,      at A = -s^2 u u^T + s^2/(d+1) (I - u u^T),

u the eigenvector of s^2: for W W^T u = 0, L is least when A_uu = -u^T M u and the rest of A is a multiple
of the identity.

**On samples**, Lhat(W) = pack(A)^T G pack(A), G = (1/N) R^T R with R the packed x x^T, so that
lambda_min(G) s^4 is a barrier of the samples at hand, with certainty instead of high probability.

**Stationary points.** grad Lhat = 4 S W with pack(S) = G pack(A). If W has full rank and the samples span,

    |W W^T - M|_F <= |grad Lhat(W)|_F / (4 sigma_min(W) lambda_min(G)),

so a full-rank stationary point is the truth, and a small gradient bounds how far it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.quadratic.span_test import checked_inputs, checked_labels, packed_rows, rank_of, triangle


@dataclass(frozen=True)
class InputMoments:
    """Variance and fourth moment of the inputs' coordinates; by default those of N(0, 1)."""

    second: float = 1.0
    fourth: float = 3.0

    @property
    def curvature(self) -> float:
        """min{mu4 - mu2^2, 2 mu2^2}: L(W) is at least this times |A|_F^2. 0 for coordinates +-1."""
        return min(self.fourth - self.second**2, 2 * self.second**2)

    @property
    def gaussian(self) -> bool:
        """Whether mu4 = 3 mu2^2: then L depends on the eigenvalues of A only."""
        return bool(np.isclose(self.fourth, 3 * self.second**2, rtol=1e-12))


GAUSSIAN = InputMoments()


@dataclass(frozen=True)
class StationaryCertificate:
    """Bounds on the distance of W from the truth, by the gradient at W."""

    gradient_norm: float
    """|grad Lhat(W)|_F."""
    smallest_singular_value: float
    """sigma_min(W), of d; 0 if W has fewer than d units."""
    smallest_curvature: float
    """lambda_min(G); 0 if the samples do not span."""
    distance_bound: float
    """Bound of |W W^T - M|_F; inf where one of the two above is zero."""
    risk_bound: float
    """Bound of Lhat(W) by the same argument, |S|_F |A|_F."""


def population_risk(difference: Array, moments: InputMoments = GAUSSIAN) -> float:
    """L for A = ``difference`` (d, d), symmetric."""
    trace, square = float(np.trace(difference)), float(np.sum(difference**2))
    excess = moments.fourth - 3 * moments.second**2
    return moments.second**2 * (trace**2 + 2 * square) + excess * float(np.sum(np.diag(difference) ** 2))


def population_barrier(matrix: Array, moments: InputMoments = GAUSSIAN) -> float:
    """Least risk of any W of rank below d, for M = ``matrix``: exact for Gaussian moments, else a lower
    bound."""
    d = len(matrix)
    least = max(float(np.linalg.eigvalsh(matrix)[0]), 0.0)
    if moments.gaussian:
        return 2 * (d + 2) / (d + 1) * moments.second**2 * least**2
    return moments.curvature * least**2


def barrier_point(matrix: Array) -> Array:
    """W W^T of rank d - 1 with the least Gaussian risk: M - s^2 u u^T + s^2/(d+1) (I - u u^T)."""
    values, vectors = np.linalg.eigh(matrix)
    u = vectors[:, :1]
    return np.asarray(
        matrix - values[0] * u @ u.T + values[0] / (len(matrix) + 1) * (np.eye(len(matrix)) - u @ u.T)
    )


def empirical_risk(x: Array, y: Array, weights: Array) -> float:
    """Lhat(W) = (1/N) sum (|W^T x|^2 - y)^2 for W (d, m)."""
    return float(np.mean((np.sum((x @ weights) ** 2, axis=1) - y) ** 2))


def empirical_gradient(x: Array, y: Array, weights: Array) -> Array:
    """grad Lhat(W) = (4/N) sum (|W^T x|^2 - y) x x^T W, (d, m)."""
    residual = np.sum((x @ weights) ** 2, axis=1) - y
    return np.asarray(4 / len(x) * (x * residual[:, None]).T @ (x @ weights))


def smallest_curvature(x: Array) -> float:
    """lambda_min(G) of samples x (N, d), without scaling them; 0 if they do not span."""
    rows = packed_rows(checked_inputs(x))
    if len(rows) < rows.shape[1]:
        return 0.0
    span = rank_of(triangle(rows), x.shape)
    return span.smallest**2 / len(x)


def empirical_barrier(x: Array, matrix: Array) -> float:
    """lambda_min(G) s^4 for M = ``matrix``: no W of rank below d has a smaller risk on these samples."""
    return smallest_curvature(x) * max(float(np.linalg.eigvalsh(matrix)[0]), 0.0) ** 2


def stationary_certificate(x: Array, y: Array, weights: Array) -> StationaryCertificate:
    """Bound the distance of W (d, m) from the truth by the gradient on samples x (N, d), y (N,).

    Holds for labels y = x^T M x exactly; noise in them moves the stationary point, not the bound.
    """
    x = checked_inputs(x)
    y = checked_labels(x, y)
    if weights.ndim != 2 or len(weights) != x.shape[1]:
        raise InvalidInput(
            f"weights must be of shape ({x.shape[1]}, m). Got {weights.shape} instead. Columns are units."
        )
    gradient = float(np.linalg.norm(empirical_gradient(x, y, weights)))
    wide = weights.shape[1] >= len(weights)
    singular = float(np.linalg.svd(weights, compute_uv=False)[-1]) if wide else 0.0
    curvature = smallest_curvature(x)
    if singular == 0 or curvature == 0:
        return StationaryCertificate(gradient, singular, curvature, np.inf, np.inf)
    half = gradient / (4 * singular)  # bounds |S|_F
    return StationaryCertificate(gradient, singular, curvature, half / curvature, half**2 / curvature)
