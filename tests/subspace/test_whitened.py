from __future__ import annotations

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.subspace import (
    RankOneSpace,
    along_duals,
    dual_basis,
    dual_profiles,
    orthonormal_basis,
    symmetric_packing,
    whiten,
)


def span(weights):
    packing = symmetric_packing(weights.shape[1])
    return RankOneSpace(orthonormal_basis(packing.outer(weights).T), packing)


def unit_rows(m, dimension, seed):
    rows = np.random.default_rng(seed).standard_normal((m, dimension))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(("m", "dimension"), [(1, 3), (2, 2), (6, 6), (5, 9), (12, 12)])
def test_whitened_weights_are_orthonormal_and_found(m: int, dimension: int) -> None:
    weights = unit_rows(m, dimension, 1000 + m)
    space = span(weights)
    found = whiten(space)
    whitened = found.transform @ weights.T
    whitened /= np.linalg.norm(whitened, axis=0)
    assert np.allclose(whitened.T @ whitened, np.eye(m), atol=1e-9)
    assert np.allclose(
        space.project(space.packing.pack(found.member[None])), space.packing.pack(found.member[None])
    )
    rows = found.directions(space, np.random.default_rng(1))
    overlap = np.abs(rows @ weights.T)
    assert np.allclose(np.sort(overlap.max(axis=1)), 1.0, atol=1e-9)
    assert sorted(overlap.argmax(axis=1)) == list(range(m))


def test_nearly_dependent_weights_need_more_than_the_identity() -> None:
    """Here the projection of the identity is not positive definite, and the perceptron goes on."""
    weights = np.array([[1.0, 0.0], [1.0, 0.2]])
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    found = whiten(span(weights))
    whitened = found.transform @ weights.T
    assert abs(whitened[:, 0] @ whitened[:, 1]) <= 1e-9 * np.prod(np.linalg.norm(whitened, axis=0))


def test_the_change_of_inputs_is_the_transpose() -> None:
    weights = unit_rows(4, 4, 1000)
    found = whiten(span(weights))
    y = np.random.default_rng(1).standard_normal((5, 4))
    inner = (y @ found.transform) @ weights.T  # <w, T^T y>
    assert np.allclose(inner, y @ (found.transform @ weights.T))


def test_profiles_of_unlike_units_are_read_and_the_function_is_rebuilt() -> None:
    weights = unit_rows(3, 5, 1001)
    kinds = (np.tanh, np.sin, lambda z: np.abs(z) + z**2)

    def f(x):
        return sum(g(x @ w + s) for g, w, s in zip(kinds, weights, (0.3, -0.2, 0.1), strict=True))

    times = np.linspace(-2, 2, 9)
    profiles = dual_profiles(f, weights, times)
    for profile, g, s in zip(profiles, kinds, (0.3, -0.2, 0.1), strict=True):
        assert np.allclose(profile, g(times + s) - g(s), atol=1e-12)
    x = np.random.default_rng(2).standard_normal((50, 5))
    assert np.allclose(along_duals(f, -weights)(x), f(x), atol=1e-12)  # signs do not matter
    assert not np.allclose(along_duals(f, unit_rows(3, 5, 1002))(x), f(x), atol=1e-3)
    assert np.allclose(dual_basis(weights) @ weights.T, np.eye(3))


def test_several_outputs() -> None:
    weights = unit_rows(3, 4, 1003)
    outer = np.random.default_rng(1).standard_normal((3, 2))

    def f(x):
        return np.tanh(x @ weights.T) @ outer

    x = np.random.default_rng(2).standard_normal((20, 4))
    assert np.allclose(along_duals(f, weights)(x), f(x), atol=1e-12)
    assert dual_profiles(f, weights, np.array([0.0, 1.0])).shape == (3, 2, 2)


def test_errors() -> None:
    with pytest.raises(InvalidInput, match="independent"):
        whiten(span(unit_rows(5, 3, 1000)))
    packing = symmetric_packing(2)
    indefinite = packing.pack(np.array([[[1.0, 0.0], [0.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]]]))
    with pytest.raises(InvalidInput, match="positive definite"):
        whiten(RankOneSpace(orthonormal_basis(indefinite.T), packing), most_rounds=50)
    with pytest.raises(InvalidInput, match="no dual basis"):
        dual_basis(unit_rows(5, 3, 1000))
