"""Links undone, their slopes, and where they are seen well."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.links import LINKS, Link


def softmax(z: np.ndarray) -> np.ndarray:
    exponentials = np.exp(z - z.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def apply(name: str, z: np.ndarray) -> np.ndarray:
    return softmax(z) if name == "softmax" else get_activation(name)(z)


@pytest.mark.parametrize("name", LINKS)
def test_undone_is_what_was_there_before(name: str) -> None:
    z = 2 * np.random.default_rng(1000).standard_normal((50, 3))
    if name == "softmax":
        z -= z.mean(axis=1, keepdims=True)
    # y has an error of eps; through the inverse that is eps / T', and T' is at least 1 / cosh(8)^2 here.
    assert_allclose(Link(name).undo(apply(name, z), 0.0), z, rtol=0, atol=2e-10)


@pytest.mark.parametrize("name", LINKS)
def test_slope_is_that_of_the_link(name: str) -> None:
    z = np.random.default_rng(1001).standard_normal((50, 3))
    step = 1e-5
    slopes = np.empty_like(z)
    for k in range(3):  # d y_k / d z_k, the others held fixed: for softmax y (1 - y)
        move = step * np.eye(3)[k]
        slopes[:, k] = ((apply(name, z + move) - apply(name, z - move)) / (2 * step))[:, k]
    # Central differences: h^2/6 |T'''| + eps / h = 1e-10.
    assert_allclose(Link(name).slope(apply(name, z)), slopes, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "softmax"])
def test_ends_of_the_range_stay_finite(name: str) -> None:
    answers = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    if name == "tanh":
        answers = 2 * answers - 1
    for sigma in (0.0, 1e-3):
        behind = Link(name).undo(answers, sigma)
        assert np.isfinite(behind).all()
    # With 3 decimals nothing beyond half a sigma from the end is believed.
    edge = 5e-4
    expected = {"sigmoid": np.log(edge / (1 - edge)), "tanh": np.arctanh(-1 + edge)}
    if name in expected:
        assert behind.min() == pytest.approx(expected[name], rel=1e-12)


def test_probabilities_far_below_one_are_kept() -> None:
    small = np.array([[1e-200]])
    assert Link("sigmoid").undo(small, 0.0)[0, 0] == pytest.approx(np.log(1e-200), rel=1e-14)


def test_undecided_rows_are_seen_well() -> None:
    answers = np.array([[0.5, 0.4, 0.1], [0.98, 0.01, 0.01], [0.8, 0.19, 0.01]])
    assert_array_equal(Link("softmax").sees_well(answers), [True, False, True])
    assert_array_equal(Link("sigmoid").sees_well(np.array([[0.5], [0.1], [0.9]])), [True, False, False])
    assert_array_equal(Link("tanh").sees_well(np.array([[0.0], [0.7], [-0.9]])), [True, True, False])
    assert Link("identity").sees_well(np.full((4, 2), 1e9)).all()


def test_unknown_links_are_refused() -> None:
    with pytest.raises(InvalidInput, match="output_activation must be one of"):
        Link("relu")
