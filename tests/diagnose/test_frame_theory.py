from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unweave.diagnose import (
    count_guarantee,
    direction_distance,
    distance_guarantee,
    eigenvector_distance,
    frame_theory,
    incoherence,
    maximiser_guarantee,
    power_method_guarantee,
    spectral_ascent_guarantee,
    subspace_error,
)
from unweave.errors import InvalidInput
from unweave.subspace.power_method import newton_ascent, power_iterations, uniform_starts
from unweave.subspace.rank_one_space import RankOneSpace, orthonormal_basis
from unweave.subspace.symmetric import symmetric_packing

SMALL = st.floats(0, 0.05)


def nearly_orthonormal(dimension: int, size: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    columns = columns + size * rng.standard_normal((dimension, dimension))
    return columns / np.linalg.norm(columns, axis=0)


def perturbed_space(weights: np.ndarray, size: float, seed: int) -> tuple[RankOneSpace, float]:
    """The span of the squares moved by ``size``, and the distance of the projections."""
    packing = symmetric_packing(len(weights))
    exact = orthonormal_basis(packing.outer(weights.T).T)
    noise = np.random.default_rng(seed).standard_normal(exact.shape) / np.sqrt(exact.size)
    moved = orthonormal_basis(exact + size * noise)
    return RankOneSpace(moved, packing), subspace_error(moved, exact)


def test_exact_orthonormal_weights_satisfy_everything() -> None:
    theory = frame_theory(0.0, 0.0)
    assert theory.spectral_ascent.holds
    assert theory.spectral_ascent.good_at_least == 1.0
    assert theory.spectral_ascent.spurious_at_most == 0.0
    assert theory.power_method.good_at_least == 1.0
    assert theory.power_method.spurious_at_most == 0.0
    assert theory.maximiser.objective_at_least == 1.0
    assert theory.maximiser.squared_overlap_at_least == 1.0
    assert theory.count.threshold == 0.0
    assert theory.count.distance_at_most == 0.0


@pytest.mark.parametrize(
    ("function", "nu", "delta"),
    [
        (spectral_ascent_guarantee, 0.02, 0.0),
        (spectral_ascent_guarantee, 0.0, 0.007),
        (power_method_guarantee, 0.6, 0.0),
        (power_method_guarantee, 0.0, 0.05),
        (power_method_guarantee, 1.2, 0.0),
        (maximiser_guarantee, 0.24, 0.0),
        (maximiser_guarantee, 0.0, 0.17),
        (count_guarantee, 0.017, 0.0),
        (count_guarantee, 0.0, 0.023),
    ],
)
def test_outside_their_hypotheses_the_bounds_are_nan(function, nu: float, delta: float) -> None:
    result = function(nu, delta)
    assert not result.holds
    numbers = [value for name, value in vars(result).items() if name != "holds"]
    assert np.isnan(numbers).all()


@settings(deadline=None, max_examples=60)
@given(nu=SMALL, delta=SMALL)
def test_thresholds_separate_wherever_the_theorems_hold(nu: float, delta: float) -> None:
    theory = frame_theory(nu, delta)
    if theory.spectral_ascent.holds:
        assert theory.spectral_ascent.good_at_least > theory.spectral_ascent.spurious_at_most
    if theory.count.holds:  # the threshold is below 1 - delta exactly when the hypothesis holds
        assert theory.count.threshold < 1 - delta
    if theory.maximiser.holds:
        assert 0 < theory.maximiser.squared_overlap_at_least <= 1


def test_the_count_threshold_meets_one_minus_delta_at_the_edge_of_its_hypothesis() -> None:
    nu = 0.005
    delta = (1 - 60 * nu) / (44 - 120 * nu)
    assert not count_guarantee(nu, delta * (1 + 1e-9)).holds
    result = count_guarantee(nu, delta * (1 - 1e-9))
    assert result.holds
    assert_allclose(result.threshold, 1 - delta, rtol=1e-6)


def test_every_maximiser_obeys_the_theorems_on_an_actual_frame() -> None:
    weights = nearly_orthonormal(6, 5e-4, 1000)
    nu = incoherence(weights).frame_constant
    space, delta = perturbed_space(weights, 4e-3, 1001)
    theory = frame_theory(nu, delta)
    assert theory.power_method.holds
    assert theory.count.holds
    starts = uniform_starts(400, 6, np.random.default_rng(1002))
    ends = newton_ascent(space, power_iterations(space, starts, np.inf, 100, 1e-8), 50, 1e-13)
    objective = space.objective(ends)
    high = theory.power_method.good_at_least
    assert ((objective >= high - 1e-12) | (objective <= theory.power_method.spurious_at_most + 1e-12)).all()
    good = ends[objective > theory.count.threshold]
    overlap = np.abs(good @ weights)
    distance = np.sqrt(2 * (1 - np.minimum(1, overlap.max(axis=1))))
    assert distance.max() <= theory.count.distance_at_most
    assert set(overlap.argmax(axis=1)) == set(range(6))  # and every weight has one
    assert overlap.max(axis=1).min() ** 2 >= theory.maximiser.squared_overlap_at_least
    for u, level in zip(good[:20], space.objective(good[:20]), strict=True):
        bound = direction_distance(float(level), nu, delta)
        assert bound.holds
        assert np.sqrt(2 * (1 - min(1, np.abs(u @ weights).max()))) <= bound.distance_at_most
    # Known before the search, and not nearer than what the maximizers themselves prove.
    assert theory.distance.holds
    assert distance.max() <= theory.distance.distance_at_most
    assert bound.distance_at_most <= theory.distance.distance_at_most


def test_distance_before_the_fact_written_out() -> None:
    nu, delta, remaining = 0.01, 0.002, 0.3
    drop = 6 * nu / (1 + nu) + 18 * delta
    gap = (1 - nu) * (1 - drop) - np.sqrt(drop) - 2 * delta
    wanted = np.sqrt(2) * (np.sqrt(nu) * remaining + 2 * delta) / gap
    assert_allclose(distance_guarantee(nu, delta, remaining).distance_at_most, wanted, rtol=1e-12)
    assert not distance_guarantee(0.2, 0.0).holds  # the denominator is negative although Thm. 2.7 holds
    assert not distance_guarantee(0.0, 0.1).holds
    assert distance_guarantee(0.0, 0.0).distance_at_most == 0.0


def test_the_eigenvector_bound_holds_for_members_of_the_span() -> None:
    weights = nearly_orthonormal(7, 2e-3, 1003)
    nu = incoherence(weights).frame_constant
    rng = np.random.default_rng(1004)
    for _ in range(20):
        sigma = np.concatenate([[1.0], 0.3 * rng.standard_normal(6)])
        matrix = (weights * sigma) @ weights.T
        scale = np.linalg.norm(matrix)
        values, vectors = np.linalg.eigh(matrix / scale)
        bound = eigenvector_distance(values[-1], values[-2], np.linalg.norm(sigma[1:]) / scale, nu, 0.0)
        overlap = min(1.0, abs(vectors[:, -1] @ weights[:, 0]))
        assert bound.holds == (values[-1] * (1 - nu) > values[-2])
        assert np.sqrt(2 * (1 - overlap)) <= bound.distance_at_most


def test_without_a_gap_the_distance_is_unbounded() -> None:
    assert eigenvector_distance(0.5, 0.5, 1.0, 0.0, 0.0).distance_at_most == np.inf
    assert not direction_distance(0.4, 0.0, 0.0).holds  # Phi <= 1/2 may be spurious
    assert direction_distance(1.0, 0.0, 0.0).distance_at_most == 0.0
    assert direction_distance(0.9, 2.0, 0.0).distance_at_most == np.inf


def test_negative_constants_are_refused() -> None:
    with pytest.raises(InvalidInput, match="non-negative"):
        frame_theory(-0.1)
