"""From the units of two layers to a network that was checked."""

from __future__ import annotations

import numpy as np

from planted_layers import first_layer, planted, probe_of, second_preactivations
from unweave import Network
from unweave.methods.relu_deep.complete import Completed, Completion, CompletionOptions
from unweave.methods.relu_deep.layer_units import LayerOptions, LayerUnits
from unweave.methods.relu_deep.trace import Unit
from unweave.methods.shared.surfaces.probe import KinkPool
from unweave.search.journal import Journal


def badly_measured(network: Network, error: float) -> tuple[Completion, LayerUnits]:
    """The true units of the second layer but for an error of the last one."""
    probe, known = probe_of(network), first_layer(network, signed=True)
    search = LayerUnits(probe, known, KinkPool(), np.random.default_rng(1), LayerOptions())
    points = np.random.default_rng(0).standard_normal((400, network.n_inputs))
    truth = second_preactivations(network, points)
    alphas = np.linalg.lstsq(known.values(points), truth, rcond=None)[0].T
    alphas[-1] += error * np.random.default_rng(2).standard_normal(alphas.shape[1])
    search.units = [Unit(alpha, (), 1, 0) for alpha in alphas]
    completion = Completion(
        probe,
        "relu",
        1e-16,
        Journal(probe._view.ledger),
        np.random.default_rng(3),
        CompletionOptions(polishable=0.5),
    )
    return completion, search


def test_a_unit_that_is_measured_badly_is_polished_once_no_more_are_found() -> None:
    network = planted([6, 5, 4, 2], 1004)
    completion, search = badly_measured(network, 1e-4)
    assert not isinstance(completion.attempt(search), Completed)
    done = completion.attempt(search, nearly=True)
    assert isinstance(done, Completed)
    points = 2 * np.random.default_rng(4).standard_normal((500, 6))
    spread = np.linalg.lstsq(done.network(points)[:, :1], network(points)[:, :1], rcond=None)[0]
    np.testing.assert_allclose(done.network(points)[:, :1] * spread, network(points)[:, :1], atol=1e-12)


def test_a_missing_unit_is_not_polished_away() -> None:
    network = planted([6, 5, 4, 2], 1004)
    completion, search = badly_measured(network, 0.0)
    search.units.pop()
    assert not isinstance(completion.attempt(search, nearly=True), Completed)
