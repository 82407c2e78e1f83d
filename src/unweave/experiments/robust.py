"""ReLU units from Hermite coefficients with errors, and from smoothed weights: [hermite] secs. A, D and E."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from unweave.experiments.experiment import DERIVED, Figure, Progress, at_least, at_most, equal, shown
from unweave.experiments.planted import distances
from unweave.numerics.hermite.tensors import normal_density
from unweave.published.relu.relu_units import ReLUUnits, hermite_coefficients
from unweave.published.relu.robustness import (
    hermite_supremum,
    kept_terms,
    khatri_rao,
    khatri_rao_bound,
    kruskal_rank,
    power_columns,
    power_singular_value,
    scalar_accuracy,
    smoothed,
)
from unweave.published.relu.spectral_recovery import recover_from_coefficients


def run_robust_coefficients(seed: int, progress: Progress) -> Iterator[Figure]:
    """[hermite] Lemma D.10, Claims A.4, D.5, D.6 and D.8, (44), (45), Fact 4.7: errors and what they do.

    Values of a Hermite sequence with errors of eps' give a and b within eps; eps' is below rounding, so that
    this is done in fractions. Singular values of products of columns, distances of rank-one terms, terms
    that a cut of the flattening keeps, and Kruskal ranks, each on random cases against its bound.
    """
    rng = np.random.default_rng(seed)
    for k in (2, 3):
        progress(f"scalars, k = {k}")
        eps, bound = 2e-7, 2.0
        wanted = scalar_accuracy(k, eps, bound)
        errors = [sequence_errors(k, wanted.allowed_error, rng) for _ in range(40)]
        yield at_most(f"k = {k}: largest error of b", eps, max(bias for bias, _ in errors))
        yield at_most(f"k = {k}: largest error of a", eps, max(outer for _, outer in errors))
        note = "the lemma is about polynomial dependence: no float holds such a value"
        yield shown(
            f"k = {k}: error allowed on the values", "eps^4 / (2 (1 + B)^2)", wanted.allowed_error, note
        )
    progress("products of columns")
    pairs = [(rng.standard_normal((6, 4)), rng.standard_normal((3, 4))) for _ in range(30)]
    ratios = [np.linalg.svd(khatri_rao(u, v))[1].min() / khatri_rao_bound(u, v) for u, v in pairs]
    yield at_least("Claim A.4: least s_m(U (.) V) over its bound", 1.0, float(min(ratios)))
    ratios = [
        power_singular_value(pair, 1) / power_singular_value(pair, order) * math.sqrt(2 * order)
        for pair, order in ((rng.standard_normal((4, 2)), int(rng.integers(1, 6))) for _ in range(30))
    ]
    yield at_least("Claim D.5: least s_2 of a pair over its bound", 1.0, float(min(ratios)))
    turns, strengths = zip(*(near_terms(rng) for _ in range(30)), strict=True)
    yield at_most("Claim D.6: largest |u - v| over sqrt(2) eps/alpha", 1.0, max(turns))
    yield at_most("Claim D.6: largest |alpha - beta| over 3 eps", 1.0, max(strengths))
    highest = max(hermite_supremum(k) / math.sqrt(math.factorial(k) / (2 * math.pi)) for k in range(1, 9))
    yield at_most("Claim D.8: largest |He_k| phi over sqrt(k!/(2 pi))", 1.0, highest)
    progress("cuts and ranks")
    wrong = sum(not cut_keeps(rng) for _ in range(30))
    yield equal("(44), (45): cuts that keep a term too weak or lose one too strong", 0, wrong)
    u, v = rng.standard_normal((2, 4)), rng.standard_normal((2, 4))
    found = kruskal_rank(khatri_rao(u, v))
    corrected = "corrected: printed as an equality, which would be 3"
    yield at_least("Fact 4.7: Kruskal rank of 4 products in R^2 x R^2", 3, found, note=corrected)


def run_smoothed_analysis(seed: int, progress: Progress) -> Iterator[Figure]:
    """[hermite] Cor. 3.3: weights that an adversary chose, moved a little at random.

    Twelve units on 6 inputs, in parallel pairs, so that no order separates them. With noise of size tau the
    least singular value of W^(.2) falls like a power of tau, at most the second that the theorem has, and
    exact coefficients give all directions back; biases from -1 to 1.
    """
    inputs, width = 6, 12
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((inputs, width // 2))
    weights = np.concatenate([half, half], axis=1)
    outer = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    units = ReLUUnits.normalised(weights, rng.uniform(-1, 1, width), outer)
    yield at_most("tau = 0: s_m(W^(.2))", 1e-6, power_singular_value(units.weights, 2), origin=DERIVED)
    values, taus = [], (0.3, 0.1, 0.03)
    for tau in taus:
        progress(f"tau = {tau:g}")
        moved = smoothed(units, tau, np.random.default_rng([seed, 1]))
        values.append(power_singular_value(moved.weights, 2))
        coefficients = hermite_coefficients(moved, 6)
        stream = np.random.default_rng([seed, 2])
        found = recover_from_coefficients(
            coefficients, stream, width=width, order=2, directions="published", sign_tolerance=math.inf
        )
        far = float(np.max(distances(moved.weights.T, found.form.weights.T)))
        yield at_most(f"tau = {tau:g}: largest error of a direction", 1e-3, far, origin=DERIVED)
    slope = math.log(max(values[0], 1e-300) / max(values[-1], 1e-300)) / math.log(taus[0] / taus[-1])
    yield at_most("power of tau with which s_m(W^(.2)) falls", 2.0, slope)
    yield at_least("power of tau with which s_m(W^(.2)) falls", 0.5, slope, origin=DERIVED)


def sequence_errors(k: int, error: float, rng: np.random.Generator) -> tuple[float, float]:
    """Errors of b and a from g_k .. g_{k+3}, each off by ``error``, in fractions."""
    z = Fraction(int(rng.integers(-1500, 1501)), 1000)
    outer = Fraction(int(rng.integers(500, 2001)), 1000)
    beta = outer * Fraction(float(normal_density(np.array(float(z)))))
    noise = [int(rng.choice([-1, 1])) * Fraction(error) for _ in range(4)]
    values = [(-1) ** j * beta * exact_hermite(j, z) + noise[j - k] for j in range(k, k + 4)]
    row = max((1, 2), key=lambda i: abs(values[i]))
    q = k + row
    found = -(values[row + 1] + q * values[row - 1]) / values[row]
    ratio = (-1) ** q * values[row] / exact_hermite(q, found) / beta
    grown = math.expm1(float(found - z) * float(found + z) / 2)  # of 1/phi
    return abs(float(found - z)), abs(float(outer) * (float(ratio - 1) + grown * float(ratio)))


def exact_hermite(k: int, z: Fraction) -> Fraction:
    """He_k."""
    before, now = Fraction(1), z
    for j in range(1, k):
        before, now = now, z * now - j * before
    return before if k == 0 else now


def near_terms(rng: np.random.Generator) -> tuple[float, float]:
    """|u - v| over sqrt(2) eps/alpha and |alpha - beta| over 3 eps for two close rank-one terms."""
    u = rng.standard_normal(4)
    v = u + 10 ** rng.uniform(-4, -1) * rng.standard_normal(4)
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    alpha = rng.uniform(0.5, 2)
    beta, order = alpha + 10 ** rng.uniform(-4, -1), int(rng.integers(2, 5))
    # |alpha u^l - beta v^l|^2 = alpha^2 + beta^2 - 2 alpha beta <u, v>^l
    eps = math.sqrt(alpha**2 + beta**2 - 2 * alpha * beta * float(u @ v) ** order)
    turn = float(np.linalg.norm(u - v)) / (math.sqrt(2) * eps / alpha)
    return turn, abs(alpha - beta) / (3 * eps)


def cut_keeps(rng: np.random.Generator) -> bool:
    """Whether a cut of a random flattening at eta_1 keeps to (44) and (45)."""
    rest = int(rng.integers(1, 3))
    weights = rng.standard_normal((4, 4))
    weights /= np.linalg.norm(weights, axis=0)
    strengths, eta = 10.0 ** rng.uniform(-4, 0, 4), 10.0 ** rng.uniform(-4, -1)
    values = np.linalg.svd(weights * strengths @ power_columns(weights, 1 + rest).T)[1]
    rank = int(np.sum(values >= eta))
    least, sure = kept_terms(eta, weights, 1, rest)
    kept = np.sort(strengths)[::-1][:rank]
    return bool((kept >= least).all()) and int(np.sum(strengths > sure)) <= rank
