"""The second fit of networks that are right but for their last digits, and where it keeps out."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from searches import judged
from unweave.probing.look import look
from unweave.recovery.judge import Verdict
from unweave.recovery.polish import is_nearly_right, polished_on_values
from unweave.recovery.result import Status
from unweave.recovery.trial import Trial
from unweave.search import Candidate, Evidence, Journal
from unweave.targets.change_of_inputs import in_normalised_inputs, in_own_inputs
from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries


def shaken(network: unweave.Network, size: float, seed: int) -> unweave.Network:
    rng = np.random.default_rng(seed)
    weights = [w + size * rng.standard_normal(w.shape) for w in network.weights]
    biases = [b + size * rng.standard_normal(b.shape) for b in network.biases]
    return unweave.Network(weights, biases, network.activations, network.skip)


@pytest.mark.parametrize(
    ("layers", "activation", "output"),
    [
        ((7, 9, 1), "tanh", "identity"),
        ((7, 9, 3), "softplus", "identity"),
        ((6, 5, 4), "tanh", "softmax"),
        ((6, 5, 1), "erf", "sigmoid"),
        ((6, 5, 3, 2), "tanh", "tanh"),
    ],
)
def test_the_last_digits_come_back(layers, activation, output) -> None:
    planted = unweave.random_network(layers, activation, seed=1000, outer="normal", norms=(0.5, 2))
    truth = unweave.Network(planted.weights, planted.biases, [*planted.activations[:-1], output])
    queries, rng = Queries(truth, truth.n_inputs, max_queries=5000), np.random.default_rng(1001)
    findings = look(queries, rng=rng)
    view, journal = NormalisedQueries(queries, findings.region), Journal(queries, None)
    start = Candidate(shaken(truth, 1e-9, 1002), Evidence())
    before = judged(start, view, findings, seed=1003)
    assert is_nearly_right(start, before, findings)
    polished = polished_on_values(start, view, findings, journal, rng)
    after = judged(polished, view, findings, seed=1004)
    assert after.status is Status.RECOVERED
    assert unweave.compare(truth, polished.network).parameter_error < 1e-11
    assert [stage.name for stage in journal.stages] == ["polish on values"]


def test_where_it_keeps_out() -> None:
    truth = unweave.random_network([5, 4, 1], seed=1000, outer="normal")
    kinked = unweave.random_network([5, 4, 1], "relu", seed=1000, outer="normal")
    queries, rng = Queries(truth, 5, max_queries=2000), np.random.default_rng(1001)
    findings = look(queries, rng=rng)

    def asked(network, status=Status.APPROXIMATE, error=1e-9):
        trial = Trial("fresh", 9, error, 1e-12, False, 0.0)
        return is_nearly_right(Candidate(network, Evidence()), Verdict(status, "", trial), findings)

    assert asked(truth)
    assert not asked(truth, Status.RECOVERED)
    assert not asked(truth, error=1e-3)
    assert not asked(truth, error=np.nan)
    assert not asked(None)
    assert not asked(kinked)
    assert not asked(unweave.random_network([70, 60, 1], seed=1000))


def test_a_network_that_is_coarser_than_float32_answers_is_fitted_to_them() -> None:
    truth = unweave.random_network([5, 4, 1], seed=1000, outer="normal")
    queries, rng = Queries(lambda x: truth(x).astype(np.float32), 5), np.random.default_rng(1001)
    findings = look(queries, rng=rng)
    view, journal = NormalisedQueries(queries, findings.region), Journal(queries, None)
    start = Candidate(shaken(truth, 3e-6, 1002), Evidence(prediction_floor=1e-5))
    before = judged(start, view, findings, seed=1003)
    assert before.status is Status.RECOVERED
    assert before.trial.over_noise > 30
    assert is_nearly_right(start, before, findings)
    polished = polished_on_values(start, view, findings, journal, rng)
    after = judged(polished, view, findings, seed=1004)
    assert after.status is Status.RECOVERED
    assert after.trial.error < before.trial.error / 30
    assert not is_nearly_right(polished, after, findings)


def test_without_a_budget_nothing_changes() -> None:
    truth = unweave.random_network([5, 4, 1], seed=1000, outer="normal")
    free = Queries(truth, 5)
    findings = look(free, rng=np.random.default_rng(1001))
    view = NormalisedQueries(Queries(truth, 5, max_queries=10), findings.region)
    start = Candidate(shaken(truth, 1e-9, 1002), Evidence())
    journal = Journal(view.ledger, None)
    assert polished_on_values(start, view, findings, journal, np.random.default_rng(0)) is start


def test_a_change_of_inputs_and_back() -> None:
    rng = np.random.default_rng(1003)
    net = unweave.random_network([3, 4, 2], seed=1000, outer="normal")
    net = unweave.Network(net.weights, net.biases, net.activations, skip=rng.standard_normal((3, 2)))
    region = look(Queries(net, 3), rng=rng, domain=([1, -2, 100], [3, 5, 900])).region
    u = region.sample(20, rng)
    inside = in_normalised_inputs(net, region)
    np.testing.assert_allclose(inside(u), net(region.to_inputs(u)), rtol=1e-10)
    assert unweave.compare(net, in_own_inputs(inside, region)).parameter_error < 1e-12
