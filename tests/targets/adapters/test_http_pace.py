"""Rates are kept, pauses grow, and what the endpoint asks for is done."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from unweave.targets.adapters.http_options import HttpOptions
from unweave.targets.adapters.http_pace import Bucket, Pace, retry_after_seconds


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_bucket_never_exceeds_its_rate():
    clock = Clock()
    bucket = Bucket(10.0, clock)
    rng = np.random.default_rng(1000)
    starts, costs = [], []
    for _ in range(500):
        clock.now += rng.exponential(0.05)
        costs.append(rng.integers(1, 6))
        starts.append(bucket.reserve(costs[-1]))
    spent = np.concatenate([[0], np.cumsum(costs)])
    # Over any stretch from request i to request j: what was spent before j fits into the time between them.
    times = np.array(starts)
    gaps = times[None, :] - times[:, None]
    used = spent[None, :-1] - spent[:-1, None]
    later = np.triu_indices(500, 1)
    assert (used[later] <= 10.0 * gaps[later] + 1e-6).all()
    assert (np.diff(times) >= 0).all()


def test_no_limits_no_waiting():
    pace = Pace(HttpOptions(), Clock())
    assert [pace.turn(1000) for _ in range(5)] == [0.0] * 5


def test_both_limits_hold():
    pace = Pace(HttpOptions(requests_per_second=2, rows_per_second=10), Clock())
    assert [pace.turn(n) for n in (20, 1, 1, 1)] == pytest.approx([0.0, 2.0, 2.1, 2.2])
    pace = Pace(HttpOptions(requests_per_second=2, rows_per_second=1000), Clock())
    assert [pace.turn(1) for _ in range(3)] == pytest.approx([0.0, 0.5, 1.0])


def test_a_busy_endpoint_holds_everybody():
    clock = Clock()
    pace = Pace(HttpOptions(), clock)
    pace.hold_all(3.0)
    pace.hold_all(1.0)
    assert pace.turn(1) == pytest.approx(3.0)
    clock.now += 5
    assert pace.turn(1) == 0.0


def test_backoff_doubles_and_is_capped():
    options = HttpOptions(backoff_seconds=0.1, longest_pause_seconds=5.0, seed=3)
    pauses = [Pace(options).backoff(attempt) for attempt in range(12)]
    full = np.minimum(5.0, 0.1 * 2.0 ** np.arange(12))
    assert (pauses <= full).all()
    assert (pauses >= 0.5 * full).all()
    assert pauses == [Pace(options).backoff(attempt) for attempt in range(12)]
    one = Pace(options)
    assert len({one.backoff(20) for _ in range(10)}) == 10
    assert one.backoff(10_000) <= 5.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Fri, 02 Jan 2026 00:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("", None),
    ],
)
def test_retry_after(header, seconds):
    assert retry_after_seconds(header, lambda: datetime(2026, 1, 2, tzinfo=UTC)) == seconds
