"""What is read behind a link errs by no more, and not by far less, than is said."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.methods.shared.kinked.reading import open_reading
from unweave.networks.links import Link
from unweave.probing.look import look
from unweave.targets.region import NormalisedQueries
from unweave.targets.target import as_queries


@pytest.mark.parametrize(("link", "outputs"), [("sigmoid", 1), ("softmax", 3)])
def test_roundings_are_measured(link, outputs):
    network = unweave.random_network([6, 20, outputs], "relu", seed=1000, outer="unit")
    (incoming, outer), (biases, offset) = (
        [part.astype(np.float32) for part in parts] for parts in (network.weights, network.biases)
    )

    def behind(x):
        return np.maximum(x.astype(np.float32) @ incoming + biases, 0) @ outer + offset

    def probabilities(x):
        z = behind(x)
        if link == "sigmoid":
            return (1 / (1 + np.exp(-z))).astype(np.float32)
        powers = np.exp(z - z.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    rng = np.random.default_rng(1000)
    ledger = as_queries(probabilities, 6)
    findings = look(ledger, rng=rng)
    view = NormalisedQueries(ledger, findings.region)
    reading = open_reading(view, findings.noise, Link(link), findings.spread, rng)
    assert reading is not None
    bound = reading.error
    reading.measure_roundings(rng)
    assert reading.error < bound / 3
    points = findings.region.sample(500, rng)
    values, errors = reading.with_errors(points)
    read = np.isfinite(values).all(axis=1)
    truth = behind(findings.region.to_inputs(points)).astype(np.float64)
    truth = truth if outputs == 1 else truth - truth.mean(axis=1, keepdims=True)
    off = np.abs(values * reading.spread - truth)[read] / (errors * reading.spread)[read]
    assert 0.1 < np.sqrt(np.mean(off**2)) < 2
