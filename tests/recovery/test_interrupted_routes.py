"""Ctrl-C ends every route, keeps what was found, and cannot be lost on its way."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import unweave
from unweave.arrays import Array
from unweave.recovery.sample_links import recover_behind_links


@pytest.fixture(autouse=True)
def _default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background shells ignore it
    yield
    signal.signal(signal.SIGINT, before)


def planted(*layers: int, activation: str = "tanh") -> unweave.Network:
    return unweave.random_network(list(layers), activation=activation, seed=1000, outer="normal")


def _mixed() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(1000)
    examples = rng.standard_normal((60, 4))
    examples[:, 3] = rng.integers(0, 3, 60)
    return planted(4, 2, 1), {"examples": examples, "inputs": ["number"] * 3 + ["whole"]}


def _steps(x: Array) -> Array:
    return (x[:, 0] > 0.3) * 1.0 + (x[:, 1] > -0.5) * 0.5


def _samples(activation: str) -> tuple[Any, dict[str, Any]]:
    x = np.random.default_rng(1000).standard_normal((200, 3))
    samples = unweave.Samples(x, planted(3, 2, 1, activation=activation)(x))
    return samples, {"hidden": [2], "activation": activation}


ROUTES: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "smooth": lambda: (planted(6, 4, 1), {}),
    "deep": lambda: (planted(6, 5, 3, 1), {}),
    "relu": lambda: (planted(6, 4, 1, activation="relu"), {}),
    "deep relu": lambda: (planted(5, 6, 4, 1, activation="relu"), {}),
    "rounded": lambda: ((lambda x: planted(3, 2, 1)(x).round(3)), {"input_dim": 3}),
    "rounded relu": lambda: (
        (lambda x: planted(3, 2, 1, activation="relu")(x).round(3)),
        {"input_dim": 3, "hidden": [2], "activation": "relu"},
    ),
    "steps": lambda: (_steps, {"input_dim": 3}),
    "columns": _mixed,
    "samples": lambda: _samples("tanh"),
    "samples relu": lambda: _samples("relu"),
}


class Interrupting:
    """Presses Ctrl-C at one of the signs of life; ``lost`` swallows what is raised, as some libraries do."""

    def __init__(self, at: int, lost: bool) -> None:
        self.at, self.lost, self.calls, self.after = at, lost, 0, 0

    def __call__(self, progress: unweave.Progress) -> None:
        self.calls += 1
        self.after += self.calls > self.at
        if self.calls != self.at:
            return
        with contextlib.suppress(KeyboardInterrupt) if self.lost else contextlib.nullcontext():
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_stops_and_keeps_what_was_found(route: str) -> None:
    target, told = ROUTES[route]()
    counting = Interrupting(0, lost=False)
    unweave.recover(target, progress=counting, **told)
    for share, lost in ((0.0, True), (0.3, False), (0.6, True), (0.9, False)):
        target, told = ROUTES[route]()
        progress = Interrupting(1 + int(share * (counting.calls - 1)), lost)
        with pytest.raises(unweave.Interrupted) as stopped:
            unweave.recover(target, progress=progress, **told)
        recovery = stopped.value.recovery
        assert recovery.stages
        assert not recovery.status.is_recovered or "best network so far" in recovery.message
        assert recovery.message.startswith("interrupted")
        assert progress.after <= 3  # hardly anything is done once it was pressed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_target_that_swallows_the_interrupt_cannot_lose_it() -> None:
    network, calls = planted(6, 4, 1), []

    def target(x: Array) -> Array:
        calls.append(len(x))
        if len(calls) == 3:
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        return network(x)

    with pytest.raises(unweave.Interrupted) as stopped:
        unweave.recover(target, input_dim=6)
    assert len(calls) == 3
    assert stopped.value.recovery.queries == sum(calls)


def test_the_better_of_two_links_is_kept() -> None:
    """Probabilities may be those of a sigmoid or none: the first fit outlives an interrupt of the second."""
    net = planted(3, 2, 1)
    x = np.random.default_rng(1000).standard_normal((200, 3))
    samples = unweave.Samples(x, 1 / (1 + np.exp(-net(x))))
    whole = unweave.recover(samples, hidden=[2], activation="tanh", output_activation="sigmoid")
    first = replace(whole, status=unweave.Status.APPROXIMATE)
    nothing = replace(whole, network=None, status=unweave.Status.FAILED)
    runs: list[unweave.Samples] = []

    def run(rows: unweave.Samples, seconds: float | None) -> unweave.Recovery:
        runs.append(rows)
        if len(runs) == 2:
            raise unweave.Interrupted(nothing, None)
        return replace(first, network=net)

    with pytest.raises(unweave.Interrupted) as stopped:
        recover_behind_links(samples, None, None, run)
    assert len(runs) == 2
    assert stopped.value.recovery.status is unweave.Status.APPROXIMATE
