from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.diagnose import direction_certificates, subspace_error
from unweave.subspace.power_method import power_iterations
from unweave.subspace.rank_one_space import RankOneSpace, orthonormal_basis
from unweave.subspace.symmetric import symmetric_packing


def unit_rows(n: int, dimension: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, dimension))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def space_of(weights: np.ndarray) -> RankOneSpace:
    packing = symmetric_packing(weights.shape[1])
    return RankOneSpace(orthonormal_basis(packing.outer(weights).T), packing)


def test_orthonormal_weights_are_perfect() -> None:
    certificates = direction_certificates(space_of(np.eye(4)), np.eye(4))
    assert certificates.misalignment.max() < 1e-30
    assert certificates.stationarity.max() < 1e-15
    assert np.abs(certificates.rate).max() < 1e-15
    assert_allclose(certificates.sensitivity, np.ones(4))


def test_the_rate_is_what_the_power_step_shows() -> None:
    weights = unit_rows(30, 10, 1000)
    space = space_of(weights)
    rate = direction_certificates(space, weights).rate
    assert ((rate > 0) & (rate < 1)).all()
    # After enough steps the slowest direction dominates; then the error shrinks by rho in every step.
    near = weights + 1e-4 * unit_rows(30, 10, 1001)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    current = power_iterations(space, near, np.inf, 60, 0.0)
    after = power_iterations(space, current, np.inf, 1, 0.0)
    observed = np.linalg.norm(after - weights, axis=1) / np.linalg.norm(current - weights, axis=1)
    assert_allclose(observed, rate, atol=0.03)
    assert (observed <= rate + 1e-3).all()


def test_a_random_direction_is_neither_aligned_nor_stationary() -> None:
    space = space_of(unit_rows(12, 8, 1002))
    certificates = direction_certificates(space, unit_rows(5, 8, 1003))
    assert certificates.misalignment.min() > 1e-2
    assert certificates.stationarity.min() > 1e-3


def test_sensitivity_is_infinite_where_phi_is_flat() -> None:
    # In the whole of Sym(2) every direction is a maximiser: none is isolated.
    packing = symmetric_packing(2)
    certificates = direction_certificates(RankOneSpace(np.eye(3), packing, "basis"), unit_rows(3, 2, 1004))
    assert_allclose(certificates.rate, np.ones(3), atol=1e-12)
    assert (certificates.sensitivity > 1e10).all()


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 0.7, np.pi / 2])
def test_the_subspace_error_is_the_sine_of_the_largest_angle(angle: float) -> None:
    e = np.eye(5)
    first = e[:, :2]
    second = np.stack([e[:, 0], np.cos(angle) * e[:, 1] + np.sin(angle) * e[:, 2]], axis=1)
    assert_allclose(subspace_error(first, second), np.sin(angle), rtol=1e-6, atol=1e-16)
    projections = first @ first.T - second @ second.T
    assert_allclose(subspace_error(first, second), np.linalg.norm(projections, 2), atol=1e-8)


@pytest.mark.parametrize("d", [1e-4, 0.04])
def test_the_counter_example_of_lemma_2_19_is_as_close_as_it_says(d: float) -> None:
    packing = symmetric_packing(3)
    w, u = np.eye(3)[0], np.eye(3)[1]
    member = packing.pack(np.sqrt(1 - d) * np.outer(w, w) - np.sqrt(d) * np.outer(u, u))[:, None]
    exact = packing.pack(np.outer(w, w))[:, None]
    assert_allclose(subspace_error(member, exact), np.sqrt(d), rtol=1e-10)
    certificates = direction_certificates(RankOneSpace(member, packing), u[None])
    assert_allclose(certificates.misalignment, [1 - d])
    assert certificates.rate[0] <= 1e-12
