"""A held Ctrl-C: raised after the block, whatever the block catches; a second one goes through at once."""

from __future__ import annotations

import signal
import threading

import pytest

from unweave.targets.adapters.keras_target import interrupts_wait


@pytest.fixture(autouse=True)
def _interrupts_are_raised():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def _work(reached: list[str], *, interrupts: int, error: Exception | None = None) -> None:
    """A block that is interrupted, and notes how far it came."""
    with interrupts_wait():
        for _ in range(interrupts):
            signal.raise_signal(signal.SIGINT)
            reached.append("interrupted")
        reached.append("ended")
        if error is not None:
            raise error


def test_an_interrupt_is_raised_after_the_block():
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        _work(reached, interrupts=1)
    assert reached == ["interrupted", "ended"]


def test_a_second_interrupt_goes_through_at_once():
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        _work(reached, interrupts=2)
    assert reached == ["interrupted"]


def test_an_interrupt_comes_before_an_error_of_the_block():
    with pytest.raises(KeyboardInterrupt) as caught:
        _work([], interrupts=1, error=ValueError("of the model"))
    assert isinstance(caught.value.__context__, ValueError)


def test_without_an_interrupt_nothing_happens():
    with interrupts_wait():
        pass
    with pytest.raises(ValueError, match="of the model"), interrupts_wait():
        raise ValueError("of the model")


def test_an_ignored_interrupt_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_go_on_as_they_are():
    done = []

    def work() -> None:
        with interrupts_wait():
            done.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [signal.default_int_handler]
