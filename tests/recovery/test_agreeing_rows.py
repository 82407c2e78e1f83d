"""An approximate network says what share of the check's rows it explains."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Status
from unweave.cli.output.recovery import result_rows
from unweave.recovery.certificate import AGREEING
from unweave.recovery.trial import NO_TRIAL, Trial


def test_rows_within_the_threshold_are_counted() -> None:
    trial = Trial("fresh", 4, 0.5, 1e-3, errors=np.array([0.0, 1e-3, 2e-3, 0.5]))
    assert trial.agreeing == 0.5
    assert np.isnan(NO_TRIAL.agreeing)


def test_a_network_that_is_right_on_most_rows_says_on_how_many() -> None:
    network = unweave.random_network([4, 3, 1], seed=1000, outer="signed")

    def target(x: np.ndarray) -> np.ndarray:  # large entries count as missing
        return network(np.where(np.abs(x) > 2.5, 0, x))

    result = unweave.recover(target, input_dim=4, hidden=[3], activation="tanh", method="smooth")
    assert result.status is Status.APPROXIMATE  # although some rows are off by more than the spread
    assert not result.certificate.holds
    share = result.certificate[AGREEING].value
    rows = np.random.default_rng(1000).standard_normal((5000, 4))
    off = np.abs(result.network(rows) - target(rows)).max(axis=1)
    assert share == pytest.approx(np.mean(off < 1e-9), abs=0.05)
    assert f"{100 * share:.0f} % of the rows agree" in str(dict(result_rows(result))["error"])


def test_a_recovered_network_leaves_it_out() -> None:
    result = unweave.recover(unweave.random_network([4, 3, 1], seed=1000, outer="signed"))
    assert result.status is Status.RECOVERED
    assert AGREEING not in result.certificate
