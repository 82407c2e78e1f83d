from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment

from unweave.subspace.congruence import diagonalise_by_congruence

D, COUNT = 6, 40


def planted(seed: int = 1000, count: int = COUNT, condition: float = 5.0) -> tuple[np.ndarray, np.ndarray]:
    """B (D, D) with unit columns and matrices B diag(s_i) B^T."""
    rng = np.random.default_rng(seed)
    left, _, right = np.linalg.svd(rng.standard_normal((D, D)))
    b = left @ np.diag(np.geomspace(1, 1 / condition, D)) @ right
    b /= np.linalg.norm(b, axis=0)
    s = rng.standard_normal((count, D))
    return b, (b * s[:, None, :]) @ b.T


def misfit(expected: np.ndarray, found: np.ndarray) -> float:
    """Largest sine of the angle between matched columns."""
    unit = expected / np.linalg.norm(expected, axis=0)
    cosines = unit.T @ found
    rows, columns = linear_sum_assignment(-np.abs(cosines))
    away = found[:, columns] - unit[:, rows] * cosines[rows, columns]
    return float(np.linalg.norm(away, axis=0).max())


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_common_directions_come_out_exactly(seed: int, normalise: bool) -> None:
    b, matrices = planted(seed)
    found = diagonalise_by_congruence(matrices, normalise)
    assert misfit(b, found.directions) < 1e-9
    assert found.off_diagonal < 1e-14
    assert found.sweeps < 100
    assert_allclose(np.linalg.norm(found.directions, axis=0), 1, atol=1e-12)


@pytest.mark.parametrize("condition", [1.0, 30.0, 200.0])
def test_directions_that_are_hardly_independent(condition: float) -> None:
    b, matrices = planted(condition=condition)
    assert misfit(b, diagonalise_by_congruence(matrices).directions) < 1e-8


@pytest.mark.parametrize("count", [2, 3, 10])
def test_few_matrices_suffice(count: int) -> None:
    b, matrices = planted(1001, count)
    assert misfit(b, diagonalise_by_congruence(matrices).directions) < 1e-7


def test_more_matrices_than_entries_are_condensed() -> None:
    b, matrices = planted(count=500)
    found = diagonalise_by_congruence(matrices)
    assert misfit(b, found.directions) < 1e-7
    assert found.off_diagonal < 1e-12


def test_a_congruence_turns_the_directions_along() -> None:
    b, matrices = planted()
    rng = np.random.default_rng(1002)
    c = np.linalg.qr(rng.standard_normal((D, D)))[0] @ np.diag(rng.uniform(0.5, 2, D))
    turned = diagonalise_by_congruence(c @ matrices @ c.T).directions
    assert misfit(c @ b, turned) < 1e-9
    assert misfit(b, turned) > 0.1


def test_order_sign_and_size_of_the_matrices_do_not_matter() -> None:
    b, matrices = planted()
    rng = np.random.default_rng(1003)
    scale = rng.choice([-1.0, 1.0], COUNT) * 10.0 ** rng.uniform(-6, 6, COUNT)
    found = diagonalise_by_congruence((matrices * scale[:, None, None])[rng.permutation(COUNT)])
    assert misfit(b, found.directions) < 1e-9


@pytest.mark.parametrize("noise", [1e-8, 1e-5, 1e-3])
def test_noise_moves_the_directions_in_proportion(noise: float) -> None:
    b, matrices = planted(count=60)
    rng = np.random.default_rng(1004)
    added = rng.standard_normal(matrices.shape)
    added = (added + added.transpose(0, 2, 1)) / 2
    size = np.linalg.norm(matrices, axis=(1, 2), keepdims=True) / D
    found = diagonalise_by_congruence(matrices + noise * size * added)
    error = misfit(b, found.directions)
    assert 0.01 * noise < error < 100 * noise
    assert 0.01 * noise**2 < found.off_diagonal < 100 * noise**2


def test_terms_that_point_elsewhere_every_time_are_tolerated() -> None:
    b, matrices = planted(count=300)
    rng = np.random.default_rng(1005)
    other = rng.standard_normal((300, D, 2)) / D
    extra = other @ other.transpose(0, 2, 1) * rng.choice([-0.1, 0.1], 300)[:, None, None]
    found = diagonalise_by_congruence(matrices + extra)
    assert misfit(b, found.directions) < 0.05
    assert 1e-6 < found.off_diagonal < 0.05


def test_matrices_with_nothing_in_common_stay_off_the_diagonal() -> None:
    rng = np.random.default_rng(1006)
    matrices = rng.standard_normal((COUNT, D, D))
    found = diagonalise_by_congruence(matrices + matrices.transpose(0, 2, 1))
    assert found.off_diagonal > 0.1


def test_one_dimension() -> None:
    found = diagonalise_by_congruence(np.array([[[2.0]], [[-1.0]]]))
    assert_allclose(np.abs(found.directions), [[1.0]])
    assert found.off_diagonal == pytest.approx(0, abs=1e-15)


def test_a_matrix_of_zeros_does_no_harm() -> None:
    b, matrices = planted()
    matrices[3] = 0.0
    assert misfit(b, diagonalise_by_congruence(matrices).directions) < 1e-9
