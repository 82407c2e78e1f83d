from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from planted_spaces import direction_errors, planted_space, unit_rows

from unweave.errors import InvalidInput
from unweave.subspace.hessian_span import hessian_span
from unweave.subspace.power_method import (
    PowerMethodOptions,
    chord_ascent,
    newton_ascent,
    power_iterations,
    residual_starts,
    subspace_power_method,
    uniform_starts,
)
from unweave.subspace.rank_one_space import RankOneSpace, orthonormal_basis
from unweave.subspace.symmetric import symmetric_packing


@pytest.mark.parametrize(("dimension", "width"), [(1, 1), (2, 1), (5, 3), (20, 100), (20, 160), (12, 60)])
def test_all_planted_directions_are_found(dimension: int, width: int) -> None:
    # (12, 60) is close to the limit D(D-1)/2 = 66 of generic uniqueness.
    space, weights = planted_space(dimension, width, 1000)
    found = subspace_power_method(space, np.random.default_rng(1001))
    assert len(found) == width
    assert direction_errors(weights, found.directions).max() < 1e-10
    assert found.misalignment.max() < 1e-20


def test_published_settings_find_all_up_to_their_tolerance() -> None:
    space, weights = planted_space(12, 30, 1002)
    found = subspace_power_method(space, np.random.default_rng(1003), options=PowerMethodOptions.published())
    assert len(found) == 30
    assert direction_errors(weights, found.directions).max() < 1e-5  # tolerance 1e-8 over 1 - rate


def test_single_precision_power_steps_end_as_exact() -> None:
    space, weights = planted_space(15, 60, 1004)
    found = subspace_power_method(
        space, np.random.default_rng(1005), options=PowerMethodOptions(single_precision=True)
    )
    assert direction_errors(weights, found.directions).max() < 1e-10


def test_the_same_seed_gives_the_same_answer() -> None:
    space, _ = planted_space(10, 20, 1006)
    first, second = (subspace_power_method(space, np.random.default_rng(1007)) for _ in range(2))
    assert np.array_equal(first.directions, second.directions)


def test_only_the_missing_ones_are_searched_for() -> None:
    space, weights = planted_space(10, 20, 1008)
    found = subspace_power_method(space, np.random.default_rng(1009), known=weights[:17])
    assert len(found) == 20
    assert direction_errors(weights, found.directions).max() < 1e-10
    assert found.restarts <= 60


def test_a_space_with_fewer_squares_than_its_rank_yields_only_those() -> None:
    packing = symmetric_packing(9)
    rng = np.random.default_rng(1010)
    weights = unit_rows(3, 9, rng)
    noise = rng.standard_normal((45, 12))
    space = RankOneSpace(
        orthonormal_basis(np.concatenate([packing.outer(weights).T, noise], axis=1)), packing
    )
    found = subspace_power_method(space, rng, options=PowerMethodOptions(patience=4))
    assert len(found) == 3
    assert direction_errors(weights, found.directions).max() < 1e-10
    assert len(found.rejected) > 0
    assert found.rejected.min() > 1e-6


def test_rounds_are_reported_until_all_are_found() -> None:
    space, _ = planted_space(8, 12, 1011)
    rounds: list[tuple[int, int, int]] = []
    found = subspace_power_method(
        space, np.random.default_rng(1012), on_round=lambda *figures: rounds.append(figures)
    )
    assert rounds[-1] == (12, 12, found.restarts)
    assert [r[0] for r in rounds] == sorted(r[0] for r in rounds)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(1000, 10**6))
def test_the_found_set_turns_with_the_space(seed: int) -> None:
    rng = np.random.default_rng(seed + 1)  # not the planted directions' own generator
    space, weights = planted_space(7, 12, seed)
    rotation = np.linalg.qr(rng.standard_normal((7, 7)))[0]
    turned = RankOneSpace(orthonormal_basis(space.packing.outer(weights @ rotation).T), space.packing)
    original = subspace_power_method(space, rng).directions
    found = subspace_power_method(turned, rng).directions
    assert len(found) == len(original) == 12
    assert direction_errors(original @ rotation, found).max() < 1e-9


@pytest.mark.parametrize("gamma", [0.5, 2.0, np.inf])
def test_power_steps_never_lower_the_objective(gamma: float) -> None:
    space, _ = planted_space(8, 14, 1013)
    u = unit_rows(40, 8, np.random.default_rng(1014))
    objectives = []
    for _ in range(60):
        objectives.append(space.objective(u))
        u = power_iterations(space, u, gamma, steps=1, tolerance=0.0)
    assert np.diff(np.array(objectives), axis=0).min() > -1e-14


@pytest.mark.parametrize("gamma", [2.0, np.inf])
def test_the_local_rate_is_the_predicted_one(gamma: float) -> None:
    space, weights = planted_space(12, 40, 1015)
    u = weights[:1]
    image, curvature = space.curvature(u)
    phi = float(image[0] @ u[0])
    tangent = np.eye(12) - np.outer(u, u)
    values, vectors = np.linalg.eigh(tangent @ curvature[0] @ tangent)
    rho = values[-1] / phi
    predicted = rho if np.isinf(gamma) else (1 + 2 * gamma * phi * rho) / (1 + 2 * gamma * phi)
    current = u + 1e-5 * vectors[:, -1]  # along the slowest direction, so that the rate shows at once
    current /= np.linalg.norm(current)
    moved = power_iterations(space, current, gamma, steps=1, tolerance=0.0)
    observed = np.linalg.norm(moved - u) / np.linalg.norm(current - u)
    assert 0 < rho < 1
    assert_allclose(observed, predicted, rtol=1e-4)  # next order is the distance 1e-5


def test_newton_converges_quadratically_to_a_planted_direction() -> None:
    space, weights = planted_space(10, 25, 1016)
    near = weights + 1e-3 * unit_rows(25, 10, np.random.default_rng(1017))
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    errors = [direction_errors(weights, newton_ascent(space, near, n, 0.0)).max() for n in (0, 1, 2, 4)]
    assert errors[0] > 5e-4
    assert errors[1] < 100 * errors[0] ** 2
    assert errors[3] < 1e-13


def test_hessians_in_single_precision_end_in_double() -> None:
    space, weights = planted_space(10, 25, 1018)
    rough = space.astype(np.float32)
    near = weights + 1e-5 * unit_rows(25, 10, np.random.default_rng(1019))
    far = unit_rows(1, 10, np.random.default_rng(1020))
    starts = np.vstack([near / np.linalg.norm(near, axis=1, keepdims=True), far]).astype(np.float32)
    ends, ended = chord_ascent(space, rough, starts, 1e-13)
    assert ends.dtype == np.float64
    assert ended.tolist() == [True] * 25 + [False]  # what is far away is left to Newton steps
    assert direction_errors(weights, ends).max() < 1e-13


def test_newton_leaves_a_saddle() -> None:
    # Between two orthogonal planted directions Phi has a critical point that is no maximum.
    packing = symmetric_packing(3)
    space = RankOneSpace(packing.outer(np.eye(3)).T, packing)
    saddle = np.array([[1.0, 1.0, 0.0]]) / np.sqrt(2) + np.array([[1e-4, -1e-4, 1e-4]])
    saddle /= np.linalg.norm(saddle)
    end = newton_ascent(space, saddle, steps=60, tolerance=1e-13)
    assert space.misalignment(end)[0] < 1e-20


def test_retired_rows_stay_and_others_go_on() -> None:
    space, weights = planted_space(8, 10, 1018)
    start = np.concatenate([weights[:1], unit_rows(1, 8, np.random.default_rng(1019))])
    end = power_iterations(space, start, np.inf, steps=5, tolerance=1e-6)
    assert_allclose(end[0], weights[0], atol=1e-13)
    assert np.linalg.norm(end[1] - start[1]) > 1e-2


def test_starts_are_unit_and_residual_ones_avoid_what_was_found() -> None:
    space, weights = planted_space(9, 20, 1020)
    rng = np.random.default_rng(1021)
    uniform = uniform_starts(50, 9, rng)
    residual = residual_starts(space, weights[:19], 50, rng)
    for starts in (uniform, residual):
        assert_allclose(np.linalg.norm(starts, axis=1), np.ones(50), atol=1e-14)
    ends = newton_ascent(space, power_iterations(space, residual, np.inf, 60, 1e-6), 100, 1e-13)
    reached_missing = np.abs(ends @ weights[19]) > 1 - 1e-8
    assert reached_missing.mean() > 0.3  # one in twenty for uniform starts


def test_torch_kernels_give_the_same_numbers() -> None:
    space, weights = planted_space(8, 14, 1022)
    twin = RankOneSpace(torch.from_numpy(space.basis), space.packing, space.representation)
    starts = unit_rows(14, 8, np.random.default_rng(1023))
    for gamma in (2.0, np.inf):
        mine = power_iterations(twin, torch.from_numpy(starts), gamma, steps=25, tolerance=0.0)
        assert_allclose(mine.numpy(), power_iterations(space, starts, gamma, 25, 0.0), atol=1e-12)
    near = weights + 1e-2 * unit_rows(14, 8, np.random.default_rng(1024))
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    mine = newton_ascent(twin, torch.from_numpy(near), steps=8, tolerance=0.0)
    assert_allclose(mine.numpy(), newton_ascent(space, near, 8, 0.0), atol=1e-12)
    found = subspace_power_method(twin, np.random.default_rng(1025))
    assert isinstance(found.directions, np.ndarray)
    reference = subspace_power_method(space, np.random.default_rng(1025))
    assert len(found) == len(reference) == 14
    assert direction_errors(reference.directions, found.directions).max() < 1e-12


@pytest.mark.parametrize("representation", ["basis", "complement", "dense"])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-11), (torch.float32, 1e-4)])
def test_span_and_members_of_tensors(representation: str, dtype: torch.dtype, error: float) -> None:
    # From sampled Hessians to all directions without leaving torch.
    rng = np.random.default_rng(1026)
    dimension, units = 9, 22
    weights = unit_rows(units, dimension, rng)
    packing = symmetric_packing(dimension)
    hessians = rng.standard_normal((40, units)) @ packing.outer(weights)
    tensor = torch.asarray(hessians, dtype=dtype)
    span = hessian_span(tensor)
    assert isinstance(span.vectors, torch.Tensor)
    assert span.vectors.dtype == dtype
    assert span.clearest_rank()[0] == units
    space = RankOneSpace(span.basis(units), packing, representation)
    found = subspace_power_method(space, rng)
    assert found.directions.dtype == np.float64
    assert len(found) == units
    assert direction_errors(weights, found.directions).max() < error


def test_a_device_takes_the_steps_there() -> None:
    space, weights = planted_space(9, 20, 1027)
    options = PowerMethodOptions(device="cpu", single_precision=True)
    assert isinstance(space.on_device("cpu").basis, torch.Tensor)
    found = subspace_power_method(space, np.random.default_rng(1028), options=options)
    assert direction_errors(weights, found.directions).max() < 1e-11
    with pytest.raises(InvalidInput, match="no-such"):
        subspace_power_method(space, np.random.default_rng(1028), options=replace(options, device="no-such"))
