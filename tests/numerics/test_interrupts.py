"""Interrupts that get lost on their way are raised again."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import pytest

from unweave.numerics import clock, interrupts


@pytest.fixture(autouse=True)
def _default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background shells ignore it
    yield
    signal.signal(signal.SIGINT, before)


def lose_one() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_lost_interrupt_is_raised_at_the_next_look_at_the_clock() -> None:
    with interrupts.remembered():
        clock.check()
        lose_one()
        with pytest.raises(KeyboardInterrupt):
            clock.check()
        with pytest.raises(KeyboardInterrupt):
            clock.out_of_time()


def test_one_that_was_taken_is_not_raised_again() -> None:
    with interrupts.remembered():
        lose_one()
        interrupts.taken()
        clock.check()


def test_nothing_is_left_behind() -> None:
    with interrupts.remembered(), interrupts.remembered():
        lose_one()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    clock.check()
    lose_one()  # outside, nobody remembers
    clock.check()


def test_the_outer_one_still_remembers_when_an_inner_one_has_ended() -> None:
    with interrupts.remembered():
        with interrupts.remembered():
            lose_one()
        with pytest.raises(KeyboardInterrupt):
            interrupts.look()


def test_a_program_that_handles_interrupts_itself_is_left_alone() -> None:
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    with interrupts.remembered():
        signal.raise_signal(signal.SIGINT)
        clock.check()
    assert seen == [signal.SIGINT]


def test_another_thread_changes_no_handler() -> None:
    def run() -> None:
        with interrupts.remembered():
            seen.append(signal.getsignal(signal.SIGINT))

    seen: list[object] = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
