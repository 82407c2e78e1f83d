from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Network, random_network
from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.methods.table import METHODS
from unweave.search import Question


def silent(x: Array) -> Array:
    raise AssertionError("a plan asks nothing")


def planted(layers: list[int], activation: str = "tanh", seed: int = 1000) -> Network:
    return random_network(layers, activation, seed=seed, outer="signed", norms=(0.6, 1.6), bias=0.5)


def test_nothing_is_asked_without_a_look() -> None:
    made = unweave.plan(silent, [40], input_dim=20, activation="tanh")
    assert (made.inputs, made.outputs, made.sent, made.seconds_per_row) == (20, 1, 0, None)
    assert made.first is not None
    assert made.first.method == "smooth"
    assert made.first.parameters == 20 * 40 + 40 + 40 + 1
    assert made.first.seconds is None
    assert any("nothing was asked" in line for line in made.assumptions)
    assert any("one output" in line for line in made.assumptions)


def test_a_look_measures() -> None:
    net = planted([12, 6, 2])
    made = unweave.plan(net, look=True)
    assert made.sent > 100
    assert made.outputs == 2
    assert made.precision == "float64"
    assert made.seconds_per_row is not None
    assert made.first is not None
    assert made.first.seconds == pytest.approx(
        made.first.cost.seconds + made.first.rows * made.seconds_per_row
    )
    lines = next(entry for entry in made.methods if entry.method == "relu")
    assert not lines.tried
    assert "no kinks" in lines.why


def test_unknown_widths_are_assumed_and_named() -> None:
    made = unweave.plan(silent, input_dim=20)
    widths = [entry.hidden for entry in made.methods if entry.method == "smooth"]
    assert widths == [(10,), (20,), (40,)]
    assert {entry.method for entry in made.methods if entry.tried} == {
        "smooth",
        "smooth_wide",
        "smooth_patterns",
        "smooth_deep",
        "rectified_deep",
        "relu",
        "relu_deep",
        "relu_layers",
    }
    assert any("[10], [20], [40]" in line for line in made.assumptions)
    assert any("kinks" in line for line in made.assumptions)


def test_what_is_told_decides_the_method() -> None:
    def first(**told: object) -> str | None:
        entry = unweave.plan(silent, input_dim=20, **told).first  # type: ignore[arg-type]
        return None if entry is None else entry.method

    assert first(hidden=[15, 10], activation="tanh") == "smooth_patterns"
    assert first(hidden=[15, 10, 5], activation="tanh") == "smooth_patterns"
    assert first(hidden=[15, 12, 10, 8, 5], activation="tanh") == "smooth_deep"
    assert first(hidden=[15], activation="relu") == "relu"
    assert first(hidden=[15, 10], activation="relu") == "relu_deep"
    assert first(hidden=[15], activation="tanh", precision="rounded") == "smooth_coarse"
    assert first(hidden=[]) == "affine"


def test_a_known_width_costs_less_and_outputs_help() -> None:
    def rows(**told: object) -> int:
        made = unweave.plan(silent, input_dim=50, activation="tanh", **told)  # type: ignore[arg-type]
        return next(e.cost.rows for e in made.methods if e.method == "smooth" and e.hidden == (100,))

    assert rows(hidden=[100]) < rows()
    assert rows(hidden=[100], outputs=10) < 0.5 * rows(hidden=[100])


CASES = {
    "slice, told": (planted([20, 40, 1]), {"hidden": [40], "activation": "tanh"}),
    "slice, not told": (planted([20, 40, 1]), {}),
    "slice, outputs": (planted([20, 40, 5]), {"hidden": [40]}),
    "fewer neurons than inputs": (planted([100, 10, 1]), {"hidden": [10], "activation": "tanh"}),
    "few inputs": (planted([7, 4, 1]), {"hidden": [4], "activation": "tanh"}),
    "Hessians": (planted([8, 22, 1]), {"hidden": [22], "activation": "tanh"}),
    "lines": (planted([20, 10, 1], "relu"), {"hidden": [10]}),
    "lines, many": (planted([10, 30, 2], "relu"), {"hidden": [30]}),
    "deep": (planted([12, 10, 6, 1]), {"hidden": [10, 6], "activation": "tanh"}),
    "surfaces": (planted([12, 10, 6, 1], "relu"), {"hidden": [10, 6], "activation": "relu"}),
    "affine": (Network([np.ones((9, 2))], [np.zeros(2)], ["identity"]), {"hidden": []}),
}


@pytest.mark.parametrize("case", list(CASES))
def test_rows_are_predicted_within_a_factor_of_two(case: str) -> None:
    network, told = CASES[case]
    hidden = told.get("hidden", list(network.hidden))
    made = unweave.plan(network, **told, look=True)
    entry = next(e for e in made.methods if e.tried and list(e.hidden) == hidden)
    result = unweave.recover(network, seed=1000, **told)
    assert result.status.name == "RECOVERED"
    spent = result.queries - result.probing_queries - result.verification_queries
    assert spent / 2 <= entry.cost.rows <= 2 * spent
    assert result.verification_queries <= entry.verification_rows


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [3, 6])
def test_rounded_answers_are_predicted_too(decimals: int) -> None:
    network = planted([10, 8, 1])

    def rounded(x: Array) -> Array:
        return np.round(network(x), decimals)

    made = unweave.plan(rounded, [8], "tanh", input_dim=10, precision="rounded")
    result = unweave.recover(rounded, hidden=[8], activation="tanh", input_dim=10, seed=1000)
    spent = result.queries - result.probing_queries - result.verification_queries
    assert made.first is not None
    assert made.first.method == "smooth_coarse"
    assert spent / 2 <= made.first.cost.rows <= 2 * spent


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("noise", ["float64", "float32", "rounded", "noisy"])
def test_every_method_has_a_cost_that_grows(method, noise) -> None:
    small, large = (
        method.cost(Question(inputs, 1, (width, width // 2), noise=noise))
        for inputs, width in ((5, 4), (40, 60))
    )
    for cost in (small, large):
        assert cost.rows > 0
        assert cost.seconds > 0
        assert cost.megabytes > 0
        assert cost.how
    assert large.rows > small.rows
    assert large.megabytes >= small.megabytes


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="precision must be one of"):
        unweave.plan(silent, input_dim=3, precision="float16")
    with pytest.raises(InvalidInput, match="hidden must hold"):
        unweave.plan(silent, [0], input_dim=3)
    with pytest.raises(InvalidInput, match="input_dim"):
        unweave.plan(lambda x: x)
