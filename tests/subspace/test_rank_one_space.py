from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from planted_spaces import planted_space, unit_rows

from unweave.subspace.power_method import power_iterations
from unweave.subspace.rank_one_space import RankOneSpace, orthonormal_basis
from unweave.subspace.symmetric import symmetric_packing

REPRESENTATIONS = ("basis", "complement", "dense")


@pytest.mark.parametrize(("dimension", "width"), [(6, 4), (6, 17), (9, 30)])
def test_the_three_representations_agree(dimension: int, width: int) -> None:
    spaces = [planted_space(dimension, width, 1000, r)[0] for r in REPRESENTATIONS]
    u = unit_rows(8, dimension, np.random.default_rng(1001))
    packed = np.random.default_rng(1002).standard_normal((5, symmetric_packing(dimension).size))
    reference = spaces[0]
    for space in spaces[1:]:
        assert_allclose(space.project(packed), reference.project(packed), atol=1e-13)
        assert_allclose(space.objective(u), reference.objective(u), atol=1e-13)
        assert_allclose(space.misalignment(u), reference.misalignment(u), atol=1e-13)
        for mine, other in zip(space.objective_and_image(u), reference.objective_and_image(u), strict=True):
            assert_allclose(mine, other, atol=1e-13)
        for mine, other in zip(space.curvature(u), reference.curvature(u), strict=True):
            assert_allclose(mine, other, atol=1e-13)


@pytest.mark.parametrize(("width", "expected"), [(4, "basis"), (14, "dense"), (17, "complement")])
def test_the_cheapest_representation_is_the_default(width: int, expected: str) -> None:
    assert planted_space(7, width, 1003)[0].representation == expected


def test_project_is_an_orthogonal_projection() -> None:
    space, weights = planted_space(7, 9, 1004)
    packed = np.random.default_rng(1005).standard_normal((6, 28))
    projected = space.project(packed)
    assert_allclose(space.project(projected), projected, atol=1e-13)
    assert_allclose((packed - projected) @ space.basis, np.zeros((6, 9)), atol=1e-13)
    squares = space.packing.outer(weights)
    assert_allclose(space.project(squares), squares, atol=1e-13)


def test_objective_is_one_exactly_at_the_planted_directions() -> None:
    space, weights = planted_space(8, 12, 1006)
    assert_allclose(space.objective(weights), np.ones(12), atol=1e-13)
    assert space.misalignment(weights).max() < 1e-28
    elsewhere = unit_rows(50, 8, np.random.default_rng(1007))
    assert space.objective(elsewhere).max() < 0.999


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_misalignment_is_one_minus_objective(representation: str) -> None:
    space, _ = planted_space(8, 20, 1008, representation)
    u = unit_rows(20, 8, np.random.default_rng(1009))
    assert_allclose(space.misalignment(u), 1 - space.objective(u), atol=1e-13)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_gradient_and_curvature_match_differences_of_phi(representation: str) -> None:
    space, _ = planted_space(5, 7, 1010, representation)
    u = unit_rows(3, 5, np.random.default_rng(1011))
    image, curvature = space.curvature(u)
    h, axes = 1e-3, np.eye(5)

    def phi(v: np.ndarray) -> np.ndarray:
        projected = space.project(space.packing.outer(v))
        return np.einsum("np,np->n", projected, projected)

    # Phi is a quartic form: the five-point gradient is exact but for rounding, of order eps/h.
    gradient = np.stack(
        [
            (8 * (phi(u + h * e) - phi(u - h * e)) - phi(u + 2 * h * e) + phi(u - 2 * h * e)) / (12 * h)
            for e in axes
        ],
        axis=1,
    )
    assert_allclose(gradient, 4 * image, atol=1e-11)
    # Second differences of the gradient 4 P(uu^T)u, a cubic: error h^2 times a constant of order ten.
    for i, e in enumerate(axes):
        above = space.objective_and_image(u + h * e)[1]
        below = space.objective_and_image(u - h * e)[1]
        assert_allclose((above - below) / (2 * h), curvature[:, :, i], atol=20 * h**2)


def test_lemma_2_17_objective_through_the_gram_matrix() -> None:
    space, weights = planted_space(9, 21, 1012)
    u = unit_rows(30, 9, np.random.default_rng(1013))
    b = (u @ weights.T) ** 2
    gram = (weights @ weights.T) ** 2
    assert_allclose(space.objective(u), np.einsum("nk,nk->n", b, np.linalg.solve(gram, b.T).T), atol=1e-12)


@pytest.mark.parametrize("d", [0.01, 0.2])
def test_lemma_2_19_a_perturbed_space_has_a_spurious_maximiser(d: float) -> None:
    packing = symmetric_packing(6)
    w, u = np.eye(6)[0], np.eye(6)[1]
    member = np.sqrt(1 - d) * np.outer(w, w) - np.sqrt(d) * np.outer(u, u)
    space = RankOneSpace(packing.pack(member)[:, None], packing)
    assert_allclose(space.objective(u[None]), [d], rtol=1e-12)
    # A strict local maximum: the Riemannian Hessian C - Phi I is negative on the tangent space.
    image, curvature = space.curvature(u[None])
    tangent = np.delete(np.eye(6), 1, axis=0)
    assert_allclose(image[0], d * u, atol=1e-15)
    assert np.linalg.eigvalsh(tangent @ curvature[0] @ tangent.T - d * np.eye(5))[-1] <= -d + 1e-12
    # and the power method started nearby stays there
    near = u + 0.05 * unit_rows(10, 6, np.random.default_rng(1014))
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    ends = power_iterations(space, near, gamma=2.0, steps=4000, tolerance=1e-12)
    assert_allclose(np.abs(ends @ u), np.ones(10), atol=1e-10)


def test_torch_space_gives_the_same_numbers() -> None:
    u = unit_rows(6, 7, np.random.default_rng(1015))
    for representation in REPRESENTATIONS:
        space, _ = planted_space(7, 10, 1016, representation)
        twin = RankOneSpace(torch.from_numpy(space.basis), space.packing, representation)
        tensor = torch.from_numpy(u)
        assert_allclose(twin.objective(tensor).numpy(), space.objective(u), atol=1e-12)
        assert_allclose(twin.misalignment(tensor).numpy(), space.misalignment(u), atol=1e-12)
        for mine, other in zip(twin.curvature(tensor), space.curvature(u), strict=True):
            assert_allclose(mine.numpy(), other, atol=1e-12)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_astype_keeps_the_subspace(representation: str) -> None:
    space, weights = planted_space(7, 10, 1017, representation)
    single = space.astype(np.float32)
    objective = single.objective(weights.astype(np.float32))
    assert objective.dtype == np.float32
    assert_allclose(objective, np.ones(10), atol=100 * np.finfo(np.float32).eps)


def test_orthonormal_basis_spans_its_columns() -> None:
    columns = np.random.default_rng(1018).standard_normal((12, 5))
    basis = orthonormal_basis(columns)
    assert_allclose(basis.T @ basis, np.eye(5), atol=1e-14)
    assert_allclose(basis @ (basis.T @ columns), columns, atol=1e-13)
