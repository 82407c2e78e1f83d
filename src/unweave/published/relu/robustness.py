"""The robust analysis of Hermite coefficients in numbers ([hermite] secs. A, D and E).

*B-bounded*: |a_i| in [1/B, B], |b_i| <= B, |w_i| <= B. Columns of W^(.l) are w_i^{(x) l}, w_i of length one.

**Scalars** (Lemmas D.10 and D.11). Four values g_j = (-1)^j beta He_j(z), beta = a phi(z), give a and z
within eps if each is known within eps' and beta is large enough:

    eps' = eps^4 / (2 (1 + B)^2),     |beta| >= c_k eps'^(1/4) (1 + B)^2,    c_k = 16 (k + 3)!  (16 for k =
    1).

Units that pass form the good set G (39); the others are learned as an affine function. eps' is far below
rounding for every eps that some |beta| <= B allows: the lemma is about polynomial dependence.

**Thresholds** (proof of Thm. D.1), s = s_m(W^(.l)), e = eps/(4 m B):

    eps_3 = e^4 s / (16 m^(3/2) (1 + B)^2),  eps_2 = eps_3 / (2 c B sqrt m),  eps_1 = sqrt(eps_2),
    eta_2 = 4 eps_1,   eta_3 = 2 eps_2,   |T_k - T^_k| <= eta_0 <= eps_3,

c = sup_z |He_{l+1}(z)| phi(z). eta_1 and Jennrich's share of eta_0 are "poly(...)" in the source and are not
given here. Samples for |T_k - T^_k| <= eta: of the order d^k m^2 B^4 / eta^2 (Lemma D.3).

**Singular values.** Claim A.4: s_m(U (.) V) >= kappa s_m(U)/sqrt(2 m), kappa the least column length of V.
Claim D.5: s_2 of two unit columns is at least s_2 of their powers over sqrt(2 l). Hence for the flattening
M = U diag(lambda) (V (.) Z)^T of T_{2 l + r} cut at eta_1 (44), (45):

    terms kept have |lambda| >= eta_1/(2 m);      terms with |lambda| > eta_1 (2 m)^(r/2) / s^2 are kept.

**Kruskal rank** (Fact 4.7): krank(U (.) V) >= min(krank U + krank V - 1, m). The source
prints an equality, which fails for four generic columns in R^2 each: their products are independent.

**Smoothed model** (Cor. 3.3): W + N(0, tau^2/d) entries, after which s_m(W^(.l)) >= poly(tau/d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.hermite.tensors import hermite_polynomial, normal_density
from unweave.published.relu.relu_units import ReLUUnits

_LARGEST_Z = 12.0  # He_k(z) phi(z) is below 1e-20 beyond, for the orders used
_GRID = 20_001  # points on which the supremum of |He_k| phi is taken
_DEPENDENT = 1e-10  # smallest over largest singular value of columns that count as dependent


@dataclass(frozen=True)
class ScalarAccuracy:
    """What Lemmas D.10 and D.11 ask for an accuracy eps."""

    allowed_error: float
    """eps', on every value."""
    least_strength: float
    """Of |a| phi(b)."""


@dataclass(frozen=True)
class RobustThresholds:
    """The parameters of [hermite] Alg. 4 for a wanted accuracy, as far as the source states them."""

    accuracy: float
    """eps / (4 m B), of every parameter."""
    eps_1: float
    eps_2: float
    eps_3: float
    eta_2: float
    eta_3: float
    coefficient_error: float
    """eps_3: what eta_0 must not exceed."""
    samples_scale: float
    """d^k m^2 B^4 / eta^2 for k = 2 l + 2 and eta = eps_3: samples, up to a constant and logarithms."""


def bounded_by(units: ReLUUnits) -> float:
    """Least B for which the units are B-bounded, at least one."""
    sizes = np.abs(units.outer)
    if not sizes.min() > 0:
        raise InvalidInput("output weights must not be zero. Got a unit that is not there. Leave it out.")
    lengths = np.linalg.norm(units.weights, axis=0)
    return float(max(1.0, sizes.max(), 1 / sizes.min(), np.abs(units.biases).max(), lengths.max()))


def scalar_accuracy(order: int, eps: float, bound: float) -> ScalarAccuracy:
    """eps' and the least |a| phi(b) of Lemma D.10 (k = ``order`` >= 2) or D.11 (1), B = ``bound``."""
    if order < 1 or not 0 < eps < 1 or bound < 1:
        raise InvalidInput(
            f"order must be at least 1, eps between 0 and 1, bound at least 1. Got {order}, {eps} and "
            f"{bound} instead. Change those."
        )
    allowed = eps**4 / (2 * (1 + bound) ** 2)
    constant = 16.0 * (math.factorial(order + 3) if order > 1 else 1)
    return ScalarAccuracy(allowed, constant * allowed**0.25 * (1 + bound) ** 2)


def good_set(units: ReLUUnits, eps: float, order: int = 1) -> Array:
    """(m,) whether each unit is in G: strong enough for its scalars to be found within ``eps``."""
    least = scalar_accuracy(order, eps, bounded_by(units)).least_strength
    return np.asarray(np.abs(units.outer) * normal_density(units.biases) >= least)


def robust_thresholds(units: ReLUUnits, eps: float, order: int = 1) -> RobustThresholds:
    """Thresholds of Alg. 4 for a network within ``eps`` of ``units``, l = ``order``."""
    d, m = units.weights.shape
    bound, smallest = bounded_by(units), power_singular_value(units.weights, order)
    accuracy = eps / (4 * m * bound)
    eps_3 = accuracy**4 * smallest / (16 * m**1.5 * (1 + bound) ** 2)
    eps_2 = eps_3 / (2 * hermite_supremum(order + 1) * bound * math.sqrt(m))
    eps_1 = math.sqrt(eps_2)
    scale = d ** (2 * order + 2) * m**2 * bound**4 / eps_3**2 if eps_3 > 0 else math.inf
    return RobustThresholds(accuracy, eps_1, eps_2, eps_3, 4 * eps_1, 2 * eps_2, eps_3, scale)


def hermite_supremum(order: int) -> float:
    """sup_z |He_k(z)| phi(z); at most sqrt(k!/(2 pi)) (Claim D.8)."""
    z = np.linspace(0.0, _LARGEST_Z, _GRID)
    return float(np.max(np.abs(hermite_polynomial(order, z)) * normal_density(z)))


def khatri_rao(first: Array, second: Array) -> Array:
    """Columns u_i (x) v_i (a b, m) of matrices (a, m) and (b, m)."""
    return np.asarray((first[:, None, :] * second[None, :, :]).reshape(-1, first.shape[1]))


def power_columns(weights: Array, order: int) -> Array:
    """W^(.l): columns w_i^{(x) l} (d^l, m) of unit columns in the directions of ``weights`` (d, m)."""
    unit = weights / np.linalg.norm(weights, axis=0)
    powers = unit
    for _ in range(order - 1):
        powers = khatri_rao(powers, unit)
    return np.asarray(powers)


def power_singular_value(weights: Array, order: int) -> float:
    """s_m(W^(.l)), from the Gram matrix (W^T W)^l entry by entry; zero for dependent columns."""
    unit = weights / np.linalg.norm(weights, axis=0)
    return float(np.sqrt(max(0.0, np.linalg.eigvalsh((unit.T @ unit) ** order)[0])))


def khatri_rao_bound(first: Array, second: Array) -> float:
    """kappa s_m(U) / sqrt(2 m) <= s_m(U (.) V) (Claim A.4), for m columns each."""
    least = float(np.linalg.norm(second, axis=0).min())
    return least * float(np.linalg.svd(first)[1].min()) / math.sqrt(2 * first.shape[1])


def kept_terms(eta_1: float, weights: Array, order: int, rest: int) -> tuple[float, float]:
    """(44) and (45): the least |lambda| of a term that is kept, and the |lambda| above which all are.

    T_{2 l + r} is flattened to w^l (x) (w^l (x) w^r) and cut at singular values eta_1, l = ``order`` and
    r = ``rest``.
    """
    m, smallest = weights.shape[1], power_singular_value(weights, order)
    sure = eta_1 * (2 * m) ** (rest / 2) / smallest**2 if smallest > 0 else math.inf
    return eta_1 / (2 * m), sure


def kruskal_rank(matrix: Array) -> int:
    """The largest r such that every r columns of ``matrix`` (d, m) are independent. Cost: all subsets."""
    most = 0
    for r in range(1, min(matrix.shape) + 1):
        for chosen in combinations(range(matrix.shape[1]), r):
            values = np.linalg.svd(matrix[:, chosen], compute_uv=False)
            if values[-1] <= _DEPENDENT * values[0]:
                return most
        most = r
    return most


def smoothed(units: ReLUUnits, tau: float, rng: np.random.Generator) -> ReLUUnits:
    """The units with Gaussian noise of variance tau^2/d on every entry of W ([hermite] sec. E)."""
    d, m = units.weights.shape
    moved = units.weights + tau / math.sqrt(d) * rng.standard_normal((d, m))
    return ReLUUnits.normalised(moved, units.biases, units.outer, units.offset)
