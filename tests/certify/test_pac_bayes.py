from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from unweave.certify import balanced, cluster_bound, dist_from_init_bound, margins, nbs_bound
from unweave.certify.margins import grid_point, layer_distances, squared_distances
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.random import random_network

M, INPUTS, WIDTH = 400, 6, 12
RNG = np.random.default_rng(1000)
X = RNG.standard_normal((M, INPUTS)) / 3
REACH = float(np.linalg.norm(X, axis=1).max())


def classifier(layers: int = 2, seed: int = 1000, size: float = 1.0) -> Network:
    """A network without biases, layers of spectral norm ``size``."""
    rng = np.random.default_rng(seed)
    widths = [INPUTS, *[WIDTH] * (layers - 1), 2]
    weights = [rng.standard_normal((a, b)) for a, b in pairwise(widths)]
    weights = [size * w / np.linalg.norm(w, 2) for w in weights]
    return Network(weights, [np.zeros(b) for b in widths[1:]], ["relu"] * (layers - 1) + ["identity"])


def near(net: Network, size: float, seed: int) -> Network:
    rng = np.random.default_rng(seed)
    return Network(
        [w + size * rng.standard_normal(w.shape) for w in net.weights], net.biases, net.activations
    )


def labels(net: Network) -> np.ndarray:
    return net(X).argmax(axis=1)


def rescaled(net: Network, factor: float) -> Network:
    weights = [net.weights[0] * factor, *net.weights[1:-1], net.weights[-1] / factor]
    return Network(weights, net.biases, net.activations)


def test_margins_by_hand() -> None:
    outputs = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 5.0]])
    assert margins(outputs, np.array([0, 1])).tolist() == [1.0, 0.0]
    assert margins(outputs, np.array([1, 0])).tolist() == [-2.0, -5.0]


def test_balanced_layers_are_the_same_function() -> None:
    net = rescaled(classifier(3), 50.0)
    even = balanced(net)
    norms = [np.linalg.norm(w, 2) for w in even.weights]
    assert max(norms) == pytest.approx(min(norms))
    assert np.allclose(even(X), net(X), rtol=1e-12, atol=1e-14)


def test_spectral_bound_follows_the_formula() -> None:
    net = classifier(2)
    y = labels(net)
    gamma, m, d = 1.1, M, 2
    bound = nbs_bound(net, X, y, gamma, REACH)
    low, shrink = (gamma / (2 * REACH)) ** (1 / d), np.exp(3 - 2 / (d - 1))
    high = (np.sqrt(m - 1) * gamma / (4 * shrink * REACH)) ** (1 / d)
    assert low <= 1 <= high
    points = int(np.ceil(d / 2 * (np.sqrt(m - 1) / (2 * shrink)) ** (1 / d)))
    near_one = grid_point(1.0, low, high, points)
    assert abs(near_one - 1) <= 1 / d  # close enough for the proof
    noise = min(gamma / (4 * np.e**2 * REACH * near_one), near_one / np.e)
    sigma = noise / (d * np.sqrt(2 * WIDTH * np.log(4 * d * WIDTH)))
    divergence = sum(np.sum(w**2) for w in net.weights) / (2 * sigma**2)
    expected = np.sqrt((divergence + np.log(3 * m * points / 0.05)) / (m - 1))
    assert bound.complexity == pytest.approx(expected)
    assert bound.value == pytest.approx(expected + np.mean(margins(net(X), y) <= gamma / 2))
    assert bound.vacuous
    assert "vacuous" in str(bound)


@pytest.mark.parametrize("size", [0.01, 20.0])
def test_beta_outside_its_interval_gives_infinity(size: float) -> None:
    net = classifier(2, size=size)
    bound = nbs_bound(net, X, labels(net), 0.9, REACH)
    assert bound.value == np.inf
    assert "outside" in bound.reason
    assert str(bound).startswith("no bound")


def test_failed_hypotheses_give_infinity_and_their_name() -> None:
    net = classifier(2)
    y = labels(net)
    biased = Network(net.weights, [np.ones(WIDTH), np.zeros(2)], net.activations)
    smooth = Network(net.weights, net.biases, ["tanh", "identity"])
    flat = Network([net.weights[0] * 0, net.weights[1]], net.biases, net.activations)
    affine = Network([net.weights[0] @ net.weights[1]], [np.zeros(2)], ["identity"])
    for bad, word in ((biased, "biases"), (smooth, "relu"), (flat, "zeros"), (affine, "hidden layer")):
        bound = nbs_bound(bad, X, y, 0.9, REACH)
        assert bound.value == np.inf
        assert word in bound.reason
    assert "exceeds" in nbs_bound(net, X, y, 0.9, REACH / 2).reason
    assert (
        dist_from_init_bound(
            random_network([INPUTS, 4, 2], activation="sigmoid"),
            random_network([INPUTS, 4, 2], activation="sigmoid"),
            X,
            y,
        ).value
        == np.inf
    )


def test_rescaling_layers_does_not_change_the_bounds() -> None:
    net = classifier(3, size=0.93)
    start = near(net, 0.05, 1001)
    y = labels(net)
    other, other_start = rescaled(net, 100.0), rescaled(start, 100.0)
    spectral = nbs_bound(net, X, y, 2.2, REACH)
    assert np.isfinite(spectral.value)
    assert nbs_bound(other, X, y, 2.2, REACH).value == pytest.approx(spectral.value)
    plain = dist_from_init_bound(net, start, X, y, 0.1)
    moved = dist_from_init_bound(other, other_start, X, y, 0.1)
    # Standard deviations are powers of two, which 100 is not: each moves by less than a factor of two.
    assert plain.complexity / 2.1 <= moved.complexity <= 2.1 * plain.complexity
    # One deviation for all layers has to suit the smallest.
    assert (
        dist_from_init_bound(other, other_start, X, y, 0.1, per_layer=False).complexity
        > 20 * plain.complexity
    )


def test_distance_from_the_start() -> None:
    net = classifier(2)
    y = labels(net)
    same = dist_from_init_bound(net, net, X, y, 0.05)
    assert same.divergence == 0
    assert same.complexity < 0.4  # logarithms alone, over 399
    assert not same.vacuous
    far, close = (dist_from_init_bound(net, near(net, s, 1002), X, y, 0.05) for s in (0.1, 0.001))
    assert same.complexity < close.complexity < far.complexity
    chosen = dist_from_init_bound(net, near(net, 0.001, 1002), X, y)
    for exponent in range(-8, 2):  # the choice costs a logarithm only
        given = dist_from_init_bound(net, near(net, 0.001, 1002), X, y, 2.0**exponent)
        assert chosen.value <= given.value + np.sqrt(np.log(2.3 * (1 + abs(exponent)) ** 2) / (M - 1))
    assert np.log2(chosen.margin) % 1 == 0


def test_distance_from_the_start_covers_biases_and_tanh() -> None:
    net = random_network([INPUTS, 8, 2], activation="tanh", outer="normal", seed=1003)
    bound = dist_from_init_bound(net, net, X, labels(net), 0.05)
    assert np.isfinite(bound.value)


def test_cluster_as_proved_and_as_stated() -> None:
    net = classifier(2)
    y = labels(net)
    starts = [near(net, 0.2, seed) for seed in (1004, 1005, 1006)]
    trained = [near(net, 0.001, seed) for seed in (1007, 1008, 1009)]
    stated = cluster_bound(net, trained, starts, X, y, REACH, form="stated")
    proved = cluster_bound(net, trained, starts, X, y, REACH)
    assert not stated.proved
    assert proved.proved
    assert proved.margin >= 8 * stated.margin  # niceness at gamma/8
    same_margin = cluster_bound(net, trained, starts, X, y, REACH, margin=proved.margin, form="stated")
    assert 6 < proved.complexity / same_margin.complexity < 12  # gamma/8 in place of gamma, and logarithms
    assert "does not give" in str(stated)
    not_nice = cluster_bound(net, trained, starts, X, y, REACH, margin=stated.margin)
    assert not_nice.value == np.inf
    assert "not nice" in not_nice.reason


def test_cluster_with_trained_at_the_starts_costs_only_logarithms() -> None:
    net = classifier(2)
    bound = cluster_bound(net, [net], [net], X, labels(net), REACH, margin=0.1)
    assert bound.divergence == pytest.approx(0, abs=1e-9)
    assert bound.complexity < 0.4


def test_cluster_hypotheses() -> None:
    net = classifier(2)
    y = labels(net)
    biased = Network(net.weights, [np.ones(WIDTH), np.zeros(2)], net.activations)
    assert "biases" in cluster_bound(net, [net], [biased], X, y, REACH, margin=0.1).reason
    small = classifier(2, size=1e-3)
    assert "below" in cluster_bound(small, [small], [small], X, y, REACH, margin=0.1).reason
    dead = Network([-np.abs(w) for w in net.weights], net.biases, net.activations)
    for margin in (0.1, None):
        bound = cluster_bound(dead, [dead], [dead], np.abs(X), y, REACH, margin=margin)
        assert (bound.value, bound.reason[:17]) == (np.inf, "an answer is zero")
    alone = cluster_bound(net, [net], [net], X, y, REACH)  # nice at any margin
    assert np.isfinite(alone.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net, y: nbs_bound(net, X[:, :3], y, 1.0, 1.0), r"\(m, 6\)"),
        (lambda net, y: nbs_bound(net, X * np.nan, y, 1.0, 1.0), "finite"),
        (lambda net, y: nbs_bound(net, X, y[:5], 1.0, 1.0), "labels"),
        (lambda net, y: nbs_bound(net, X, y + 5, 1.0, 1.0), "labels"),
        (lambda net, y: nbs_bound(net, X, y, 0.0, 1.0), "margin"),
        (lambda net, y: nbs_bound(net, X, y, 1.0, np.inf), "input_norm"),
        (lambda net, y: nbs_bound(net, X, y, 1.0, 1.0, delta=0.0), "delta"),
        (lambda net, y: nbs_bound(random_network([6, 3, 1]), X, y, 1.0, 1.0), "one output per class"),
        (lambda net, y: dist_from_init_bound(net, classifier(3), X, y), "widths"),
        (lambda net, y: cluster_bound(net, [], [net], X, y, 1.0), "not be empty"),
        (lambda net, y: cluster_bound(net, [net], [net], X, y, 1.0, form="best"), "form"),
        (lambda net, y: balanced(random_network([3, 4, 2])), "homogeneity"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    net = classifier(2)
    with pytest.raises(InvalidInput, match=message):
        call(net, labels(net))


def test_distances_of_a_cluster_are_those_of_its_pairs() -> None:
    networks = [random_network([3, 4, 2], "relu", seed=1000 + seed) for seed in range(5)]
    found = squared_distances(networks[:2], networks[2:])
    expected = [[sum(layer_distances(a, b)) for b in networks[2:]] for a in networks[:2]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
