"""Planted networks come back: one table of networks, crossed with what the user says about them."""

from __future__ import annotations

import doctest
import importlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import unweave
from unweave import Network, Progress, Recovery, Status
from unweave.methods.relu.search import ReluOptions
from unweave.methods.smooth_values.search import SmoothValuesOptions
from unweave.methods.table import METHODS
from unweave.probing.look import look
from unweave.recovery.choose import choose, method_named
from unweave.recovery.sources import Place, QueriedTarget
from unweave.search import Request
from unweave.targets import as_queries

FLOOR = 1e-8
"""Largest parameter error of a recovered float64 network.

The final fit sees gradients with errors of about eps/h, h = 0.003 sqrt(D), so 1e-13 in the answers; its
condition number, some 1e2 to 1e4 for these networks, stands between answers and parameters.
"""
WELL_CONDITIONED = 1e-10
"""The same for unit weights and no more neurons than inputs: condition numbers stay below 1e3."""


@dataclass(frozen=True)
class Planted:
    """A network to recover, and the parameter error that theory allows."""

    layers: tuple[int, int, int]
    activation: str
    outer: str = "signed"
    norms: tuple[float, float] = (1.0, 1.0)
    skip: bool = False
    seed: int = 1000
    limit: float = field(default=FLOOR)

    def network(self) -> Network:
        base = unweave.random_network(
            self.layers, self.activation, seed=self.seed, outer=self.outer, norms=self.norms
        )
        if not self.skip:
            return base
        rng = np.random.default_rng(self.seed + 1)
        skip = rng.standard_normal((self.layers[0], self.layers[2]))
        return Network(base.weights, base.biases, base.activations, skip=skip)

    def __str__(self) -> str:
        size = "-".join(map(str, self.layers))
        return f"{self.activation} {size} {self.outer} {self.norms[1]:g}{' skip' if self.skip else ''}"


FEWER, EQUAL, MORE = (7, 4), (5, 5), (5, 9)  # inputs and neurons
ACTIVATIONS = ("tanh", "sigmoid", "erf", "softplus", "gelu", "swish", "sine")

TABLE = [
    Planted((shape[0], shape[1], outputs), activation, seed=1000 + 7 * i + 3 * j)
    for i, activation in enumerate(ACTIVATIONS)
    for j, (shape, outputs) in enumerate([(FEWER, 1), (EQUAL, 3), (MORE, 1), (MORE, 3)])
]
TABLE += [
    Planted((*FEWER, 1), "tanh", seed=1100, limit=WELL_CONDITIONED),
    Planted((*FEWER, 3), "tanh", seed=1101, limit=WELL_CONDITIONED),
    Planted((*EQUAL, 1), "tanh", seed=1102, limit=WELL_CONDITIONED),
    Planted((*FEWER, 1), "sine", outer="ones", seed=1103, limit=WELL_CONDITIONED),
    Planted((*MORE, 1), "tanh", outer="ones", seed=1104),
    Planted((*MORE, 1), "tanh", outer="normal", seed=1105),
    Planted((*MORE, 3), "softplus", outer="normal", seed=1106),
    Planted((*FEWER, 1), "gelu", outer="ones", seed=1107),
    Planted((*EQUAL, 1), "erf", outer="normal", seed=1108),
    Planted((*MORE, 1), "tanh", norms=(0.5, 2.0), seed=1110),
    Planted((*FEWER, 3), "sigmoid", norms=(0.5, 2.0), seed=1111),
    Planted((*EQUAL, 1), "softplus", norms=(0.5, 2.0), seed=1112),
    Planted((*MORE, 3), "sine", norms=(0.5, 2.0), seed=1113),
    Planted((*FEWER, 1), "tanh", skip=True, seed=1120),
    Planted((*MORE, 1), "tanh", skip=True, seed=1121),
    Planted((*EQUAL, 3), "sine", skip=True, seed=1122),
    Planted((*MORE, 3), "sigmoid", skip=True, seed=1123),
    Planted((*MORE, 1), "gelu", skip=True, norms=(0.5, 2.0), seed=1124),
    Planted((*FEWER, 3), "softplus", skip=True, outer="normal", seed=1125),
]

GIVEN = {"nothing": (), "activation": ("activation",), "width": ("hidden",), "both": ("hidden", "activation")}


def said(planted: Planted, what: str) -> dict[str, Any]:
    facts = {"hidden": [planted.layers[1]], "activation": planted.activation}
    return {name: facts[name] for name in GIVEN[what]}


def cases() -> list[Any]:
    """In turns, so that every activation and shape is met with everything and with nothing said."""
    turns = ("both", "nothing", "activation", "both", "width")
    rows = [(planted, turns[number % len(turns)]) for number, planted in enumerate(TABLE)]
    return [pytest.param(planted, what, id=f"{planted}, {what} given") for planted, what in rows]


@pytest.mark.parametrize(("planted", "what"), cases())
def test_planted_networks_come_back(planted: Planted, what: str, recorder: Any) -> None:
    network = planted.network()
    target = recorder(network)
    result = unweave.recover(target, input_dim=planted.layers[0], **said(planted, what))
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert result.network.hidden == (planted.layers[1],)
    assert unweave.compare(network, result.network).parameter_error <= planted.limit
    assert result.error <= 1e-10
    if planted.skip:
        assert result.network.skip is not None
    assert result.queries == len(target.rows)
    assert result.queries == sum(stage.queries for stage in result.stages)
    assert 0 < result.probing_queries < result.queries
    assert result.verification_queries >= 100
    if what == "both":
        assert result.notes == result.structure
    # The activation is the planted one; the logistic function comes as tanh unless it was given.
    expected = (
        "tanh" if planted.activation == "sigmoid" and "activation" not in GIVEN[what] else planted.activation
    )
    assert result.network.activations == (expected, "identity")


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_no_skip_is_returned_where_there_is_none(activation: str) -> None:
    network = unweave.random_network([5, 4, 1], activation, seed=1190, outer="signed")
    result = unweave.recover(network, hidden=[4], activation=activation)
    assert result.network is not None
    assert result.network.skip is None
    assert result.network.n_parameters == network.n_parameters


def assert_identical(first: Recovery, second: Recovery) -> None:
    assert (first.status, first.queries, first.error) == (second.status, second.queries, second.error)
    assert first.network is not None
    assert second.network is not None
    for one, other in zip(
        (*first.network.weights, *first.network.biases),
        (*second.network.weights, *second.network.biases),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


class OnlyAnswers:
    """A target with nothing but answers: what is not asked for cannot be known."""

    def __init__(self, network: Network) -> None:
        def answer(x: np.ndarray) -> np.ndarray:
            return network(x)

        self.__answer = answer

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.__answer(x)


@pytest.mark.parametrize("layers", [[6, 4, 1], [5, 9, 2]])
def test_parameters_of_a_network_given_as_target_are_never_read(layers: list[int]) -> None:
    network = unweave.random_network(layers, seed=1200, outer="signed")
    assert_identical(unweave.recover(network), unweave.recover(OnlyAnswers(network), input_dim=layers[0]))


class Watched(Network):
    """A network that does not let anyone look at its parameters while it is asked for answers."""

    watched = False

    def __getattribute__(self, name: str) -> Any:
        if name in ("weights", "biases", "skip") and Watched.watched and not Watched.answering:
            raise AssertionError(f"{name} was read")
        return super().__getattribute__(name)

    answering = False

    def __call__(self, x: np.ndarray) -> np.ndarray:
        Watched.answering = True
        try:
            return super().__call__(x)
        finally:
            Watched.answering = False


def test_a_network_that_is_watched_sees_nobody_look(monkeypatch: pytest.MonkeyPatch) -> None:
    base = unweave.random_network([6, 4, 1], seed=1201, outer="signed")
    network = Watched(base.weights, base.biases, base.activations)
    monkeypatch.setattr(Watched, "watched", True)
    with pytest.raises(AssertionError, match="weights was read"):
        _ = network.weights  # the watch works
    assert unweave.recover(network, activation="tanh").status is Status.RECOVERED


def test_a_flat_answer_is_one_output() -> None:
    network = unweave.random_network([6, 4, 1], seed=1202, outer="signed")
    flat = unweave.recover(lambda x: network(x)[:, 0], input_dim=6, activation="tanh")
    assert_identical(flat, unweave.recover(network, activation="tanh"))


def test_answers_may_be_lists_and_the_target_may_scribble_on_what_it_is_given() -> None:
    network = unweave.random_network([6, 4, 1], seed=1203, outer="signed")

    def target(x: np.ndarray) -> list[list[float]]:
        answers = network(x).tolist()
        x[:] = np.nan
        return answers

    result = unweave.recover(target, input_dim=6, activation="tanh")
    assert_identical(result, unweave.recover(network, activation="tanh"))


def test_a_tolerance_counts_as_recovered_what_is_good_enough() -> None:
    network = unweave.random_network([6, 4, 1], seed=1204, outer="signed")

    def target(x: np.ndarray) -> np.ndarray:
        return np.asarray(
            network(x) + 1e-7 * np.sin(50 * x[:, :1])
        )  # a ripple that is no part of the network

    strict = unweave.recover(target, activation="tanh", input_dim=6)
    loose = unweave.recover(target, activation="tanh", input_dim=6, tolerance=1e-2)
    assert strict.status is Status.APPROXIMATE
    assert strict.network is not None
    assert loose.status in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)
    assert loose.error == strict.error < 1e-2


def test_progress_is_told_in_order() -> None:
    told: list[Progress] = []
    result = unweave.recover(
        unweave.random_network([5, 9, 1], seed=1205, outer="signed"), activation="tanh", progress=told.append
    )
    names = list(dict.fromkeys(sign.stage for sign in told))
    assert names == [stage.name for stage in result.stages]
    assert [sign.queries for sign in told] == sorted(sign.queries for sign in told)
    assert [sign.seconds for sign in told] == sorted(sign.seconds for sign in told)
    assert all(sign.total is None or sign.done <= sign.total for sign in told)


def test_queries_per_parameter_leave_out_probing_and_verification() -> None:
    result = unweave.recover(unweave.random_network([6, 4, 1], seed=1206, outer="signed"), activation="tanh")
    assert result.network is not None
    spent = result.queries - result.probing_queries - result.verification_queries
    assert result.queries_per_parameter == spent / result.network.n_parameters
    by_stage = {stage.name: stage.queries for stage in result.stages}
    assert by_stage["look"] == result.probing_queries
    assert by_stage["verification"] == result.verification_queries


def test_naming_the_method_changes_nothing_when_it_is_the_one_chosen() -> None:
    network = unweave.random_network([6, 4, 1], seed=1207, outer="signed")
    named = unweave.recover(network, activation="tanh", method="smooth")
    assert_identical(named, unweave.recover(network, activation="tanh"))


OLD_NAMES = {
    "shallow": "smooth",
    "coarse": "smooth_coarse",
    "values": "smooth_values",
    "deep": "smooth_deep",
    "lines": "relu",
    "kinks": "relu_coarse",
    "surfaces": "relu_deep",
}


@pytest.mark.parametrize("old", OLD_NAMES)
def test_old_names_of_methods_still_work(old: str) -> None:
    assert method_named(old).name == OLD_NAMES[old]


def test_an_old_name_recovers_the_same_as_the_new_one() -> None:
    network = unweave.random_network([6, 4, 1], "relu", seed=1208, outer="signed")
    assert_identical(unweave.recover(network, method="lines"), unweave.recover(network, method="relu"))


def test_options_are_those_of_the_method_that_runs() -> None:
    network = unweave.random_network([6, 4, 1], "relu", seed=1209, outer="signed")
    for given in (ReluOptions(reach=1e4), [SmoothValuesOptions(work=1.0), ReluOptions(reach=1e4)]):
        result = unweave.recover(network, method="relu", options=given)
        assert result.status is Status.RECOVERED
        assert any("1e+04" in note for note in result.notes)
    others = unweave.recover(network, method="relu", options=SmoothValuesOptions(work=1.0))
    assert any("1e+05" in note for note in others.notes)  # the default


@pytest.mark.parametrize("wrong", [3.0, {"reach": 1e4}, [ReluOptions(), "fast"], ReluOptions])
def test_options_of_no_method_are_refused(wrong: Any) -> None:
    network = unweave.random_network([6, 4, 1], seed=1210)
    with pytest.raises(unweave.InvalidInput, match=r"options must be those of a method \(.*ReluOptions.*\)"):
        unweave.recover(network, options=wrong)


def test_names_of_methods_and_aliases_are_unambiguous() -> None:
    names = [name for method in METHODS for name in (method.name, *method.aliases)]
    assert len(set(names)) == len(names)
    assert all(method_named(name) in METHODS for name in names)


def test_the_table_of_methods_has_different_names_and_says_what_each_does() -> None:
    names = [method.name for method in METHODS]
    assert len(set(names)) == len(names)
    assert all(method.description for method in METHODS)


def test_every_method_is_either_tried_or_refused_with_a_reason() -> None:
    queries = unweave.Queries(unweave.random_network([4, 3, 1], seed=1208), 4)
    findings = look(queries, rng=np.random.default_rng(0))
    for request in (Request(), Request(()), Request((3,), "tanh"), Request((3, 2), "relu")):
        tried, reasons = choose(request, findings)
        by_default = {m.name for m in METHODS if m.asks == "queries" and not m.by_name_only}
        assert {method.name for method in tried} | set(reasons) == by_default
        assert all(reasons.values())


def test_the_example_in_the_docstring_runs() -> None:
    module = importlib.import_module("unweave.recovery.recover")
    example = doctest.DocTestFinder(recurse=False).find(module.recover, "recover", module=module)[0]
    outcome = doctest.DocTestRunner().run(example)
    assert outcome.attempted >= 4
    assert outcome.failed == 0


def test_a_region_that_had_to_be_searched_for_is_looked_at_again_wider() -> None:
    network = Planted((6, 4, 1), "tanh", seed=1001).network()

    def places(target: Any, seed: int, domain: Any = None) -> list[Place]:
        source, rng = QueriedTarget(as_queries(target, 6), domain, None), np.random.default_rng(seed)
        found = source.look(Request((4,)), rng)
        assert found.searched == (domain is None)
        result = source.places(Request((4,)), found, [method_named("smooth")], rng)
        assert result[0].findings is found
        return result

    first, second = places(lambda x: network((x - 400.0) / 1e3), 1002)
    assert (second.findings.region.scale > first.findings.region.scale).all()
    assert (second.findings.region.location == first.findings.region.location).all()
    assert second.view.region is second.findings.region
    assert len(places(network, 1003, (-2.0, 2.0))) == 1


@pytest.mark.parametrize("seed", [1000, 1001])
def test_a_slice_may_be_the_whole_space(seed: int) -> None:
    # Ten inputs and 32 units: the cheapest slice has all ten dimensions, and nothing lies beside it.
    network = unweave.random_network([10, 32, 1], activation="tanh", seed=seed, outer="normal")
    result = unweave.recover(network)
    assert result.status is Status.RECOVERED, result.message
    assert unweave.compare(network, result.network).parameter_error < 1e-9


def test_steps_at_one_digit_are_bisected_to_an_end() -> None:
    # Two steps: the midpoint of a bracket stops moving long before the bracket is short enough.
    def steps(x: np.ndarray) -> np.ndarray:
        return (x[:, 0] > 0.3) * 1.0 + (x[:, 1] > -0.5) * 0.5

    result = unweave.recover(steps, input_dim=4, max_queries=100_000)
    assert type(result.network).__name__ == "TreeEnsemble"
    x = np.random.default_rng(1000).standard_normal((2000, 4))
    assert np.array_equal(result.network(x)[:, 0], steps(x))


def test_a_method_is_a_name_or_a_row() -> None:
    with pytest.raises(unweave.InvalidInput, match="method must be one of affine"):
        unweave.recover(unweave.random_network([3, 2, 1], seed=1000), method=3)  # type: ignore[arg-type]
