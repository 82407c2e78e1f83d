from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from planted_published import planted, true_layers, worst_distance

from unweave.derivatives.entangled import network_gradients
from unweave.errors import InvalidInput
from unweave.published.deep import (
    DifferencedFunction,
    ExactDerivatives,
    PublishedDeepOptions,
    leading_span,
    recover_entangled_weights,
    search_span,
    span_of_hessians,
)
from unweave.subspace import hessian_span, symmetric_packing

FAST = PublishedDeepOptions(power_steps=100, newton_steps=50)


def test_exact_span_gives_every_direction() -> None:
    network = planted(12, (12, 6, 8), seed=1201)
    columns = np.concatenate(true_layers(network), axis=1)
    span = hessian_span(symmetric_packing(12).outer(np.ascontiguousarray(columns.T)))
    gradients = network_gradients(network, np.zeros((1, 12)))[0]
    found = search_span(span, 26, 26, np.random.default_rng(1202), np.zeros(12), gradients, FAST)
    # A start retires when it moves by less than 1e-8; what remains is that over one minus its rate.
    assert found.complete
    assert worst_distance(found.directions, columns) < 1e-6
    assert_allclose(found.objectives[:26], 1, atol=1e-12)
    assert worst_distance(found.output_directions, true_layers(network)[-1]) < 1e-7


@pytest.mark.parametrize("exact", [True, False])
def test_hessians_near_a_point_give_all_entangled_weights(exact: bool) -> None:
    network = planted(12, (12, 6, 8), seed=1002)
    source = ExactDerivatives(network) if exact else DifferencedFunction(network)
    found = recover_entangled_weights(source, 26, 26, np.random.default_rng(1203), np.zeros(12), FAST)
    assert found.complete
    assert found.span.gap(26) > 2
    for layer in true_layers(network):
        assert worst_distance(found.directions, layer) < 0.05  # where the source counts a weight as found
    # The gradients have no such error, only that of central differences, O(step^2).
    assert worst_distance(found.output_directions, true_layers(network)[-1]) < 1e-4
    assert source.rows == (0 if exact else 4 * 26 * (2 * 12**2 + 1) + 2 * 12 + 1)


def test_one_output_is_not_enough() -> None:
    network = planted(10, (10, 5, 1), seed=1204)
    found = recover_entangled_weights(
        ExactDerivatives(network), 16, 16, np.random.default_rng(1205), np.zeros(10), FAST
    )
    errors = [worst_distance(found.directions, layer) for layer in true_layers(network)[:2]]
    assert max(errors) > 0.1


def test_compressed_span_is_the_span() -> None:
    packed = np.random.default_rng(1206).standard_normal((30, 3, 21)) @ np.diag(0.7 ** np.arange(21))
    direct, compressed = hessian_span(packed.reshape(-1, 21)), span_of_hessians(packed)
    assert compressed.columns == direct.columns == 90
    assert_allclose(compressed.singular_values, direct.singular_values, rtol=1e-12)
    first, second = direct.basis(5), compressed.basis(5)
    assert_allclose(first @ first.T, second @ second.T, atol=1e-12)


@pytest.mark.parametrize(("rank", "decay"), [(5, 0.5), (5, 0.98), (15, 0.5)])  # with a gap, without, too wide
def test_leading_span_is_that_of_all_hessians(rank: int, decay: float) -> None:
    packed = np.random.default_rng(1213).standard_normal((30, 3, 21)) @ np.diag(decay ** np.arange(21))
    whole, leading = span_of_hessians(packed), leading_span((packed[:10], packed[10:]), rank)
    assert leading.columns == 90
    assert_allclose(leading.singular_values, whole.singular_values[:rank], rtol=1e-4)
    first, second = whole.basis(rank), leading.basis(rank)
    assert_allclose(first @ first.T, second @ second.T, atol=2e-3)


def test_power_steps_in_single_precision_end_at_the_same_directions() -> None:
    network = planted(12, (12, 8, 6), seed=1202)
    ends = [
        recover_entangled_weights(
            ExactDerivatives(network), 26, 26, np.random.default_rng(1203), np.zeros(12), options
        ).directions
        for options in (FAST, replace(FAST, single_precision=True, power_tolerance=1e-6))
    ]
    assert ends[0].shape == ends[1].shape
    assert worst_distance(ends[0], ends[1].T) < 1e-3


def test_impossible_ranks_are_refused() -> None:
    network = planted(3, (3, 2), seed=1207)
    for rank, options, message in (
        (6, None, "proper subspace"),
        (5, PublishedDeepOptions(hessians=2), "as many Hessians"),
    ):
        with pytest.raises(InvalidInput, match=message):
            recover_entangled_weights(
                ExactDerivatives(network), rank, 5, np.random.default_rng(0), np.zeros(3), options
            )


@pytest.mark.parametrize("bad", [{"step": 0.0}, {"gamma": -1.0}, {"hessians": 0}, {"seconds": 0.0}])
def test_bad_options_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="must be positive"):
        PublishedDeepOptions(**bad)


def test_functions_of_one_column_must_have_it() -> None:
    with pytest.raises(InvalidInput, match="one row per point"):
        DifferencedFunction(lambda x: x[:, 0]).values(np.zeros((4, 2)))
