from __future__ import annotations

import numpy as np
import pytest

from unweave.diagnose import spectral_optimality
from unweave.errors import InvalidInput
from unweave.subspace import RankOneSpace, orthonormal_basis, symmetric_packing
from unweave.subspace.spectral_ascent import SpectralAscentOptions, ascend_spectral_norm


def span(weights):
    packing = symmetric_packing(weights.shape[1])
    return RankOneSpace(orthonormal_basis(packing.outer(weights).T), packing)


def second_derivatives(space, matrix):
    """Second differences of ||M + a X|| / ||M + a X||_F over an orthonormal basis of W without M."""
    basis = space.packing.unpack(space.basis.T)
    c = np.einsum("jab,ab->j", basis, matrix)
    c /= np.linalg.norm(c)
    others = np.linalg.svd(c[None])[2][1:]

    def value(shift):
        m = np.einsum("j,jab->ab", c + shift, basis)
        return np.abs(np.linalg.eigvalsh(m)).max() / np.linalg.norm(m)

    step, k = 1e-4, len(others)
    hessian = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
            terms = [s * t * value(step * (s * others[i] + t * others[j])) for s, t in signs]
            hessian[i, j] = sum(terms) / (4 * step**2)
    slopes = [(value(step * x) - value(-step * x)) / (2 * step) for x in others]
    return hessian, np.linalg.norm(slopes)


@pytest.mark.parametrize(("dimension", "width"), [(4, 4), (4, 6), (5, 8)])
def test_ratio_against_second_differences_at_maximizers(dimension: int, width: int) -> None:
    rng = np.random.default_rng(1000 + width)
    weights = rng.standard_normal((width, dimension))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    space = span(weights)
    for w in weights[:2]:
        found = spectral_optimality(space, np.outer(w, w))
        hessian, slope = second_derivatives(space, np.outer(w, w))
        assert found.eigenvalue == pytest.approx(1.0)
        assert found.stationarity < 1e-12
        assert slope < 1e-6
        assert (found.ratio - 1) * found.eigenvalue == pytest.approx(
            np.linalg.eigvalsh(hessian)[-1], abs=1e-5
        )
        assert found.is_maximizer() == (np.linalg.eigvalsh(hessian)[-1] < 0)


def test_ends_of_the_ascent_are_maximizers_and_other_members_are_not_stationary() -> None:
    rng = np.random.default_rng(1000)
    weights = rng.standard_normal((7, 5))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    space = span(weights)
    ends = ascend_spectral_norm(space, rng.standard_normal((10, 7)), SpectralAscentOptions(tolerance=1e-12))
    for u in ends:
        assert spectral_optimality(space, np.outer(u, u)).is_maximizer(1e-5)
        assert spectral_optimality(space, -np.outer(u, u)).is_maximizer(1e-5)
    member = space.packing.unpack(rng.standard_normal((1, 7)) @ space.basis.T)[0]
    found, slope = spectral_optimality(space, member), second_derivatives(space, member)[1]
    assert found.stationarity == pytest.approx(slope, rel=1e-4)
    assert not found.is_maximizer()


def test_a_saddle_between_two_weights() -> None:
    """Two weights at angle 2 a: the bisector is stationary and no maximizer while they are apart."""
    turn = 0.7
    weights = np.array(
        [[np.cos(turn), np.sin(turn), 0.0], [np.cos(turn), -np.sin(turn), 0.0], [0.0, 0.0, 1.0]]
    )
    space = span(weights)
    u = np.array([1.0, 0.0, 0.0])
    middle = space.packing.unpack(space.project(space.packing.outer(u[None])))[0]
    found = spectral_optimality(space, middle)
    hessian, _ = second_derivatives(space, middle)
    assert found.stationarity < 1e-12
    assert found.ratio > 1
    assert (found.ratio - 1) * found.eigenvalue == pytest.approx(np.linalg.eigvalsh(hessian)[-1], abs=1e-5)


def test_a_double_eigenvalue_is_told() -> None:
    found = spectral_optimality(span(np.eye(3)), np.diag([1.0, 1.0, 0.0]))
    assert found.spectral_gap == pytest.approx(0.0)
    assert not found.is_maximizer()


def test_errors() -> None:
    space = span(np.eye(3))
    with pytest.raises(InvalidInput, match="shape"):
        spectral_optimality(space, np.eye(2))
    with pytest.raises(InvalidInput, match="span"):
        spectral_optimality(space, np.ones((3, 3)) - np.eye(3))
