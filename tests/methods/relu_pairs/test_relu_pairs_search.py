"""Two hidden layers of kinked units in float32, behind a link, in a box; nothing else is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import unweave
from planted_pairs import in_float32, planted_pair
from unweave.arrays import Array
from unweave.methods.relu_pairs.method import likelihood, refuses
from unweave.probing.look import look
from unweave.recovery.choose import choose
from unweave.search import Likelihood, Request
from unweave.targets.region import Region
from unweave.targets.target import as_queries


def test_float32() -> None:
    net = planted_pair([5, 6, 4, 1], seed=1001)
    result = unweave.recover(in_float32(net), input_dim=5, seed=0)
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error < 1e-5


def test_behind_a_softmax() -> None:
    net = planted_pair([5, 6, 4, 3], output="softmax", seed=1001)
    result = unweave.recover(net, seed=0)
    assert result.status.is_recovered
    assert unweave.compare(net, result.network).function_error < 1e-9


def test_in_a_box_nothing_outside_is_asked() -> None:
    net, asked = planted_pair([5, 6, 4, 1], seed=1001), []

    def target(x: Array) -> Array:
        asked.append(np.abs(x).max())
        return net(x)

    result = unweave.recover(target, input_dim=5, domain=(-3, 3), seed=0)
    assert max(asked) <= 3
    assert result.status.is_recovered
    assert unweave.compare(net, result.network).function_error < 1e-9


def test_few_decimals_are_not_refused_without_a_domain() -> None:
    net = planted_pair([4, 6, 6, 1], seed=1001)
    asked = as_queries(lambda x: np.round(net(x), 4), 4)
    findings = look(asked, rng=np.random.default_rng(1000))
    assert refuses(Request(), findings) is None
    inside = replace(findings, region=Region.from_domain(-3, 3, 4))
    assert "answers good to 1e-05" in (refuses(Request(), inside) or "")


def test_few_decimals_are_read_between_their_flips() -> None:
    net = planted_pair([4, 6, 6, 1], seed=1001)
    result = unweave.recover(lambda x: np.round(net(x), 4), input_dim=4, seed=0, method="relu_pairs")
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error < 1e-9


def test_precise_answers_everywhere_are_left_to_surfaces() -> None:
    result = unweave.recover(planted_pair([5, 6, 4, 1], seed=1001), method="relu_pairs")
    assert result.status is unweave.Status.FAILED
    assert "surfaces are followed" in result.message


def test_smooth_layers_are_not_called_kinked() -> None:
    net = planted_pair([4, 5, 3, 1], "tanh")
    result = unweave.recover(net, domain=(-3, 3), method="relu_pairs")
    assert not result.status.is_recovered


def test_precise_surfaces_of_any_depth_come_first_where_both_are_possible() -> None:
    findings = look(as_queries(planted_pair([6, 5, 4, 1]), 6), rng=np.random.default_rng(0))
    both = replace(findings, links=("identity", "tanh"))
    tried, _ = choose(Request(), both)
    names = [method.name for method in tried]
    assert names.index("relu_layers") < names.index("relu_pairs")
    assert likelihood(Request(), replace(findings, links=("tanh",))) is Likelihood.LIKELY
