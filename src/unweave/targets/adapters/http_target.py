"""An HTTP endpoint as a target: rows go out in batches, answers come back, nothing that arrived is lost.

A request that got no usable answer is sent again, after a pause. If it never gets one, the answers of all
other requests of the call are handed over inside the exception (`PartialAnswers`), and the ledger keeps
them. What counts as a query is a row whose answer arrived; what was sent in vain is counted apart.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urljoin

import httpx
import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput, TargetError
from unweave.numerics.clock import remaining_seconds
from unweave.targets.adapters.http_batches import BatchJob
from unweave.targets.adapters.http_connection import Connection, Secrets, checked_url, read_secrets
from unweave.targets.adapters.http_failures import HOLD_ALL, RequestFailed, shown_url
from unweave.targets.adapters.http_messages import UnreadableAnswer, parse_json, read_answers, request_body
from unweave.targets.adapters.http_options import HttpOptions
from unweave.targets.adapters.http_pace import Pace

T = TypeVar("T")

_MOST_BATCH_ROWS = 1024  # per request by default
_BATCH_NUMBERS = 1 << 16  # per request by default: a body of about 1.3 MB
_ROUND_ROWS = 64  # linear algebra treats rows in groups; a cut between groups leaves every bit as it was
_CALL_BATCHES_PER_CONNECTION = 8  # in one call of the ledger, which checks its deadline between calls
_UNREADABLE_RETRIES = 2  # while the endpoint never gave a readable answer: an option is wrong, most likely

_log = logging.getLogger("unweave.http")


def open_http_target(
    url: str, options: HttpOptions | None = None, *, transport: httpx.BaseTransport | None = None
) -> HttpTarget:
    """Return the endpoint at ``url`` as a callable from rows (n, D) to answers (n, m).

    Unless ``options.n_inputs`` is given, ``GET metadata`` beside the endpoint is asked for ``n_inputs`` and
    ``n_outputs``; an endpoint without metadata has ``n_inputs`` None. `TargetError` if nobody answers there.

    ``transport`` replaces the network (an `httpx` transport).

    Example: ``open_http_target("http://127.0.0.1:8080/predict", HttpOptions(token_env="MODEL_KEY"))``
    """
    options = HttpOptions() if options is None else options
    if not isinstance(options, HttpOptions):
        raise InvalidInput(f"options must be HttpOptions or None. Got {type(options).__name__} instead.")
    url = checked_url(url)
    secrets = read_secrets(options)
    target = HttpTarget(url, options, Connection(url, options, secrets, transport), secrets)
    if options.n_inputs is None:
        target.read_metadata()
    return target


class HttpTarget:
    """An endpoint that answers rows; made by `open_http_target`. May be called from several threads.

    ``retries`` counts the requests that were sent again and ``retried_rows`` their rows; ``requests`` counts
    all of them. Close it after use, or use it in a ``with`` statement; it also closes when it is dropped.
    """

    def __init__(self, url: str, options: HttpOptions, connection: Connection, secrets: Secrets) -> None:
        self._url, self._connection, self._secrets = url, connection, secrets
        self.options = options
        """How the endpoint is spoken to."""
        self._template = json.loads(options.request)
        self._pace = Pace(options)
        self._lock = threading.Lock()
        self._answered = False
        self.n_inputs = options.n_inputs
        """Numbers per row; None if not known."""
        self.n_outputs = options.n_outputs
        """Numbers per answer; None until the first answer unless it was given."""
        self.requests = self.retries = self.retried_rows = 0
        self._close = weakref.finalize(self, connection.close)

    @property
    def batch_rows(self) -> int:
        """Most rows per request."""
        return _batch_rows(self.options, self.n_inputs or 1)

    @property
    def rows_per_call(self) -> int:
        """Rows of one call that keep every connection busy for a while, yet end soon."""
        return _CALL_BATCHES_PER_CONNECTION * self.options.concurrency * self.batch_rows

    def __repr__(self) -> str:
        return f"HttpTarget({shown_url(self._url)!r}, {self.requests} requests, {self.retries} retried)"

    def __enter__(self) -> HttpTarget:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return open_http_target, (self._url, self.options)  # reopened elsewhere, where the key must be known

    def close(self) -> None:
        """Close the connections."""
        self._close()

    def __call__(self, x: Array) -> Array:
        """Return the answers (n, m) to the rows ``x`` (n, D), both float64.

        Raises `PartialAnswers`, a `TargetError` with what did arrive, if a request fails for good.
        """
        rows = self._checked_rows(x)
        if rows.shape[0] == 0:
            return np.empty((0, self.n_outputs or 0))
        batch_rows, last = _batch_rows(self.options, rows.shape[1]), _last_moment()

        def ask(batch: Array, stop: threading.Event) -> Array:
            return self._ask(batch, stop, last)

        job = BatchJob(rows, batch_rows, ask, self.options.interrupt_seconds)
        # Until something was understood, one request at a time: a mistake in the options costs one batch.
        if not self._answered:
            job.run(1, most=1)
        job.run(self.options.concurrency)
        return job.result(self._explain)

    def read_metadata(self) -> None:
        """Take ``n_inputs`` and ``n_outputs`` from ``GET metadata``, where the endpoint offers that."""
        url = urljoin(self._url, "metadata")

        last = _last_moment()

        def once() -> bytes:
            try:
                return self._connection.exchange("GET", url, None, 0, last - time.monotonic())
            except RequestFailed as failure:
                if failure.status is not None and failure.status not in HOLD_ALL:
                    failure.retry = False  # whatever it says about an address that need not exist
                raise

        try:
            found = parse_json(self._with_retries(once, 0, threading.Event(), last))
        except RequestFailed as failure:
            if failure.status is None or failure.status in (401, *HOLD_ALL):
                raise TargetError(self._explain(failure)) from failure
            return  # it has none, which is usual
        except UnreadableAnswer:
            return
        if isinstance(found, dict):
            self.n_inputs = _positive(found.get("n_inputs"))
            self.n_outputs = self.n_outputs or _positive(found.get("n_outputs"))

    def _ask(self, rows: Array, stop: threading.Event, last: float) -> Array:
        """Ask one batch until it is answered, the retries are used up, ``stop`` is set, or at ``last``."""
        body = request_body(self._template, rows)

        def once() -> Array:
            with self._lock:
                self.requests += 1
            left = last - time.monotonic()
            received = self._connection.exchange("POST", self._url, body, rows.shape[0], left)
            try:
                place, one_row = self.options.answers, self.options.one_row
                answers = read_answers(received, place, rows.shape[0], self.n_outputs, one_row)
            except UnreadableAnswer as error:
                told = self._secrets.hide(str(error))
                failure = RequestFailed(told, retry=True, first_retries=_UNREADABLE_RETRIES)
                raise failure from self._secrets.cause(error)
            with self._lock:
                self._answered = True
                self.n_outputs = self.n_outputs or int(answers.shape[1])
            return answers

        return self._with_retries(once, rows.shape[0], stop, last)

    def _with_retries(self, once: Callable[[], T], n_rows: int, stop: threading.Event, last: float) -> T:
        """Call ``once`` when its turn has come, and again after failures that may pass, until ``last``."""
        attempt, pause = 0, 0.0
        while True:
            wait = min(max(pause, self._pace.turn(n_rows)), last - time.monotonic())
            if stop.wait(max(0.0, wait)):
                told = "must answer every request. It had not answered when the call ended."
                raise RequestFailed(told, retry=False)
            if time.monotonic() >= last:
                tried = f" It was tried {attempt} times." if attempt else ""
                told = f"must answer before the deadline. It did not.{tried}"
                raise RequestFailed(told, retry=False)
            try:
                return once()
            except RequestFailed as failure:
                wanted = self._pause_before_retry(failure, attempt)
                if wanted is None:
                    failure.message += f" It was tried {attempt + 1} times." if attempt else ""
                    raise
                pause, attempt = wanted, attempt + 1
                with self._lock:
                    self.retries += 1
                    self.retried_rows += n_rows
                _log.info("retry in %.2g s: %s", pause, self._explain(failure))

    def _pause_before_retry(self, failure: RequestFailed, attempt: int) -> float | None:
        """Return the seconds to wait; None if another try is useless."""
        retries = self.options.retries
        if not self._answered and failure.first_retries is not None:
            retries = min(retries, failure.first_retries)  # rather a wrong option than a bad moment
        if not failure.retry or attempt >= retries:
            return None
        if failure.after is not None and failure.after > self.options.longest_pause_seconds:
            failure.message += f" It asks to wait {failure.after:.0f} s; longest_pause_seconds is less."
            return None
        pause = max(self._pace.backoff(attempt), failure.after or 0.0)
        if failure.holds_all:
            self._pace.hold_all(pause)
        return pause

    def _explain(self, failure: BaseException) -> str:
        """Return the whole sentence about a failure, without any key that the endpoint may have echoed."""
        told = str(failure) if isinstance(failure, RequestFailed) else f"{type(failure).__name__}: {failure}"
        return self._secrets.hide(f"The endpoint {shown_url(self._url)} {told}")

    def _checked_rows(self, x: Array) -> Array:
        rows = np.asarray(x, dtype=np.float64)
        width = "D" if self.n_inputs is None else str(self.n_inputs)
        if rows.ndim != 2 or (self.n_inputs is not None and rows.shape[1] != self.n_inputs):
            raise InvalidInput(f"x must be an array of shape (n, {width}). Got shape {rows.shape} instead.")
        if not np.isfinite(rows).all():
            raise InvalidInput("x must be finite, since JSON has no other numbers. Some entries are not.")
        return rows


def _batch_rows(options: HttpOptions, n_inputs: int) -> int:
    """Return the rows per request: as the options say, else few enough to keep a request small."""
    if options.one_row:
        return 1
    if options.batch_rows is not None:
        return options.batch_rows
    fitting = min(_MOST_BATCH_ROWS, _BATCH_NUMBERS // n_inputs)
    return max(1, fitting - fitting % _ROUND_ROWS if fitting >= _ROUND_ROWS else fitting)


def _last_moment() -> float:
    """Return when the time of the caller is over, on the clock that all threads share."""
    return time.monotonic() + remaining_seconds()


def _positive(value: Any) -> int | None:
    """Return ``value`` if it is a whole number above 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
