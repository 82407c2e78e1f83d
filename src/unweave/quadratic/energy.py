"""The landscape of a quadratic network: risk, energy barrier, stationary points, descent.

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

so a full-rank stationary point is the truth, and a small gradient bounds how far it is. Without a span,
Lhat = pack(S)^T G^+ pack(S) is still at most |S|_F^2 over the least positive eigenvalue of G: a full-rank
stationary point fits all labels, however few.

**Descent** W <- W - eta grad Lhat(W) begins at W0 W0^T = t I, eta by backtracking
(`unweave.optimize.armijo`). If the truth W* (d, m) has i.i.d. entries of variance one, W* W*^T is close to m
I, and the start t = m is below the energy barrier once m is some 5 d^2: for Gaussian inputs and entries E
L(W0) = 2 m d (d + 2), while the barrier grows like m^2 (1 - sqrt(d/m))^4. Descent that begins below the
barrier keeps full rank and ends at the truth. The condition is sufficient, not necessary: random starts far
above it end there too, given a few times d(d+1)/2 samples. At d(d+1)/2 the exact solve
(`unweave.quadratic.exact_solve`) is exact while descent hardly moves: use the solve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.optimize.armijo import armijo_descent
from unweave.quadratic.exact_solve import checked_inputs, checked_labels, packed_rows, rank_of, triangle


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
    """Bound of Lhat(W): |S|_F^2 over the least positive eigenvalue of G, for any number of samples."""


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
    if singular == 0:
        return StationaryCertificate(gradient, singular, curvature, np.inf, np.inf)
    half = gradient / (4 * singular)  # bounds |S|_F
    seen = curvature or _least_positive_curvature(x)
    distance = half / curvature if curvature else np.inf
    return StationaryCertificate(gradient, singular, curvature, distance, half**2 / seen if seen else 0.0)


def _least_positive_curvature(x: Array) -> float:
    """The least positive eigenvalue of G, of samples that need not span."""
    found = rank_of(packed_rows(x), x.shape)
    return float(found.spectrum[found.rank - 1]) ** 2 / len(x) if found.rank else 0.0


@dataclass(frozen=True)
class QuadraticDescentOptions:
    """Stopping rules of the descent."""

    steps: int = 3000
    tolerance: float = 1e-26
    """Risk relative to the mean square of the labels: 1e-13 of the labels."""


@dataclass(frozen=True, eq=False)
class QuadraticDescent:
    """End point of the descent."""

    weights: Array
    """(d, m)."""
    history: Array
    """Relative risk, the start first: never rising."""
    converged: bool


def identity_start(dimension: int, width: int, scale: float | None = None) -> Array:
    """W0 (d, m) with W0 W0^T = scale I; scale m if not given. Needs m >= d."""
    if width < dimension:
        raise InvalidInput(
            f"width must be at least the number of inputs, {dimension}. Got {width} instead. "
            f"W0 W0^T = t I has full rank."
        )
    return np.asarray(np.sqrt(width if scale is None else scale) * np.eye(dimension, width))


def matched_scale(x: Array, y: Array) -> float:
    """t with E[t |x|^2] = E y: the multiple of the identity whose mean label is right."""
    return float(np.mean(y) / np.mean(np.sum(x**2, axis=1)))


def start_over_barrier(dimension: int, width: int) -> float:
    """L(W0)/s^4 expected for t = m and Gaussian W* of that width: 2 d (d+2) / (m (1 - sqrt(d/m))^4)."""
    if width <= dimension:
        return np.inf
    return 2 * dimension * (dimension + 2) / (width * (1 - float(np.sqrt(dimension / width))) ** 4)


def quadratic_descent(
    x: Array, y: Array, start: Array, options: QuadraticDescentOptions | None = None
) -> QuadraticDescent:
    """Descend on samples x (N, d), y (N,) from W = ``start`` (d, m)."""
    options = options or QuadraticDescentOptions()
    x = checked_inputs(x)
    y = checked_labels(x, y)
    size = float(np.mean(y**2)) or 1.0
    # The Hessian of Lhat is at most 12 |x|^4 times the size of W W^T: this step is safe, and grows.
    fourth = float(np.mean(np.sum(x**2, axis=1) ** 2))
    curvature = 12 * fourth * max(float(np.linalg.norm(start, 2)) ** 2, 1e-300)
    found = armijo_descent(
        lambda weights: empirical_risk(x, y, weights),
        lambda weights: empirical_gradient(x, y, weights),
        start,
        1 / curvature,
        options.steps,
        lambda risk, _: risk / size <= options.tolerance,
        decrease=0.3,
    )
    history = found.losses / size
    return QuadraticDescent(found.point, history, bool(history[-1] <= options.tolerance))
