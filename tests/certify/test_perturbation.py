"""The guarantee is tried by drawing noise: it may fail with a given probability, and not more often."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.certify import (
    LayerNorms,
    deviation_bound,
    draw_noise,
    noise_resilience_sigma,
    noise_resilience_sigmas,
)
from unweave.construct import as_exact
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.random import random_network

WIDTH, MARGIN, DRAWS = 30, 0.5, 30


def scaled(factor: float, seed: int) -> tuple[Network, np.ndarray]:
    """Two layers of norms c and 1/c, and unit inputs."""
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((2, WIDTH, WIDTH))
    weights = [factor * first / np.linalg.norm(first, 2), second / np.linalg.norm(second, 2) / factor]
    x = rng.standard_normal((200, WIDTH))
    net = Network(weights, [np.zeros(WIDTH)] * 2, ["relu", "identity"])
    return net, x / np.linalg.norm(x, axis=1, keepdims=True)


def exceeded(net: Network, x: np.ndarray, sigmas, margin: float, seed: int) -> float:
    rng = np.random.default_rng(seed)
    answers = net(x)
    moved = [np.linalg.norm(draw_noise(net, sigmas, rng)(x) - answers, axis=1).max() for _ in range(DRAWS)]
    return float(np.mean(np.array(moved) > margin))


@pytest.mark.parametrize("factor", [1.0, 100.0, 0.01])
@pytest.mark.parametrize("seed", [1000, 1001])
def test_rescaled_layers_never_exceed_the_margin(factor: float, seed: int) -> None:
    net, x = scaled(factor, seed)
    for form in ("recursion", "closed"):
        assert exceeded(net, x, noise_resilience_sigma(net, 1.0, MARGIN, form=form), MARGIN, seed) == 0
    assert exceeded(net, x, noise_resilience_sigmas(net, 1.0, MARGIN), MARGIN, seed) == 0


def test_the_published_form_fails_with_certainty_on_rescaled_layers() -> None:
    balanced, x = scaled(1.0, 1002)
    net, _ = scaled(100.0, 1002)
    published = noise_resilience_sigma(net, 1.0, MARGIN, form="published")
    assert published == pytest.approx(noise_resilience_sigma(balanced, 1.0, MARGIN, form="published"))
    assert exceeded(balanced, x, published, MARGIN, 1002) == 0
    assert exceeded(net, x, published, MARGIN, 1002) == 1


def test_the_recursion_is_the_sharpest_and_layers_scale_with_their_norms() -> None:
    net, _ = scaled(100.0, 1003)
    balanced, _ = scaled(1.0, 1003)
    assert noise_resilience_sigma(net, 1.0, MARGIN) > noise_resilience_sigma(net, 1.0, MARGIN, form="closed")
    ours, even = noise_resilience_sigmas(net, 1.0, MARGIN), noise_resilience_sigmas(balanced, 1.0, MARGIN)
    assert ours == pytest.approx((100 * even[0], even[1] / 100))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_biases_and_depth(activation: str) -> None:
    net = random_network([10, 20, 15, 5], activation=activation, outer="normal", bias=1.0, seed=1004)
    x = np.random.default_rng(1004).standard_normal((200, 10))
    reach = float(np.linalg.norm(x, axis=1).max())
    sigma = noise_resilience_sigma(net, reach, 1.0)
    assert sigma > 0
    assert exceeded(net, x, sigma, 1.0, 1004) == 0
    assert noise_resilience_sigma(net, reach, 1.0, failure=0.01) < sigma
    assert noise_resilience_sigma(net, reach, 1.0, form="closed") == 0  # biases: no such guarantee


def test_the_deviation_bound_is_reached() -> None:
    # One unit per layer, noise along the weights: nothing is lost in any inequality.
    net = Network([[[2.0]], [[3.0]]], [[0.5], [0.0]], ["relu", "identity"])
    noisy = Network([[[2.1]], [[3.2]]], [[0.6], [0.1]], ["relu", "identity"])
    bound = deviation_bound(LayerNorms.of(net), 4.0, [(0.1, 0.1), (0.2, 0.1)])
    assert noisy([4.0])[0] - net([4.0])[0] == pytest.approx(bound)


@pytest.mark.parametrize("form", ["recursion", "closed", "published"])
def test_nothing_is_promised_for_other_networks(form: str) -> None:
    for net in (
        random_network([3, 4, 2], activation="sigmoid"),
        random_network([3, 4, 2], output_activation="softmax"),
        Network([[[1.0]], [[1.0]]], [[0.0], [0.0]], ["relu", "identity"], skip=[[1.0]]),
    ):
        assert noise_resilience_sigma(net, 1.0, 1.0, form=form) == 0
        assert set(noise_resilience_sigmas(net, 1.0, 1.0)) == {0.0}


def test_bad_input_is_named() -> None:
    net = random_network([3, 4, 2], activation="relu")
    for arguments in ((0.0, 1.0), (np.inf, 1.0), (1.0, -1.0), (1.0, np.nan)):
        with pytest.raises(InvalidInput, match="positive and finite"):
            noise_resilience_sigma(net, *arguments)
    with pytest.raises(InvalidInput, match="failure"):
        noise_resilience_sigma(net, 1.0, 1.0, failure=1.0)
    with pytest.raises(InvalidInput, match="form"):
        noise_resilience_sigma(net, 1.0, 1.0, form="best")
    with pytest.raises(InvalidInput, match="floats"):
        noise_resilience_sigma(as_exact(net), 1.0, 1.0)
    with pytest.raises(InvalidInput, match="One per layer"):
        draw_noise(net, [1.0], np.random.default_rng(0))
