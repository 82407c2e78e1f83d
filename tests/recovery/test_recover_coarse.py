"""Coarse answers through the front door: recovered to what theory allows, and never what they are not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave
from unweave import Status

sys.path.insert(0, str(Path(__file__).parent / "coarse"))
from coarse_targets import in_single_precision, noisy, planted, rounded

GOOD = (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)
EXACT = 1e-10
"""Flips of rounded answers: rounding times the condition of the equations, which is 1e4 at most here."""

Target = Callable[[np.ndarray], np.ndarray]


def recover(target: Target, inputs: int, **given: Any) -> unweave.Recovery:
    return unweave.recover(lambda x: target(x), input_dim=inputs, seed=1, **given)


def assert_recovered(network: unweave.Network, result: unweave.Recovery, tolerance: float) -> None:
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert unweave.compare(network, result.network).parameter_error <= tolerance


def largest_bar(result: unweave.Recovery) -> float:
    bars = result.standard_errors
    assert bars is not None
    return max(float(part.max()) for part in (*bars.weights, *bars.biases))


COARSE: dict[str, tuple[Callable[[unweave.Network], Target], float]] = {
    # float32: a few of its roundings, 6e-8 each, times the condition of the fit.
    "float32": (in_single_precision, 1e-5),
    "4 decimals": (lambda net: rounded(net, 4), EXACT),
    "2 decimals": (lambda net: rounded(net, 2), EXACT),
    # C sigma sqrt(P / n) with n = 32 P and C up to 10 for the worst parameter: 2e-2.
    "noise 1e-2": (lambda net: noisy(net, 1e-2, 1001), 5e-2),
}


@pytest.mark.parametrize("precision", COARSE)
@pytest.mark.parametrize("sizes", [(10, 8, 1), (8, 6, 3)])
def test_plain_outputs(sizes: tuple[int, int, int], precision: str) -> None:
    network = planted(*sizes, seed=1000)
    coarse, tolerance = COARSE[precision]
    result = recover(coarse(network), sizes[0])
    assert_recovered(network, result, tolerance)
    assert result.network is not None
    error = unweave.compare(network, result.network).parameter_error
    assert error <= 8 * largest_bar(result)  # the result knows how good it is


@pytest.mark.parametrize(
    ("outputs", "output", "mode", "tolerance"),
    [
        (1, "sigmoid", "float64", 1e-11),
        (1, "sigmoid", "3 decimals", EXACT),
        (3, "softmax", "float64", 1e-11),
        (3, "softmax", "3 decimals", EXACT),
        (2, "sigmoid", "float64", 1e-11),
        (1, "tanh", "3 decimals", EXACT),
        pytest.param(1, "tanh", "float64", 1e-11, marks=pytest.mark.slow),
        pytest.param(2, "sigmoid", "3 decimals", EXACT, marks=pytest.mark.slow),
    ],
)
def test_behind_a_link(outputs: int, output: str, mode: str, tolerance: float) -> None:
    network = planted(8, 6, outputs, seed=1002, output=output)
    result = recover(rounded(network, 3) if mode == "3 decimals" else network, 8)
    assert_recovered(network, result, tolerance)
    assert result.network is not None
    assert result.network.activations == ("tanh", output)


def test_in_a_box(recorder: Any) -> None:
    network = planted(8, 6, 1, seed=1006, norm=3.0)
    target = recorder(rounded(network, 3))
    result = recover(target, 8, domain=(0, 1))
    assert_recovered(network, result, EXACT)
    assert target.rows.min() >= 0
    assert target.rows.max() <= 1


@pytest.mark.parametrize(
    "activation",
    [pytest.param("logistic", marks=pytest.mark.slow), "erf", "softplus", "gelu", "swish", "sine"],
)
def test_other_units_from_two_decimals(activation: str) -> None:
    network = planted(8, 6, 1, seed=1003, activation=activation)
    result = recover(rounded(network, 2), 8)
    assert_recovered(network, result, EXACT)
    assert result.network is not None
    assert result.network.activations[0] == ("tanh" if activation == "logistic" else activation)


def test_averaging_falls_with_the_square_root_and_says_so() -> None:
    network = planted(6, 4, 1, seed=1004)
    bars = []
    for rows in (16, 256):
        result = recover(rounded(network, 2), 6, averaging=rows)
        assert_recovered(network, result, 0.02)
        bars.append(largest_bar(result))
    assert bars[0] / bars[1] == pytest.approx(4, rel=0.3)  # the Gram matrix of 16 P rows is a sample itself
    assert largest_bar(recover(rounded(network, 2), 6)) < 1e-10  # bisected


def test_standard_errors_are_kept_with_the_result(tmp_path: Path) -> None:
    network = planted(6, 4, 1, seed=1004)
    result = recover(noisy(network, 1e-2, 1005), 6)
    assert_recovered(network, result, 5e-2)
    result.save(tmp_path / "run.npz")
    again = unweave.Recovery.load(tmp_path / "run.npz")
    assert again.standard_errors == result.standard_errors


def test_a_told_width_that_is_too_large_is_cut_down() -> None:
    network = planted(6, 4, 1, seed=1006)
    result = recover(rounded(network, 3), 6, hidden=[6])
    assert_recovered(network, result, EXACT)
    assert any("needs 4 units where 6 were given" in note for note in result.notes)


def test_a_budget_that_ends_early_is_told() -> None:
    network = planted(8, 6, 1, seed=1007)
    for most in (300, 1500, 4000):
        result = recover(rounded(network, 3), 8, max_queries=most)
        assert result.queries <= most
        assert result.status in (Status.FAILED, Status.APPROXIMATE)
        assert result.message


@pytest.mark.parametrize("averaging", [1, 0, -3, float("nan"), float("inf")])
def test_averaging_must_be_a_number_of_rows(averaging: float) -> None:
    with pytest.raises(unweave.errors.InvalidInput, match="averaging must be"):
        recover(planted(3, 2, 1, seed=1000), 3, averaging=averaging)


# -- what is no smooth hidden layer ------------------------------------------------------------------------


def forest(x: np.ndarray) -> np.ndarray:
    """A hundred fixed trees of depth four: piecewise constant."""
    rng = np.random.default_rng(1008)
    total = np.zeros(len(x))
    for _ in range(100):
        leaf = np.zeros(len(x), dtype=int)
        for _ in range(4):
            leaf = 2 * leaf + (x[:, rng.integers(x.shape[1])] > rng.normal())
        total += rng.standard_normal(16)[leaf]
    return total / 10


def two_layers(inputs: int) -> unweave.Network:
    return unweave.random_network([inputs, 5, 4, 1], seed=1010, outer="normal", norms=(1.5, 1.5))


WRONG: dict[str, Callable[[int], Target]] = {
    "trees": lambda _: forest,
    "rounded trees": lambda _: rounded(forest, 3),
    "product, 3 decimals": lambda _: lambda x: np.round(np.prod(np.tanh(x), axis=1), 3),
    "sum of products, 4 decimals": lambda _: (
        lambda x: np.round(x[:, 0] * x[:, 1] + np.sin(x[:, 2] * x[:, 3]), 4)
    ),
    "two hidden layers, 4 decimals": lambda inputs: rounded(two_layers(inputs), 4),
    "two hidden layers, 2 decimals": lambda inputs: rounded(two_layers(inputs), 2),
    "two hidden layers, noise": lambda inputs: noisy(two_layers(inputs), 1e-2, 1015),
}


SECONDS = ("trees", "rounded trees", "sum of products, 4 decimals")
"""Those on which many thresholds are bisected, or all activations tried before they are given up."""


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        pytest.param(name, inputs, marks=[pytest.mark.slow] if inputs > 4 or name in SECONDS else [])
        for inputs in (4, 6)
        for name in WRONG
    ],
)
def test_what_is_no_such_network_is_not_called_one(name: str, inputs: int) -> None:
    target = WRONG[name](inputs)
    result = recover(target, inputs)
    if isinstance(result.network, unweave.TreeEnsemble) and result.status in GOOD:
        x = np.random.default_rng(1000).standard_normal((5000, inputs))
        np.testing.assert_allclose(result.network(x)[:, 0], target(x), atol=1e-12)
    else:
        assert result.status not in GOOD
    assert result.message


@pytest.mark.parametrize("sigma", [1.0, 1e-3])
def test_noise_is_no_network(sigma: float) -> None:
    rng = np.random.default_rng(1011)
    result = recover(lambda x: sigma * rng.standard_normal(len(x)), 6)
    assert result.status is Status.FAILED


def test_dithered_rounding_is_noise() -> None:
    """A random shift before rounding: not repeatable, so it is averaged, and still recovered."""
    network = planted(6, 4, 1, seed=1012)
    rng = np.random.default_rng(1013)
    result = recover(lambda x: np.round(network(x) + rng.uniform(-0.005, 0.005, (len(x), 1)), 2), 6)
    assert_recovered(network, result, 0.02)


def test_units_that_were_added_while_others_were_missing_do_not_stay() -> None:
    """The Hessians miss units here, and what is left of the answers shows wrong ones at first.

    Which networks come back at this much noise depends on how the machine rounds: on those looked at, three
    to five of these six.
    """
    found = 0
    for seed in range(1007, 1013):
        network = planted(8, 10, 1, seed, "swish")
        result = recover(noisy(network, 1e-2, seed), 8)
        if result.status is Status.RECOVERED:
            found += 1
            assert result.network is not None
            assert result.network.hidden == (10,)
            assert_recovered(network, result, 5e-2)
            assert largest_bar(result) < 2e-2
    assert found >= 3
