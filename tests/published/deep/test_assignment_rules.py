from __future__ import annotations

import numpy as np
import pytest
from planted_published import planted, true_layers, worst_distance

from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.published.deep import (
    ExactDerivatives,
    PublishedDeepOptions,
    assign_by_rays,
    assign_with_adaptive_radius,
    ray_scores,
)

WIDTHS = (10, 5, 6)


def orthogonal(seed):
    network = planted(10, WIDTHS, seed)
    turned = np.linalg.qr(np.random.default_rng(seed).standard_normal((10, 10)))[0]
    return Network([turned, *network.weights[1:]], network.biases, network.activations)


@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_rays_tell_an_orthogonal_first_layer(seed: int) -> None:
    network = orthogonal(seed)
    layers = true_layers(network)
    hidden = np.concatenate(layers[:2], axis=1).T
    found = assign_by_rays(ExactDerivatives(network), hidden, layers[-1].T, WIDTHS)
    assert worst_distance(found.first.T, layers[0]) < 1e-7
    assert found.gap > 0.1


def test_scores_are_gradients_by_differences() -> None:
    network = orthogonal(1003)
    row = np.random.default_rng(1).standard_normal((1, 10))
    row /= np.linalg.norm(row)
    step = 1e-6 * np.eye(10)

    def length(point):
        return np.linalg.norm([(network(point + e) - network(point - e)) / 2e-6 for e in step])

    wanted = max(length(3 * row), length(-3 * row)) / length(0 * row)
    assert ray_scores(ExactDerivatives(network), row, 3.0) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("start", [1.0, 1e4])
def test_the_radius_adapts(start: float) -> None:
    network = planted(10, WIDTHS, 1004)
    layers = true_layers(network)
    hidden = np.concatenate(layers[:2], axis=1).T
    found = assign_with_adaptive_radius(
        ExactDerivatives(network),
        hidden,
        layers[-1].T,
        WIDTHS,
        np.random.default_rng(0),
        PublishedDeepOptions(far_radius=start),
    )
    assert found.included == 10
    assert worst_distance(found.assignment.first.T, layers[0]) < 1e-7
    assert found.tried[0] == start
    assert found.tried[-1] == found.radius


def test_without_success_the_clearest_is_taken_and_told() -> None:
    network = planted(10, WIDTHS, 1005)
    layers = true_layers(network)
    hidden = np.concatenate(layers[:2], axis=1).T
    arguments = (ExactDerivatives(network), hidden, layers[-1].T, WIDTHS, np.random.default_rng(0))
    found = assign_with_adaptive_radius(*arguments, PublishedDeepOptions(far_radius=0.01), most_radii=3)
    assert found.included != 10
    assert len(found.tried) == 3
    with pytest.raises(InvalidInput, match="unsaturated"):
        assign_with_adaptive_radius(*arguments, PublishedDeepOptions(far_radius=1e9), most_radii=1)
    with pytest.raises(InvalidInput, match="distance"):
        ray_scores(ExactDerivatives(network), hidden, 0.0)
