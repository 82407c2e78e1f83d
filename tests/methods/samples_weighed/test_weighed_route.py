"""Noisy samples through `recover`: what is weighed, when, and what comes of it."""

from __future__ import annotations

import time

import numpy as np
import pytest

import unweave
from unweave import Samples, Status
from unweave.methods.samples_weighed.climb import ClimbOptions
from unweave.methods.samples_weighed.search import (
    SamplesWeighedOptions,
    SamplesWeighedReason,
    SamplesWeighedSearch,
)
from unweave.networks.network import Network
from unweave.recovery.run import run_search
from unweave.search import Candidate, Context, Journal, Request
from unweave.search.evidence import Evidence
from unweave.targets.budget import Budget
from unweave.targets.held_out import FittedRows


def noisy(kind="tanh", layers=(4, 3, 1), share=0.05, seed=1000, rows=400):
    net = unweave.random_network(list(layers), kind, seed=seed, outer="normal")
    rng = np.random.default_rng([seed, 1])
    x = rng.standard_normal((rows, layers[0]))
    y = net(x)
    return net, x, y + share * y.std() * rng.standard_normal(y.shape)


def searched(x, y, earlier, options=None, request=None):
    """The candidate of the search alone, after others have handed back ``earlier`` networks."""
    samples = Samples(x, y)
    budget = Budget(time.perf_counter)
    rows = FittedRows(samples.x, samples.y, samples.precision(), len(x), budget)
    before = tuple(
        Candidate(net, Evidence(), criterion=float(2 * len(x) * np.log((y - net(x)).std() + 1e-9)))
        for net in earlier
    )
    context = Context(
        view=rows,
        findings=None,
        request=request or Request(),
        journal=Journal(budget),
        rng=np.random.default_rng(0),
        options=options or SamplesWeighedOptions(),
        earlier=before,
    )
    return run_search(SamplesWeighedSearch(context))


def near(net, seed=3):
    """A network near ``net``."""
    rng = np.random.default_rng(seed)
    weights = [w + 0.005 * rng.standard_normal(w.shape) for w in net.weights]
    return Network(weights, net.biases, net.activations, net.skip)


def test_kind_and_width_come_back_with_standard_errors():
    net, x, y = noisy(layers=(6, 4, 1), rows=660)
    result = unweave.recover(Samples(x, y))
    assert result.status is Status.APPROXIMATE
    assert (result.network.hidden, result.network.activations[0]) == ((4,), "tanh")
    assert "by marginal likelihood" in result.notes[0]
    assert "noise" in result.message
    errors = result.standard_errors
    assert errors is not None
    assert np.sqrt(np.mean((result.network(x) - net(x)) ** 2)) < 0.03 * net(x).std()


def test_it_replaces_what_earlier_searches_found():
    """At this seed the others end with erf units."""
    _, x, y = noisy("sigmoid", (6, 4, 1), seed=1002, rows=660)
    others = unweave.recover(Samples(x, y), options=SamplesWeighedOptions(asked=False))
    assert others.network.activations[0] == "erf"
    result = unweave.recover(Samples(x, y))
    assert (result.network.hidden, result.network.activations[0]) == ((4,), "tanh")


def test_kinked_units_have_length_one_and_errors_of_that():
    net, x, y = noisy("relu")
    found = searched(x, y, [near(net)])
    assert found.network.activations[0] == "relu"
    assert np.linalg.norm(found.network.weights[0], axis=0) == pytest.approx(1)
    assert found.standard_errors.weights[0].max() < 0.2
    assert found.replaces_earlier


def test_a_width_that_is_told_is_not_weighed():
    _, x, y = noisy()
    result = unweave.recover(Samples(x, y), hidden=[2], activation="tanh")
    assert result.network.hidden == (2,)
    assert not any("marginal likelihood" in note for note in result.notes)


def test_a_kind_that_is_told_stays():
    net, x, y = noisy()
    erf = Network(net.weights, net.biases, ["erf", "identity"])
    options = SamplesWeighedOptions(likeness=1.0)
    found = searched(x, y, [erf], options, Request(activation="erf"))
    assert found.network.activations[0] == "erf"


def test_exact_samples_are_not_weighed():
    net, x, _ = noisy()
    result = unweave.recover(Samples(x, net(x)))
    assert result.status is Status.RECOVERED
    assert "weigh kinds and widths" not in [stage.name for stage in result.stages]


def _nothing_left(net, x):
    return searched(x, net(x) + 1e-7, [net])


def _rough(net, x):
    return searched(x, np.round(net(x), 2), [net])


def _structured(net, x):
    few = x[:, :1]
    flat = Network([[[1.0]], [[1.0]]], [[0.0], [0.0]], ["tanh", "identity"])
    return searched(few, np.sin(3 * few), [flat])


def _affine(net, x):
    return searched(x, net(x) + 0.1, [Network([np.ones((4, 1))], [np.zeros(1)], ["identity"])])


def _large(net, x):
    wide = unweave.random_network([4, 60, 1], "tanh", seed=1000)
    return searched(x, net(x) + np.random.default_rng(0).standard_normal((400, 1)), [wide])


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (lambda net, x: searched(x, net(x), []), SamplesWeighedReason.NOTHING_FOUND),
        (
            lambda net, x: searched(x, net(x), [net], SamplesWeighedOptions(asked=False)),
            SamplesWeighedReason.NOT_ASKED,
        ),
        (_nothing_left, SamplesWeighedReason.NO_NOISE),
        (_structured, SamplesWeighedReason.NO_NOISE),
        (_rough, SamplesWeighedReason.NO_NOISE),
        (_affine, SamplesWeighedReason.EXPLAINED_OTHERWISE),
        (_large, SamplesWeighedReason.TOO_LARGE),
    ],
)
def test_it_says_why_nothing_is_weighed(case, reason):
    net, x, _ = noisy()
    found = case(net, x)
    assert found.network is None
    assert found.problem.startswith(reason.value.split("{")[0])


def test_many_rows_are_climbed_on_some_and_fitted_in_the_end():
    net, x, y = noisy(rows=20_000)
    options = SamplesWeighedOptions(step_flops=1e6, climb=ClimbOptions(work=0.3))
    found = searched(x, y, [near(net)], options)
    some = searched(x[:1000], y[:1000], [near(net)], options)
    assert found.network.hidden == (3,)
    error, of_some = (np.sqrt(np.mean((each.network(x) - net(x)) ** 2)) for each in (found, some))
    assert error < 0.5 * of_some


def test_the_deadline_keeps_what_is_weighed_or_what_was_found():
    _, x, y = noisy(rows=2000)
    result = unweave.recover(Samples(x, y), deadline=0.3)
    assert result.seconds < 3
    assert result.status in (Status.APPROXIMATE, Status.FAILED)


def test_inputs_that_do_not_vary_are_named():
    net, x, y = noisy()
    flat = np.column_stack([x, np.ones(len(x))])
    start = Network([np.vstack([net.weights[0], np.zeros(3)]), net.weights[1]], net.biases, net.activations)
    found = searched(flat, y, [start])
    assert found.network.hidden == (3,)
    assert "do not vary" in found.ambiguity
    assert "do not vary" in found.notes[-1]


def test_noisy_answers_that_are_rounded_are_weighed_too():
    net, x, y = noisy(share=0.1)
    found = searched(x, np.round(y, 3), [near(net)])
    assert found.network.hidden == (3,)
    assert found.objection is None


def test_a_fit_as_good_as_the_answers_is_not_proven_by_its_likelihood():
    net, x, _ = noisy()
    found = searched(x, net(x), [near(net)], SamplesWeighedOptions(likeness=1.0, least_noise=1e-6))
    assert "proves neither" in found.objection


@pytest.mark.parametrize("kind", ["relu", "mish"])
def test_the_width_is_weighed_where_the_kind_is_told(kind):
    _, x, y = noisy(kind, layers=(6, 3, 1), share=0.02)
    result = unweave.recover(Samples(x, y), activation=kind)
    assert (result.network.hidden, result.network.activations[0]) == ((3,), kind)
    assert any("marginal likelihood" in note for note in result.notes)
