from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from planted_spaces import direction_errors, planted_space

from unweave.errors import InvalidInput
from unweave.subspace.collector import RankOneDirections
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.spectral_ascent import SpectralAscentOptions, ascend_spectral_norm, spectral_ascent


@pytest.mark.parametrize(("dimension", "width"), [(1, 1), (6, 3), (8, 8), (12, 30)])
def test_all_planted_directions_are_found(dimension: int, width: int) -> None:
    space, weights = planted_space(dimension, width, 1000)
    found = spectral_ascent(space, np.random.default_rng(1001))
    assert isinstance(found, RankOneDirections)
    assert len(found) == width
    assert direction_errors(weights, found.directions).max() < 1e-5  # tolerance 1e-8 over 1 - rate
    assert found.misalignment.max() < 1e-9


def test_the_largest_eigenvalue_grows_with_every_step() -> None:
    space, _ = planted_space(7, 12, 1002)
    starts = np.random.default_rng(1003).standard_normal((20, 12))
    # lambda_1 after k steps is not returned; Phi of the leading eigenvector bounds it, so look at lambda_1
    # through its own coefficients: M_k = normalise(M_{k-1} + gamma P(u u^T)).
    current = starts / np.linalg.norm(starts, axis=1, keepdims=True)
    previous = np.full(20, -np.inf)
    for _ in range(15):
        values, vectors = np.linalg.eigh(space.packing.unpack(current @ space.basis.T))
        assert (values[:, -1] >= previous - 1e-13).all()
        previous = values[:, -1]
        current = current + 2.0 * space.packing.outer(vectors[:, :, -1]) @ space.basis
        current /= np.linalg.norm(current, axis=1, keepdims=True)
    # the module's ascent takes the same steps, but for the sign of the start
    positive = np.linalg.eigvalsh(space.packing.unpack(starts @ space.basis.T))
    same_sign = positive[:, -1] + positive[:, 0] > 0
    ends = ascend_spectral_norm(space, starts[same_sign], SpectralAscentOptions(steps=15, tolerance=0.0))
    mine = np.linalg.eigh(space.packing.unpack(current[same_sign] @ space.basis.T))[1][:, :, -1]
    assert_allclose(np.abs(np.einsum("nd,nd->n", ends, mine)), np.ones(same_sign.sum()), atol=1e-10)


def test_the_limit_is_a_stationary_point_of_phi() -> None:
    space, _ = planted_space(9, 20, 1004)
    starts = np.random.default_rng(1005).standard_normal((30, 20))
    ends = ascend_spectral_norm(space, starts, SpectralAscentOptions(tolerance=1e-11, steps=20000))
    objective, image = space.objective_and_image(ends)
    assert np.linalg.norm(image - objective[:, None] * ends, axis=1).max() < 1e-8


def test_the_sign_of_the_start_does_not_matter() -> None:
    space, _ = planted_space(6, 5, 1006)
    starts = np.random.default_rng(1007).standard_normal((10, 5))
    options = SpectralAscentOptions()
    up, down = (ascend_spectral_norm(space, sign * starts, options) for sign in (1, -1))
    assert_allclose(np.abs(np.einsum("nd,nd->n", up, down)), np.ones(10), atol=1e-12)


def test_a_threshold_on_phi_replaces_the_distance() -> None:
    space, weights = planted_space(10, 12, 1008)
    options = SpectralAscentOptions(steps=200, tolerance=1e-3, min_objective=0.9, angle=0.2)
    found = spectral_ascent(space, np.random.default_rng(1009), options=options)
    assert len(found) == 12
    assert 1e-9 < found.misalignment.max() < 0.1
    assert direction_errors(weights, found.directions).max() < 0.2


def test_torch_gives_the_same_numbers() -> None:
    space, _ = planted_space(7, 9, 1010)
    twin = RankOneSpace(torch.from_numpy(space.basis), space.packing, space.representation)
    starts = np.random.default_rng(1011).standard_normal((9, 9))
    options = SpectralAscentOptions(steps=20, tolerance=0.0)
    ends = ascend_spectral_norm(space, starts, options)
    mine = ascend_spectral_norm(twin, torch.from_numpy(starts), options).numpy()
    assert_allclose(mine * np.sign(np.sum(mine * ends, axis=1))[:, None], ends, atol=1e-12)
    assert len(spectral_ascent(twin, np.random.default_rng(1012))) == 9


def test_gamma_must_be_positive_and_finite() -> None:
    with pytest.raises(InvalidInput, match="gamma must be positive"):
        SpectralAscentOptions(gamma=0.0)
