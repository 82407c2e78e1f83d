"""The judge: wrong weights reported as recovered would be the worst error of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import unweave
from searches import judged, looked, searched
from unweave import Network, Status
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.probing.findings import Findings
from unweave.recovery.fresh_rows import FEWEST_ROWS, ROWS_PER_PARAMETER, fresh_rows
from unweave.recovery.judge import UNDETERMINED
from unweave.search import Candidate, Evidence
from unweave.targets import NormalisedQueries, Region


@dataclass(frozen=True)
class Planted:
    """A network and the circumstances in which it is asked."""

    network: Network
    domain: tuple[float, float] | None = None


def scaled(network: Network, scale: list[float]) -> Network:
    weights, biases = list(network.weights), list(network.biases)
    weights[-1], biases[-1] = weights[-1] * scale, biases[-1] * scale
    return Network(weights, biases, network.activations, skip=network.skip)


def with_skip(network: Network, seed: int) -> Network:
    skip = np.random.default_rng(seed).standard_normal((network.n_inputs, network.n_outputs))
    return Network(network.weights, network.biases, network.activations, skip=skip)


def planted(layers: list[int], activation: str, seed: int, **how: Any) -> Network:
    return unweave.random_network(layers, activation, seed=seed, outer="signed", **how)


PLANTED = {
    "tanh": Planted(planted([6, 4, 1], "tanh", 1000)),
    "more neurons than inputs": Planted(planted([4, 6, 3], "sigmoid", 1001)),
    "norms of all sizes": Planted(planted([6, 10, 1], "tanh", 1002, norms=(0.3, 3))),
    "in a box": Planted(planted([6, 10, 1], "softplus", 1003), domain=(-1.0, 1.0)),
    "with skip": Planted(with_skip(planted([5, 4, 2], "gelu", 1004), 1005)),
    "sine": Planted(planted([5, 5, 1], "sine", 1006)),
    "huge and tiny outputs": Planted(scaled(planted([5, 4, 3], "erf", 1007), [1.0, 1e-6, 1e6])),
}
EACH = pytest.mark.parametrize("name", list(PLANTED))


@dataclass(frozen=True)
class Trial:
    """A recovery that ran up to the judge, and the means to put another network into its place."""

    network: Network
    candidate: Candidate
    view: NormalisedQueries
    findings: Findings

    def verdict(
        self, network: Network | None, seed: int = 1, **changes: Any
    ) -> unweave.recovery.judge.Verdict:
        candidate = replace(self.candidate, network=network, **changes)
        return judged(candidate, self.view, self.findings, seed=seed)


@cache
def trial(name: str) -> Trial:
    case = PLANTED[name]
    done = searched("smooth", case.network, seed=1010, domain=case.domain)
    return Trial(case.network, done.candidate, done.view, done.findings)


def perturbed(network: Network, size: float) -> Iterator[Network]:
    """One parameter after the other, moved by ``size`` times the largest of its layer and output."""
    parts = [*network.weights, *network.biases] + ([] if network.skip is None else [network.skip])
    outer = {1, 3, 4}  # positions of what scales with the outputs, in a network with one hidden layer
    for position, part in enumerate(parts):
        scale = np.abs(network.weights[1]).max(axis=0) if position in outer else np.ones(part.shape[-1])
        for index in np.ndindex(part.shape):
            new = [other.copy() for other in parts]
            new[position][index] += size * scale[index[-1]]
            yield Network(new[:2], new[2:4], network.activations, skip=new[4] if len(new) > 4 else None)


def without(network: Network, neuron: int) -> Network:
    keep = np.arange(network.hidden[0]) != neuron
    return Network(
        [network.weights[0][:, keep], network.weights[1][keep]],
        [network.biases[0][keep], network.biases[1]],
        network.activations,
        skip=network.skip,
    )


@EACH
def test_the_true_network_is_recovered(name: str) -> None:
    t = trial(name)
    verdict = t.verdict(t.network)
    assert verdict.status is Status.RECOVERED
    assert verdict.trial.error <= verdict.trial.threshold


@EACH
def test_what_the_method_found_is_recovered(name: str) -> None:
    t = trial(name)
    assert t.verdict(t.candidate.network).status is Status.RECOVERED


@EACH
@pytest.mark.parametrize("size", [1e-6, -1e-6, 1e-8])
def test_no_parameter_may_be_off_by_a_millionth(name: str, size: float) -> None:
    # float64 answers leave 1e-11 in the worst case: a thousand times the floor of about 1e-14.
    t = trial(name)
    passed = [
        number
        for number, wrong in enumerate(perturbed(t.network, size))
        if t.verdict(wrong, seed=number).status is not Status.APPROXIMATE
    ]
    assert passed == []


@EACH
def test_no_neuron_may_be_missing(name: str) -> None:
    t = trial(name)
    for neuron in range(t.network.hidden[0]):
        verdict = t.verdict(without(t.network, neuron), seed=neuron)
        assert verdict.status in (Status.APPROXIMATE, Status.FAILED)


@EACH
def test_no_bias_may_be_moved(name: str) -> None:
    t = trial(name)
    for neuron in range(t.network.hidden[0]):
        biases = [part.copy() for part in t.network.biases]
        biases[0][neuron] += 0.1
        wrong = Network(t.network.weights, biases, t.network.activations, skip=t.network.skip)
        assert t.verdict(wrong, seed=neuron).status in (Status.APPROXIMATE, Status.FAILED)


def test_a_neuron_too_many_is_seen() -> None:
    t = trial("tanh")
    weights = [np.c_[t.network.weights[0], np.ones(6)], np.r_[t.network.weights[1], [[1e-6]]]]
    biases = [np.r_[t.network.biases[0], 0.0], t.network.biases[1]]
    verdict = t.verdict(Network(weights, biases, t.network.activations))
    assert verdict.status is Status.APPROXIMATE


def test_another_activation_is_seen() -> None:
    t = trial("tanh")
    wrong = Network(t.network.weights, t.network.biases, ["erf", "identity"])
    assert t.verdict(wrong).status in (Status.APPROXIMATE, Status.FAILED)


def test_the_reason_names_error_and_threshold() -> None:
    t = trial("tanh")
    verdict = t.verdict(next(perturbed(t.network, 1e-6)), problem="the search ended early")
    assert verdict.status is Status.APPROXIMATE
    assert verdict.reason.startswith("the search ended early; the error on fresh rows is")
    assert f"{verdict.trial.error:.2g}" in verdict.reason
    assert f"{verdict.trial.threshold:.2g}" in verdict.reason


def sharp_neurons(layers: list[int], seed: int) -> Network:
    """More neurons than rows at which the judge asks, each of which acts on a thin slice of the box."""
    return planted(layers, "tanh", seed, norms=(300, 300))


def test_neurons_that_act_on_a_thin_slice_of_the_box_are_all_looked_at() -> None:
    network = sharp_neurons([5, 60, 1], 1020)
    at = looked(network, seed=1021, domain=(-2.0, 2.0))
    passed = []
    for neuron in range(60):
        biases = [part.copy() for part in network.biases]
        biases[0][neuron] += 1e-6
        wrong = Candidate(
            Network(network.weights, biases, network.activations), Evidence(prediction_floor=1e-13)
        )
        verdict = at.verdict(wrong, seed=neuron)
        if verdict.status is Status.RECOVERED:
            passed.append(neuron)
    assert passed == []


def test_a_neuron_that_wakes_in_a_corner_of_the_box_is_seen() -> None:
    # Nearly everywhere in the box the first neuron is constant; in one corner it moves by 1e-9, millions of
    # times the rounding of the answers.
    network = unweave.random_network([4, 6, 2], "erf", seed=1166, outer="normal", norms=(0.5, 2))
    domain = (-7.675, -6.372)
    at = looked(network, seed=1028, domain=domain)
    x = np.random.default_rng(1029).uniform(*domain, (20_000, 4))
    asleep = without(network, 0)
    settled = np.median(network(x) - asleep(x), axis=0)
    asleep = Network(asleep.weights, [asleep.biases[0], asleep.biases[1] + settled], asleep.activations)
    assert 1e-9 < np.abs(network(x) - asleep(x)).max() < 1e-8
    wrong = Candidate(asleep, Evidence(prediction_floor=1e-14))
    verdicts = [at.verdict(wrong, seed=seed) for seed in range(20)]
    assert [verdict.status for verdict in verdicts].count(Status.RECOVERED) == 0


def test_a_large_constant_in_the_answers_hides_no_missing_neuron() -> None:
    # What counts is the error against the spread of the answers: adding a constant to them changes nothing.
    network = planted([6, 4, 1], "tanh", 1000)
    noise = np.random.default_rng(1022)
    high = Network(network.weights, [network.biases[0], network.biases[1] + 1e3], network.activations)
    at = looked(lambda x: high(x) + 0.05 * noise.standard_normal((len(x), 1)), input_dim=6, seed=1023)
    for neuron in range(4):
        wrong = Candidate(without(high, neuron), Evidence(prediction_floor=at.findings.noise.relative))
        verdict = at.verdict(wrong, seed=neuron)
        assert verdict.status not in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)


# -- tolerance -----------------------------------------------------------------------------------------


def test_a_tolerance_replaces_the_threshold() -> None:
    t = trial("tanh")
    wrong = replace(t.candidate, network=next(perturbed(t.network, 1e-6)))
    verdicts = [judged(wrong, t.view, t.findings, tolerance) for tolerance in (1e-4, 1e-9)]
    assert [verdict.status for verdict in verdicts] == [Status.RECOVERED, Status.APPROXIMATE]
    assert [verdict.trial.threshold for verdict in verdicts] == [1e-4, 1e-9]


def test_no_tolerance_excuses_an_error_as_large_as_the_answers() -> None:
    t = trial("tanh")
    wrong = replace(t.candidate, network=without(t.network, 0))
    verdict = judged(wrong, t.view, t.findings, 10.0)
    assert verdict.status not in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)


def test_a_tolerance_holds_for_every_output() -> None:
    # A tolerance is relative: the output of size 1e-6 must not hide behind the one of size 1e6.
    t = trial("huge and tiny outputs")
    weights = [part.copy() for part in t.network.weights]
    weights[1][:, 1] = 0.0
    wrong = replace(t.candidate, network=Network(weights, t.network.biases, t.network.activations))
    verdict = judged(wrong, t.view, t.findings, 1e-3)
    assert verdict.status not in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)


# -- ambiguity -----------------------------------------------------------------------------------------


def test_a_stated_ambiguity_is_passed_on() -> None:
    t = trial("tanh")
    verdict = t.verdict(t.network, ambiguity="only W W^T is determined")
    assert verdict.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert verdict.reason == "only W W^T is determined"


def test_an_ambiguity_does_not_excuse_a_wrong_function() -> None:
    t = trial("tanh")
    verdict = t.verdict(next(perturbed(t.network, 1e-6)), ambiguity="only W W^T is determined")
    assert verdict.status is Status.APPROXIMATE


@pytest.mark.parametrize("evidence", [{"parameter_error_bar": 2 * UNDETERMINED}, {"condition": np.inf}])
def test_parameters_that_the_answers_leave_open_are_an_ambiguity(evidence: dict[str, float]) -> None:
    t = trial("tanh")
    verdict = t.verdict(t.network, evidence=replace(t.candidate.evidence, **evidence))
    assert verdict.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "undetermined" in verdict.reason


# -- rows ----------------------------------------------------------------------------------------------


def test_no_network_fails_without_a_row() -> None:
    t = trial("tanh")
    sent = t.view.sent
    verdict = t.verdict(None, problem="nothing was found")
    assert (verdict.status, verdict.trial.rows, verdict.reason) == (Status.FAILED, 0, "nothing was found")
    assert t.view.sent == sent


@EACH
def test_every_row_is_fresh(name: str) -> None:
    t = trial(name)
    rows = fresh_rows(t.network, t.findings, np.random.default_rng(99_991))[0]
    assert len(rows) == max(FEWEST_ROWS, ROWS_PER_PARAMETER * t.network.n_parameters)
    sent = t.view.sent
    t.view(rows)
    assert t.view.sent - sent == len(rows)


def test_rows_lie_in_the_box_and_at_the_neurons() -> None:
    t = trial("in a box")
    points = fresh_rows(t.network, t.findings, np.random.default_rng(1024))[0]
    x = t.findings.region.to_inputs(points)
    assert ((x >= -1.0) & (x <= 1.0)).all()
    assert len(np.unique(points, axis=0)) == len(points)


def test_half_of_the_rows_are_at_neurons_each_of_which_has_its_turn() -> None:
    # Sharp neurons: rows within two units of a kink of width 1/40 are there on purpose.
    network = planted([6, 10, 1], "tanh", 1025, norms=(40, 40))
    t = trial("tanh")
    points = fresh_rows(network, t.findings, np.random.default_rng(1026))[0]
    near = np.abs(points[: len(points) // 2] @ network.weights[0] + network.biases[0]) <= 2.0 + 1e-9
    assert near.any(axis=1).mean() > 0.9
    assert near.any(axis=0).all()


@pytest.mark.parametrize(
    ("activation", "searched", "share"), [("relu", True, 0.25), ("relu", False, 0), ("tanh", True, 0)]
)
def test_kinked_units_of_a_region_that_was_found_are_also_judged_by_ordinary_inputs(
    activation: str, searched: bool, share: float
) -> None:
    far = Region(np.full(6, 40.0), np.full(6, 5.0))
    findings = replace(trial("tanh").findings, region=far, searched=searched)
    network = planted([6, 10, 1], activation, 1028)
    moved = Network(
        network.weights,
        [network.biases[0] - far.location @ network.weights[0], network.biases[1]],
        network.activations,
    )
    x = far.to_inputs(fresh_rows(moved, findings, np.random.default_rng(1029))[0])
    assert (np.abs(x).max(axis=1) < 6).mean() == share


def test_rows_for_a_network_without_hidden_layer_are_those_of_the_region() -> None:
    t = trial("tanh")
    affine = Network([np.ones((6, 1))], [np.zeros(1)], ["identity"])
    expected = t.findings.region.sample(FEWEST_ROWS, np.random.default_rng(1027))
    np.testing.assert_array_equal(fresh_rows(affine, t.findings, np.random.default_rng(1027))[0], expected)


@pytest.mark.parametrize(
    ("misfit", "flips", "status"),
    [(1.1, 0, Status.RECOVERED), (1.5, 0, Status.APPROXIMATE), (1.5, 100, Status.RECOVERED)],
)
def test_a_fit_that_leaves_more_than_noise_is_not_recovered(
    misfit: float, flips: int, status: Status
) -> None:
    """Fresh rows are few and agree; those of the fit are many. Exact equations of flips overrule both."""
    network = PLANTED["tanh"].network
    at = looked(lambda x: np.round(network(x), 2), input_dim=6, seed=1011)
    evidence = CoarseEvidence(misfit=misfit, acceptable_misfit=1.2, weakest_unit=100.0, flips=flips)
    verdict = at.verdict(Candidate(network, evidence))
    assert verdict.status is status
    assert ("where noise leaves 1.2 at most" in verdict.reason) == (status is Status.APPROXIMATE)


def test_answers_that_were_paid_for_can_contradict() -> None:
    # Missing values are filled in: fresh rows hardly ever meet one, lines that were asked before do.
    net = unweave.random_network([4, 3, 1], seed=1, outer="normal")
    result = unweave.recover(lambda x: net(np.where(x < -3, 0, x)), input_dim=4)
    assert result.status is Status.APPROXIMATE
    assert "contradict the network" in result.message


def test_the_users_own_examples_are_asked() -> None:
    # A unit that acts where a quarter of the examples are, and nowhere near the others.
    net = unweave.random_network([4, 3, 1], "gelu", seed=0, outer="normal")
    weights = [np.hstack([net.weights[0], np.full((4, 1), 1.5)]), np.vstack([net.weights[1], [[2.0]]])]
    target = Network(weights, [np.append(net.biases[0], -48.0), net.biases[1]], net.activations)
    examples = 0.5 * np.random.default_rng(1).standard_normal((200, 4))
    examples[:50] += 8.0
    result = unweave.recover(target, examples=examples)
    agrees = result.network is not None and np.allclose(result.network(examples), target(examples))
    assert agrees or not result.status.is_recovered


def test_examples_outside_the_domain_are_not_asked(recorder: Any) -> None:
    target = recorder(unweave.random_network([3, 2, 1], seed=1000, outer="normal"))
    examples = np.random.default_rng(1).uniform(-4, 4, (100, 3))
    result = unweave.recover(target, input_dim=3, domain=(-2, 2), examples=examples)
    assert result.status is Status.RECOVERED, result.message
    assert np.abs(target.rows).max() <= 2
    inside = examples[(np.abs(examples) <= 2).all(axis=1)]
    assert {tuple(row) for row in inside} <= {tuple(row) for row in target.rows}
