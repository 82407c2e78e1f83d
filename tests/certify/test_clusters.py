"""Clusters of networks: cones, angles, and a divergence against sampling."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.certify import angle_index, cone_of_starts, mixture_divergence, move, spread
from unweave.certify.clusters import flat_parameters
from unweave.networks.network import Network


def scaled(network, factor):
    return Network(
        [factor * w for w in network.weights], [factor * b for b in network.biases], network.activations
    )


def test_a_scaled_network_is_dilated_and_not_turned():
    start = unweave.random_network([4, 3, 2], "relu", seed=1000, outer="normal")
    found = move(start, scaled(start, 2.5))
    assert found.angle == pytest.approx(0.0, abs=1e-12)
    assert found.dilation == pytest.approx(2.5)
    assert found.distance == pytest.approx(1.5 * np.linalg.norm(flat_parameters(start)))
    assert move(start, scaled(start, -1.0)).angle == pytest.approx(np.pi)
    assert angle_index(start, scaled(start, 3.0)) == 1


def test_starts_fill_the_cone():
    start = unweave.random_network([5, 4, 2], "relu", seed=1000, outer="normal")
    starts = cone_of_starts(start, 0.3, 400)
    moves = [move(start, other) for other in starts]
    assert max(m.angle for m in moves) <= 0.3 + 1e-12
    assert np.mean([m.angle for m in moves]) == pytest.approx(0.15, abs=0.02)
    assert all(m.dilation == pytest.approx(1.0) for m in moves)
    # The cluster points apart by about as much as its cone is wide.
    assert 0.1 < spread(starts).mean < spread(starts).largest <= 0.35
    again = cone_of_starts(start, 0.3, 400)
    assert all(
        np.array_equal(flat_parameters(a), flat_parameters(b)) for a, b in zip(starts, again, strict=True)
    )


@pytest.mark.parametrize(("sigma", "mixture_sigma"), [(1.0, 1.0), (0.7, 1.0), (1.0, 1.4)])
def test_the_divergence_is_an_upper_bound(sigma, mixture_sigma):
    rng = np.random.default_rng(1000)
    n, center = 3, rng.standard_normal(3)
    means, shares = rng.standard_normal((4, 3)), np.array([0.1, 0.2, 0.3, 0.4])
    x = center + sigma * rng.standard_normal((200_000, n))

    def log_normal(mean, deviation):
        return -np.sum((x - mean) ** 2, axis=1) / (2 * deviation**2) - n * np.log(deviation)

    mixture = np.log(
        sum(a * np.exp(log_normal(b, mixture_sigma)) for a, b in zip(shares, means, strict=True))
    )
    sampled = np.mean(log_normal(center, sigma) - mixture)
    bound = mixture_divergence(np.linalg.norm(means - center, axis=1), n, sigma, mixture_sigma, shares)
    assert sampled <= bound + 0.01
    alone = mixture_divergence(np.array([1.5]), n, sigma, mixture_sigma)
    ratio = (sigma / mixture_sigma) ** 2
    exact = n / 2 * (ratio - 1 - np.log(ratio)) + 1.5**2 / (2 * mixture_sigma**2)
    assert alone == pytest.approx(exact)


def test_refused():
    start = unweave.random_network([3, 2, 1], "relu", seed=0)
    with pytest.raises(unweave.UnweaveError, match="half_angle"):
        cone_of_starts(start, 0.0, 3)
    with pytest.raises(unweave.UnweaveError, match="weights"):
        mixture_divergence(np.ones(2), 3, 1.0, 1.0, np.array([0.5, 0.2]))
    with pytest.raises(unweave.UnweaveError, match="zero"):
        move(start, scaled(start, 0.0))
