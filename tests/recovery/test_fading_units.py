"""Trained networks have units of every strength: those too weak to be told apart are named."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier

import unweave
from unweave import Network, Status


def fading(seed: int, weakest: float, inputs: int = 10, width: int = 40) -> Network:
    """A layer whose units fade from strong ones to ``weakest`` of these, as weight decay leaves them."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((inputs, width)) / np.sqrt(inputs)
    outer = rng.choice([-1.0, 1.0], (width, 1)) * np.geomspace(1, weakest, width)[:, None]
    return Network([weights, outer], [0.5 * rng.standard_normal(width), [0.1]], ["relu", "identity"])


@pytest.mark.parametrize("seed", [1000, 1001])
def test_units_that_fade_away_are_an_ambiguity_with_a_name(seed: int) -> None:
    net = fading(seed, 1e-12)
    result = unweave.recover(net, seed=7)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "less than 1e-06 of the strongest" in result.message
    assert result.certificate.holds
    x = np.random.default_rng(3).standard_normal((2000, net.n_inputs))
    assert result.network is not None
    assert np.abs(result.network(x) - net(x)).max() < 1e-7


def test_units_that_are_all_strong_enough_need_no_such_words() -> None:
    net = fading(1000, 1e-2)
    result = unweave.recover(net, seed=7)
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error < 1e-9


def test_kinks_that_show_through_a_link_are_read_behind_it() -> None:
    """Three of four lines look broken without the link, all of them behind it."""
    x, y = load_breast_cancer(return_X_y=True)
    model = MLPClassifier(random_state=4).fit(x, y)
    result = unweave.recover(model.predict_proba, input_dim=30, seed=1_000_007)
    assert result.status.is_recovered
    assert result.network is not None
    assert result.network.activations[-1] == "sigmoid"
    assert result.queries < 10 * (30 * 100 + 201)
    assert np.abs(result.network(x) - model.predict_proba(x)[:, 1:]).max() < 1e-6
