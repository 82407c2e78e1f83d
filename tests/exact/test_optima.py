"""All optima: a unique network is called decided, and ambiguous data is not."""

from __future__ import annotations

import numpy as np
import pytest
from planted_units import planted, planted_elsewhere

import unweave
from unweave.errors import InvalidInput
from unweave.exact import SearchInterrupted, enumerate_optima


@pytest.mark.parametrize("seed", range(1000, 1004))
def test_planted_network_is_decided(seed):
    truth, x, y = planted(2, 2, 24, 0.0, seed)
    found = enumerate_optima(x, y, 2)
    assert found.complete
    worst = max(unweave.compare(truth, one.network).parameter_error for one in found.optima)
    if found.decided:
        assert worst <= 1e-9
    else:  # then the planted network is one of several that fit
        active = (x @ truth.weights[0] + truth.biases[0] > 0).T
        assert any(set(map(tuple, one.patterns)) == set(map(tuple, active)) for one in found.optima)
        assert found.disagreement > 1e-6


@pytest.mark.parametrize(("samples", "seed"), [(12, 100), pytest.param(24, 101, marks=pytest.mark.slow)])
def test_known_ambiguous_instance(samples, seed):
    # A zero loss that is no recovery: noise-free points, many networks.
    rng = np.random.default_rng(seed)
    a, b, x, y = planted_elsewhere(samples, rng)
    found = enumerate_optima(x, y, 2)
    assert found.complete
    assert not found.decided
    assert len(found.optima) > 1
    assert found.disagreement > 0.01
    for network in found.networks:
        np.testing.assert_allclose(network(x)[:, 0], y, rtol=0, atol=1e-6 * np.abs(y).max())
    low, high = found.range(x)
    assert np.max(high - low) <= 1e-6 * np.abs(y).max()
    probes = rng.standard_normal((200, 2))
    low, high = found.range(probes)
    assert np.max(high - low) > 0.01 * np.abs(y).max()
    active = {tuple(row) for row in (x @ a.T + b > 0).T}
    assert any({tuple(row) for row in one.patterns} == active for one in found.optima)


def test_too_few_active_points_leave_freedom():
    # The second unit acts on one point only: its weights are free, its value there is not.
    x = np.array([[-1.0, 0.0], [-2.0, 1.0], [-1.5, -1.0], [-0.5, 0.7], [3.0, 0.2]])
    y = np.array([0.0, 0.0, 0.0, 0.0, 2.0])
    found = enumerate_optima(x, y, 1)
    assert found.complete
    assert not found.decided
    assert max(one.freedom for one in found.optima) == 2
    free = max(found.optima, key=lambda one: one.freedom)
    assert free.other is not None
    np.testing.assert_allclose(free.other(x)[:, 0], y, atol=1e-6)


def test_noise_decides_for_one_network():
    _, x, y = planted(2, 2, 25, 0.1, 1001)
    found = enumerate_optima(x, y, 2)
    assert found.fit.certified
    assert found.decided
    assert len(found.optima) == 1
    assert found.optima[0].loss == pytest.approx(found.fit.loss, abs=1e-9 * y @ y)
    active = x @ found.optima[0].network.weights[0] + found.optima[0].network.biases[0] > 1e-9
    assert np.all(active <= found.optima[0].patterns.T)


def test_points_that_do_not_span_decide_nothing_off_their_hull():
    line = np.linspace(-1, 1, 14)[:, None]
    y = np.maximum(line[:, 0] - 0.1, 0) - 2 * np.maximum(-line[:, 0] - 0.2, 0)
    assert enumerate_optima(line, y, 2).decided
    found = enumerate_optima(line * [[1.0, 2.0]], y, 2)
    assert found.complete
    assert not found.spans
    assert not found.decided


def test_the_list_ends_where_it_is_told():
    x = np.random.default_rng(1002).standard_normal((4, 2))
    y = np.array([1.0, -1.0, 0.5, 2.0])
    found = enumerate_optima(x, y, 2, max_optima=1)
    assert not found.complete
    assert not found.decided


def test_losses_without_unique_predictions_are_refused():
    with pytest.raises(InvalidInput, match="strictly convex"):
        enumerate_optima([[0.0], [1.0]], [0.0, 1.0], loss="absolute")
    with pytest.raises(InvalidInput, match="max_optima must be"):
        enumerate_optima([[0.0], [1.0]], [0.0, 1.0], max_optima=0)


def test_interrupt_while_collecting():
    _, x, y = planted(2, 2, 20, 0.0, 1003)

    def interrupt(progress):
        if progress.stage == "patterns":
            raise KeyboardInterrupt

    with pytest.raises(SearchInterrupted) as caught:
        enumerate_optima(x, y, 2, progress=interrupt)
    assert caught.value.result.loss <= 1e-20 * y @ y
