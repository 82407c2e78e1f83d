"""What callers bring along: NumPy's error state, callbacks that raise, masks, extreme scales, odd names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unweave
from unweave.errors import InvalidInput, NonFiniteAnswers, TargetError
from unweave.methods.smooth.evidence import SmoothEvidence
from unweave.networks.activations import Activation, get_activation, register_activation, registry
from unweave.targets.queries import Queries

NET = unweave.random_network([4, 3, 1], seed=0, outer="normal")
RELU = unweave.random_network([4, 3, 1], "relu", seed=0, outer="normal")
X = np.random.default_rng(0).standard_normal((400, 4))


@pytest.mark.parametrize(
    "target",
    [NET, RELU, unweave.Samples(X, RELU(X))],
    ids=["tanh", "relu", "samples"],
)
def test_the_error_state_of_the_caller_changes_nothing(target: unweave.Network | unweave.Samples) -> None:
    with np.errstate(all="raise"):
        inside = unweave.recover(target)
        assert np.geterr()["under"] == "raise"
    outside = unweave.recover(target)
    assert inside.status is outside.status
    assert inside.network == outside.network


def test_a_callback_that_raises_does_not_cost_the_run(caplog: pytest.LogCaptureFixture) -> None:
    calls = []

    def progress(told: unweave.Progress) -> None:
        calls.append(told)
        raise RuntimeError("no such window")

    result = unweave.recover(NET, progress=progress)
    assert result.status is unweave.Status.RECOVERED
    assert len(calls) == 1
    assert any("RuntimeError: no such window" in note for note in result.notes)
    assert "no such window" in caplog.text


def test_a_callback_may_still_stop_the_run() -> None:
    def progress(told: unweave.Progress) -> None:
        if told.queries > 100:
            raise KeyboardInterrupt

    with pytest.raises(unweave.Interrupted) as caught:
        unweave.recover(NET, progress=progress)
    assert caught.value.ledger.sent > 100


def masked(values: np.ndarray, *rows: int) -> np.ma.MaskedArray:
    mask = np.zeros(values.shape, bool)
    mask[list(rows), 0] = True
    return np.ma.masked_array(values, mask)


def test_masked_samples_are_missing_ones() -> None:
    samples = unweave.Samples(masked(X, 3, 7), masked(RELU(X), 3, 9))
    np.testing.assert_array_equal(samples.x, np.delete(X, [3, 7, 9], axis=0))
    assert "3 rows with missing" in samples.notes[0]
    assert len(unweave.Samples(masked(X), RELU(X))) == 400


def test_masked_examples_questions_and_answers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="examples must be finite"):
        unweave.recover(NET, examples=masked(X, 3))
    with pytest.raises(InvalidInput, match="x must be finite"):
        Queries(NET, 4)(masked(X, 3))
    with pytest.raises(NonFiniteAnswers):
        unweave.recover(lambda x: masked(NET(x), 0), input_dim=4)


@pytest.mark.parametrize("scale", [1e-160, 1e150])
@pytest.mark.parametrize("net", [NET, RELU], ids=["tanh", "relu"])
def test_extreme_scales_are_recovered(net: unweave.Network, scale: float) -> None:
    result = unweave.recover(lambda x: scale * net(x), input_dim=4)
    assert result.status is unweave.Status.RECOVERED
    np.testing.assert_allclose(result.network(X) / scale, net(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("net", [NET, RELU], ids=["tanh", "relu"])
def test_scales_beyond_float64_end_in_words(net: unweave.Network, scale: float) -> None:
    with pytest.raises(TargetError, match="in size") as caught:
        unweave.recover(lambda x: scale * net(x), input_dim=4)
    assert caught.value.ledger is not None
    with pytest.raises(InvalidInput, match="in size"):
        unweave.recover(unweave.Samples(X, scale * net(X)), hidden=[3], activation="relu")


def test_a_target_that_answers_zero_is_still_a_network() -> None:
    result = unweave.recover(lambda x: np.zeros(len(x)), input_dim=4)
    assert result.status.is_recovered


def test_a_dollar_in_a_name_is_drawn_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))
    name = r"my$act_{^$ \frac"
    register_activation(Activation(name, get_activation("tanh").jet, get_activation("tanh").reflection))
    net = unweave.Network(NET.weights, NET.biases, [name, "identity"])
    evidence = SmoothEvidence(
        spectrum=np.ones(4), width=3, activation_residuals={name: 1e-9, "tanh": 1e-3, "a$b$": 1e-2}
    )
    result = replace(unweave.recover(NET), network=net, evidence=evidence)
    result.save_report(tmp_path / "report.html")
    assert name.split("{", maxsplit=1)[0] in (tmp_path / "report.html").read_text()
