"""When the next request may go: rate limits, pauses that the endpoint asked for, back-off before a retry.

A bucket fills with ``rate`` tokens per second and holds none in store: a request of cost c may start when
the bucket is not in debt, and puts it c tokens into debt. So in any time T at most rate T + c is spent, c the
cost of one request, and there is no burst after a rest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import numpy as np

from unweave.targets.adapters.http_options import HttpOptions

_LEAST_BACKOFF_SHARE = 0.5  # a pause is between this share of the back-off and all of it


class Bucket:
    """Hands out start times such that at most ``rate`` tokens per second are spent.

    >>> bucket = Bucket(rate=2.0, clock=lambda: 10.0)
    >>> bucket.reserve(1), bucket.reserve(1), bucket.reserve(1)
    (10.0, 10.5, 11.0)
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._free = clock()  # when the debt is paid

    def reserve(self, cost: float) -> float:
        """Take ``cost`` tokens and return the time at which they may be spent."""
        start = max(self._free, self._clock())
        self._free = start + cost / self._rate
        return start


class Pace:
    """Makes every request of a target wait for its turn; shared by all threads.

    ``options`` say the limits per second, the back-off and the seed; ``clock`` returns seconds.
    """

    def __init__(self, options: HttpOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options, self._clock = options, clock
        self._lock = threading.Lock()
        self._rng = np.random.default_rng(options.seed)
        self._not_before = -np.inf
        limits = ((options.requests_per_second, False), (options.rows_per_second, True))
        self._buckets = [(Bucket(rate, clock), by_rows) for rate, by_rows in limits if rate is not None]

    def turn(self, n_rows: int) -> float:
        """Reserve a request of ``n_rows`` rows and return the seconds to wait before sending it."""
        with self._lock:
            starts = [bucket.reserve(n_rows if by_rows else 1) for bucket, by_rows in self._buckets]
            return max(0.0, max([*starts, self._not_before]) - self._clock())

    def hold_all(self, seconds: float) -> None:
        """Send nothing for ``seconds``: the endpoint has said that it is too busy for anybody."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock() + seconds)

    def backoff(self, attempt: int) -> float:
        """Return the seconds before retry number ``attempt`` (0, 1, ...): doubling, capped, partly random.

        b 2^attempt (1/2 + u/2), u uniform, so that requests which failed together do not return together.
        """
        longest = self._options.longest_pause_seconds
        full = min(longest, self._options.backoff_seconds * 2.0 ** min(attempt, 60))
        with self._lock:
            share = self._rng.uniform(_LEAST_BACKOFF_SHARE, 1.0)
        return float(full * share)


def retry_after_seconds(header: str | None, now: Callable[[], datetime] | None = None) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks for, in either form; None if it says nothing.

    >>> retry_after_seconds("7")
    7.0
    """
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    moment = datetime.now(UTC) if now is None else now()
    return max(0.0, (when - moment).total_seconds())
