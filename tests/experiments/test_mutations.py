"""Rules that can fail: a plausible bug in what an experiment measures must turn one of its figures red."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from unweave.experiments import (
    EXPERIMENTS,
    certificates,
    circuits,
    constructions,
    gates,
    hermite,
    quadratic,
    risk_minima,
)
from unweave.gates.glm_tron import GlmTron
from unweave.networks.network import Network


def scaled(factor):
    """The function's result times a factor."""
    return lambda function: lambda *a, **k: factor * function(*a, **k)


def with_field(**changes):
    """The function's result with fields changed by given functions."""

    def change(function):
        def changed(*a, **k):
            result = function(*a, **k)
            return dataclasses.replace(result, **{n: f(getattr(result, n)) for n, f in changes.items()})

        return changed

    return change


def without_a_unit(function):
    """The network that the function returns, with one unit of its last hidden layer missing."""

    def changed(*a, **k):
        network = function(*a, **k)
        if not network.hidden:
            return network
        weights = [*network.weights[:-2], network.weights[-2][:, 1:], network.weights[-1][1:]]
        biases = [*network.biases[:-2], network.biases[-2][1:], network.biases[-1]]
        return Network(weights, biases, network.activations, network.skip)

    return changed


def step_times(factor):
    """GLM-Tron whose steps are too long or too short."""
    end = GlmTron.end_pass

    def changed(self):
        self._sum = factor * self._sum
        return end(self)

    return changed


def method_with_step(factor):
    def change(function):
        def changed(*a, **k):
            found = function(*a, **k)
            step = found.step
            longer = (lambda t, g: factor * step(t, g)) if callable(step) else factor * step
            return dataclasses.replace(found, step=longer)

        return changed

    return change


MUTATIONS = [
    ("glm-tron", "steps twice as long", (GlmTron, "end_pass"), lambda _: step_times(2.0)),
    ("glm-tron", "steps of the wrong sign", (GlmTron, "end_pass"), lambda _: step_times(-1.0)),
    ("benign-noise", "steps of the wrong sign", (GlmTron, "end_pass"), lambda _: step_times(-1.0)),
    (
        "benign-noise",
        "a pull that does not fall",
        (gates, "benign_noise"),
        with_field(effective_loss=lambda v: 2.0),
    ),
    ("certified-steps", "steps twice as long", (certificates, "certified_step"), method_with_step(2.0)),
    (
        "certified-steps",
        "steps thirty times as long",
        (certificates, "certified_step"),
        method_with_step(30.0),
    ),
    ("noise-resilience", "twice the deviation", (certificates, "noise_resilience_sigma"), scaled(2.0)),
    ("noise-resilience", "three times the deviation", (certificates, "noise_resilience_sigma"), scaled(3.0)),
    (
        "support-recovery",
        "the published bias doubled",
        (certificates, "certify_support_recovery"),
        with_field(theorem_bias=lambda v: 3 * v),
    ),
    (
        "support-recovery",
        "a code too dense",
        (certificates, "support_rates"),
        with_field(exact=lambda v: v / 2),
    ),
    ("flat-networks", "one unit missing", (circuits, "flatten"), without_a_unit),
    ("flat-networks", "half the answers", (circuits, "flatten"), lambda f: lambda n: halved(f(n))),
    ("boolean-sizes", "one unit missing", (circuits, "boolean_net"), without_a_unit),
    (
        "boolean-sizes",
        "a count of gates too small",
        (circuits, "min_threshold_gates"),
        lambda f: lambda v: f(v) - 1,
    ),
    ("random-restrictions", "twice as many kept", (circuits, "kept_share"), scaled(2.0)),
    (
        "random-restrictions",
        "no fall with the number of inputs",
        (circuits, "kept_share"),
        lambda f: lambda *a: 0.0 * f(*a) + 0.1,
    ),
    ("ordered-circuits", "a bound too small", (circuits, "restricted_rank_bound"), scaled(0)),
    ("ordered-circuits", "no order", (circuits, "orders_alike"), lambda f: lambda w: not f(w)),
    (
        "hinge-erm",
        "a loss that is not the least",
        (risk_minima, "exact_erm"),
        with_field(loss=lambda v: v + 1e-3),
    ),
    ("hinge-erm", "no certificate", (risk_minima, "exact_erm"), with_field(certified=lambda v: False)),
    ("exact-erm", "one unit missing", (risk_minima, "exact_erm"), with_field(network=lambda n: dropped(n))),
    ("exact-erm", "no certificate", (risk_minima, "exact_erm"), with_field(certified=lambda v: False)),
    (
        "dichotomies",
        "one pattern missing",
        (risk_minima, "hyperplane_dichotomies"),
        lambda f: lambda x: f(x)[1:],
    ),
    (
        "dichotomies",
        "one pattern twice",
        (risk_minima, "hyperplane_dichotomies"),
        lambda f: lambda x: np.concatenate([f(x), f(x)[:1]]),
    ),
    ("network-sizes", "a maximum without a unit", (constructions, "max_net"), without_a_unit),
    ("network-sizes", "a parity without a unit", (constructions, "parity_net"), without_a_unit),
    ("piece-counts", "a piece not counted", (constructions, "pieces_1d"), lambda f: lambda n: f(n)[:-2]),
    (
        "piece-counts",
        "a map not counted",
        (constructions, "zonotope_maps"),
        lambda f: lambda *a: set(list(f(*a))[1:]),
    ),
    (
        "sign-ambiguity",
        "never unique",
        (hermite, "solve_signs"),
        with_field(unique=lambda v: False),
    ),
    ("sign-ambiguity", "always unique", (hermite, "solve_signs"), with_field(unique=lambda v: True)),
    ("sample-barrier", "a barrier too high", (quadratic, "sample_barrier"), with_field(loss=lambda v: 3 * v)),
    (
        "sample-barrier",
        "a barrier too low",
        (quadratic, "sample_barrier"),
        with_field(loss=lambda v: v / 1e3),
    ),
    ("energy-barrier", "the constant without its factor", (quadratic, "population_barrier"), scaled(0.9)),
    ("energy-barrier", "half the risk", (quadratic, "population_risk"), scaled(0.5)),
    ("quadratic-threshold", "a rank too small", (quadratic, "span_test"), with_field(rank=lambda v: v - 1)),
    (
        "quadratic-threshold",
        "another network that does not fit",
        (quadratic, "counterexample"),
        with_field(empirical_risk=lambda v: v + 1e-6),
    ),
    ("quadratic-descent", "a start four times as large", (quadratic, "population_risk"), scaled(40.0)),
    (
        "quadratic-descent",
        "an end that is off",
        (quadratic, "quadratic_descent"),
        with_field(weights=lambda w: 1.001 * w),
    ),
]


def halved(network):
    weights = [*network.weights[:-1], network.weights[-1] / 2]
    return Network(weights, network.biases, network.activations, network.skip)


def dropped(network):
    return without_a_unit(lambda: network)()


@pytest.mark.parametrize(
    ("name", "bug", "place", "change"), MUTATIONS, ids=[f"{name}: {bug}" for name, bug, _, _ in MUTATIONS]
)
def test_a_bug_is_seen(name, bug, place, change, monkeypatch):
    owner, attribute = place
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    figures = EXPERIMENTS[name].run(0, lambda text: None)
    assert any(figure.agrees is False for figure in figures), f"{name} agrees with {bug}"
