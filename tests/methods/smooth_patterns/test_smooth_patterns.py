from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.neural_network import MLPRegressor

import unweave
from unweave.methods.shared.far_field import Crossing, Unit
from unweave.methods.smooth_patterns.directions import CIRCLES, DirectionSearch, Hyperplanes
from unweave.methods.smooth_patterns.far_normals import NormalOptions, far_normals
from unweave.methods.smooth_patterns.first_layer import ProfileOptions, first_layer
from unweave.methods.smooth_patterns.layers_behind import BehindOptions, BehindSearch
from unweave.methods.smooth_patterns.search import SmoothPatternsOptions
from unweave.methods.smooth_patterns.sign_patterns import PatternOptions, SignPatterns
from unweave.methods.smooth_patterns.split_cells import CellOptions, split_cells
from unweave.methods.smooth_patterns.unit_kind import unit_kind
from unweave.networks.activations import get_activation
from unweave.networks.links import Link
from unweave.networks.parameters import NetworkParameters
from unweave.recovery.result import Status

Array = np.ndarray


def planted(
    layers: list[int], activation: str = "tanh", seed: int = 1000, output: str = "identity"
) -> unweave.Network:
    norms = (2.0, 4.0) if activation == "sigmoid" else (0.7, 1.5)  # less, and its units are straight
    net = unweave.random_network(layers, activation, seed=seed, outer="normal", norms=norms)
    return unweave.Network(net.weights, net.biases, (*net.activations[:-1], output))


def recovered(network: unweave.Network, **more: object) -> unweave.Recovery:
    result = unweave.recover(network, **more)
    assert result.status is Status.RECOVERED, result.message
    assert unweave.compare(network, result.network).parameter_error < 1e-9
    assert "layer 1 norms and biases" in [stage.name for stage in result.stages]
    return result


def planes_of(network: unweave.Network) -> Hyperplanes:
    """The hyperplanes as they are."""
    norms = np.linalg.norm(network.weights[0], axis=0)
    return Hyperplanes((network.weights[0] / norms).T, -network.biases[0] / norms, 2 / norms)


def behind(network: unweave.Network) -> NetworkParameters:
    return NetworkParameters.from_network(
        unweave.Network(network.weights[1:], network.biases[1:], network.activations[1:])
    )


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "erf"])
def test_layers_wider_than_what_they_read(activation: str) -> None:
    network = planted([5, 7, 9, 2], activation)
    result = recovered(network)
    assert result.network.hidden == (7, 9)
    assert result.queries < 30 * network.n_parameters


@pytest.mark.parametrize("output", ["tanh", "sigmoid", "softmax"])
def test_output_activations_are_found(output: str) -> None:
    network = planted([5, 7, 6, 3], seed=1001, output=output)
    assert recovered(network).network.activations[-1] == output


def test_logistic_units_are_told_as_such_if_asked_for() -> None:
    network = planted([5, 6, 5, 1], "sigmoid", seed=1002)
    result = recovered(network, hidden=[6, 5], activation="sigmoid")
    assert result.network.activations[0] == "sigmoid"


def test_a_weak_unit_is_found() -> None:
    network = planted([5, 8, 6, 1], seed=1003)
    outgoing = np.array(network.weights[2])
    outgoing[2] = 1e-3
    weak = unweave.Network([*network.weights[:2], outgoing], network.biases, network.activations)
    assert recovered(weak).network.hidden == (8, 6)


def test_a_pyramid_costs_less_than_layer_by_layer() -> None:
    network = planted([8, 6, 4, 1], seed=1004)
    by_signs = recovered(network, method="smooth_patterns")
    layer_by_layer = unweave.recover(network, method="smooth_deep")
    assert by_signs.queries < layer_by_layer.queries


def product(x: Array) -> Array:
    """Levels off far out, and is no network of two layers: units multiply."""
    return np.tanh(x[:, :1] + x[:, 1:2]) * np.tanh(x[:, 2:3] - 0.3) * np.tanh(x @ np.ones((4, 1)) + 0.1)


def test_what_is_no_such_network_is_not_recovered() -> None:
    result = unweave.recover(product, input_dim=4, method="smooth_patterns", deadline=60)
    assert not result.status.is_recovered


def test_three_hidden_layers_of_equal_widths() -> None:
    network = planted([6, 8, 8, 8, 3], seed=1005)
    result = recovered(network)
    assert result.network.hidden == (8, 8, 8)
    assert result.queries < 20 * network.n_parameters


def test_three_hidden_layers_wider_than_the_inputs_and_told() -> None:
    network = planted([5, 7, 6, 9, 2], seed=1016)
    assert recovered(network, hidden=[7, 6, 9]).network.hidden == (7, 6, 9)


@pytest.mark.parametrize(("first", "second"), [("tanh", "erf"), ("erf", "tanh"), ("tanh", "sine")])
def test_each_layer_may_have_its_own_activation(first: str, second: str) -> None:
    network = planted([5, 6, 5, 2], seed=1017)
    mixed = unweave.Network(network.weights, network.biases, (first, second, "identity"))
    assert recovered(mixed).network.activations == (first, second, "identity")


def test_several_layers_that_are_too_large_are_refused_at_once() -> None:
    network = planted([6, 8, 8, 8, 1], seed=1018)
    options = SmoothPatternsOptions(most_parameters=50)
    result = unweave.recover(network, hidden=[8, 8, 8], method="smooth_patterns", options=options)
    assert result.status is Status.FAILED
    assert "so many units" in result.message


@pytest.mark.filterwarnings("ignore")  # training may end early
def test_trained_logistic_layers_take_longer_starts() -> None:
    """Their units are nearly straight: least squares goes through long valleys."""
    x, y = load_diabetes(return_X_y=True)
    model = MLPRegressor(
        hidden_layer_sizes=(16, 16), activation="logistic", alpha=1e-3, max_iter=400, random_state=1001
    )
    model.fit((x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std())
    truth = unweave.Network(model.coefs_, model.intercepts_, ("sigmoid", "sigmoid", "identity"))
    result = unweave.recover(model.predict, input_dim=10, method="smooth_patterns", seed=1_001_004)
    assert result.status is Status.RECOVERED, result.message
    assert unweave.compare(truth, result.network).parameter_error < 1e-9


@pytest.mark.parametrize("budget", [450, 800, 1100, 1400])
def test_a_budget_ends_it_with_a_message(budget: int) -> None:
    result = unweave.recover(planted([5, 8, 6, 1], seed=1006), method="smooth_patterns", max_queries=budget)
    assert result.queries <= budget
    assert not result.status.is_recovered
    assert result.message


def test_a_deadline_ends_it() -> None:
    network = planted([8, 40, 40, 1], seed=1007)
    result = unweave.recover(network, method="smooth_patterns", deadline=2)
    assert not result.status.is_recovered
    assert result.seconds < 6


def test_a_domain_is_refused() -> None:
    result = unweave.recover(planted([5, 6, 4, 1]), method="smooth_patterns", domain=(-2, 2))
    assert result.status is Status.FAILED
    assert "domain" in result.message


def test_circles_end_when_no_unit_can_be_missing() -> None:
    network = planted([6, 14, 8, 1], seed=1008)
    search = DirectionSearch(network, 6, np.random.default_rng(1000), CIRCLES)
    search.run(None)
    planes = Hyperplanes.of(search.units)
    cosines = np.abs(planes.directions @ planes_of(network).directions.T)
    assert planes.count == 14
    assert sorted(cosines.argmax(axis=1)) == list(range(14))
    assert np.abs(cosines.max(axis=1) - 1).max() < 1e-10


def test_a_unit_that_no_circle_showed_is_found_when_the_rest_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = DirectionSearch.run

    def blind(search: DirectionSearch, told: int | None) -> None:
        run(search, told)
        search.units.pop()

    monkeypatch.setattr(DirectionSearch, "run", blind)
    recovered(planted([6, 10, 8, 1]))


def test_the_same_where_answers_are_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    correct = DirectionSearch.correct
    seen = []

    def blind(search: DirectionSearch, options: NormalOptions) -> None:
        correct(search, options)
        seen.append(len(search.units))
        if len(seen) == 1:
            search.units.pop()

    monkeypatch.setattr(DirectionSearch, "correct", blind)
    network = in_single(planted([5, 7, 5, 1], seed=1001))
    result = unweave.recover(network, input_dim=5)
    assert seen == [7, 7]
    assert result.status is Status.RECOVERED, result.message


@pytest.mark.parametrize(("layers", "most"), [([20, 15, 10, 2], 25), ([4, 20, 10, 2], 200)])
def test_a_unit_that_is_not_known_splits_cells(layers: list[int], most: int) -> None:
    network, rows = planted(layers, seed=1000), []

    def ask(x: Array) -> Array:
        rows.append(len(x))
        return network(x)

    def split(planes: Hyperplanes) -> tuple[Array, Array]:
        rng = np.random.default_rng(1000)
        patterns = SignPatterns(network, planes, 2, rng, PatternOptions())
        patterns.extend(60)
        asked = patterns.points, patterns.answers
        return split_cells(ask, planes, *asked, 1e-7, rng, PatternOptions(), CellOptions())

    every = planes_of(network)
    assert len(split(every)[0]) == 0
    assert rows[0] < most
    known = np.arange(every.count) != 3
    fewer = Hyperplanes(every.directions[known], every.positions[known], every.widths[known])
    first, second = split(fewer)
    assert len(first) > 0
    np.testing.assert_array_equal(fewer.signs(first, 1.0)[0], fewer.signs(second, 1.0)[0])
    assert (every.signs(first, 1.0)[0][:, 3] != every.signs(second, 1.0)[0][:, 3]).all()
    search = DirectionSearch(network, layers[0], np.random.default_rng(1000), CIRCLES)
    assert search.again((first[0], second[0]))
    cosines = [abs(unit.direction @ every.directions[3]) for unit in search.units]
    assert max(cosines) > 1 - 1e-10


def test_patterns_are_distinct_and_exact() -> None:
    network = planted([5, 8, 6, 2], seed=1009)
    planes = planes_of(network)
    patterns = SignPatterns(network, planes, 2, np.random.default_rng(1000), PatternOptions())
    signs, values = patterns.rows(Link("identity"), 150)
    assert len(np.unique(signs, axis=0)) == len(signs) == 150
    np.testing.assert_allclose(values, behind(network).values(signs), rtol=0, atol=1e-13)


def test_few_patterns_end_the_draws() -> None:
    network = planted([2, 3, 2, 1], seed=1010)
    patterns = SignPatterns(network, planes_of(network), 1, np.random.default_rng(1000), PatternOptions())
    signs, _ = patterns.rows(Link("identity"), 100)
    assert 0 < len(signs) <= 6  # three lines through the origin


def test_the_second_layers_width_is_found() -> None:
    network = planted([1, 9, 6, 1], seed=1011)
    signs = np.sign(np.random.default_rng(1000).standard_normal((300, 9)))
    values = behind(network).values(signs)

    def rows(count: int) -> tuple[Array, Array]:
        return signs[:count], values[:count]

    rng = np.random.default_rng(1001)
    search = BehindSearch(rows, "tanh", (9, 9, 1), 1e-16, rng, BehindOptions(), None)
    found = search.advance()
    while search.goes_on:
        found = search.advance()
    assert found.model is not None
    assert found.units == (6,)
    assert unweave.compare(behind(network).to_network(), found.model.to_network()).parameter_error < 1e-9


def test_on_too_few_rows_nothing_is_exact() -> None:
    rng = np.random.default_rng(1000)
    signs, values = np.sign(rng.standard_normal((40, 6))), rng.standard_normal((40, 1))
    options = BehindOptions(starts=(2, 2))
    search = BehindSearch(
        lambda count: (signs[:count], values[:count]), "tanh", (6, 6, 1), 1e-16, rng, options, None
    )
    while search.goes_on:
        assert search.advance().model is None


def test_norms_and_biases_with_widths_that_are_off() -> None:
    network = planted([5, 7, 5, 1], seed=1012)
    planes = planes_of(network)
    units = np.arange(7, dtype=np.int64)
    off = planes.moved(units, planes.positions + 0.2, planes.widths * np.array([0.5, 1, 2, 20, 1, 1, 50]))
    rng = np.random.default_rng(1000)
    found = first_layer(
        network, off, get_activation("tanh"), behind(network), Link("identity"), rng, ProfileOptions()
    )
    assert found.misfits.max() < 1e-8
    np.testing.assert_allclose(found.weights, network.weights[0], atol=1e-7)
    np.testing.assert_allclose(found.biases, network.biases[0], atol=1e-6)


@pytest.mark.parametrize(("activation", "kind"), [("tanh", "tanh"), ("sigmoid", "tanh"), ("erf", "erf")])
def test_steps_tell_the_activation(activation: str, kind: str) -> None:
    network = planted([5, 7, 5, 1], activation, seed=1013)
    assert unit_kind(network, planes_of(network), 1e-16, np.random.default_rng(1000)).name == kind
    rounded = in_single(network)
    assert unit_kind(rounded, planes_of(network), 1e-7, np.random.default_rng(1000)).name == kind


def in_single(network: unweave.Network) -> Callable[[Array], Array]:
    """The network as float32 computes it."""
    single = [[part.astype(np.float32) for part in parts] for parts in (network.weights, network.biases)]
    functions = [get_activation(name) for name in network.activations]

    def answer(x: Array) -> Array:
        state = np.asarray(x, dtype=np.float32)
        for weight, bias, function in zip(*single, functions, strict=True):
            state = np.asarray(function(state @ weight + bias), dtype=np.float32)
        return state.astype(np.float64)

    return answer


def test_answers_in_float32() -> None:
    network = planted([5, 8, 6, 1], seed=1014)
    result = unweave.recover(in_single(network), input_dim=5)
    assert result.status is Status.RECOVERED, result.message
    assert result.network.hidden == (8, 6)
    assert unweave.compare(network, result.network).parameter_error < 1e-4


def test_far_normals_drop_what_is_no_unit() -> None:
    network = planted([4, 6, 5, 1], seed=1015)
    true = planes_of(network).directions
    rng = np.random.default_rng(1000)
    rough = true + 1e-3 * rng.standard_normal(true.shape)
    directions = [*(rough / np.linalg.norm(rough, axis=1)[:, None]), np.array([0.5, 0.5, -0.5, 0.5])]
    units = [Unit(direction, 2.0, [Crossing(np.zeros(4), 1.0)]) for direction in directions]
    found, complete = far_normals(in_single(network), units, rng, NormalOptions(most=15))
    assert complete
    assert len(found) == 6
    cosines = np.abs(np.array([unit.direction for unit in found]) @ true.T).max(axis=1)
    assert np.abs(cosines - 1).max() < 1e-7
    fewer, complete = far_normals(in_single(network), units[1:6], rng, NormalOptions(most=15))
    assert len(fewer) == 5
    assert not complete
