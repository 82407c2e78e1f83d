"""How to talk to an HTTP endpoint: shape of the messages, pace, patience, authorisation."""

from __future__ import annotations

import ipaddress
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unweave.errors import InvalidInput

ROWS, ROW, FLAT, N_ROWS, N_INPUTS = "$rows", "$row", "$flat", "$n_rows", "$n_inputs"
"""Words of a request template that are replaced: the rows as a list of lists, the only row as a list, all
numbers as one list, and the two lengths."""
_CARRIERS = (ROWS, ROW, FLAT)
_EXAMPLE = '{"instances": "$rows"}'


@dataclass(frozen=True)
class HttpOptions:
    """Everything about an endpoint but its address. The defaults fit the reference server.

    Example
    -------
    >>> HttpOptions(request={"inputs": "$rows"}, answers="outputs.*.score", token_env="MODEL_KEY").batch_rows
    """

    request: Any = field(default=_EXAMPLE, repr=False)
    """JSON text, or the structure itself, in which ``"$rows"`` stands for the rows as a list of lists,
    ``"$row"`` for the only row (one row per request), ``"$flat"`` for all numbers in one list; ``"$n_rows"``
    and ``"$n_inputs"`` for the lengths. Kept as text; not shown, since it may hold a key."""
    answers: str = "predictions"
    """Where the answers are in the response: names and indices with dots between, ``*`` for every entry of a
    list: ``"data.0.values"``, ``"predictions.*.score"``; ``""`` if the response is the list of answers."""
    n_inputs: int | None = None
    """Numbers per row; None to ask ``GET metadata`` beside the endpoint."""
    n_outputs: int | None = None
    """Numbers per answer; None to take them from the metadata or the first answer."""
    batch_rows: int | None = None
    """Most rows per request; None for up to 1024, fewer for long rows; 1 for one row per request."""
    concurrency: int = 4
    """Most requests in flight."""
    requests_per_second: float | None = None
    """Most requests per second, retries included; None for no limit."""
    rows_per_second: float | None = None
    """Most rows per second, retries included; None for no limit."""
    retries: int = 6
    """How often a request that got no usable answer is sent again."""
    backoff_seconds: float = 0.2
    """Pause before the first retry; it doubles each time, and is shortened by up to a half at random."""
    longest_pause_seconds: float = 120.0
    """Longest pause: caps the back-off, and a ``Retry-After`` beyond it ends the call."""
    timeout_seconds: float = 30.0
    """Longest time from sending a request to the last byte of its answer."""
    interrupt_seconds: float = 2.0
    """Time that requests under way get to finish after Ctrl-C; their answers are as good as paid for."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers; their values are never shown."""
    token_env: str | None = None
    """Name of the environment variable that holds the key; its value is never shown."""
    token_header: str = "Authorization"
    """Header that carries the key."""
    token_prefix: str = "Bearer "
    """What stands before the key in that header."""
    verify_tls: bool = True
    """Whether the certificate of an https endpoint is checked."""
    ca_file: str | Path | None = None
    """Certificates (PEM) to trust instead of the usual ones."""
    max_answer_bytes: int = 64 * 2**20
    """Largest response that is read."""
    seed: int = 0
    """Of the random part of the pauses."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "request", _template_text(self.request))
        object.__setattr__(self, "headers", _checked_headers(self.headers))
        for name, least in (("n_inputs", 1), ("n_outputs", 1), ("batch_rows", 1)):
            if getattr(self, name) is not None:
                _check_whole(self, name, least)
        for name, least in (("concurrency", 1), ("retries", 0), ("max_answer_bytes", 1), ("seed", 0)):
            _check_whole(self, name, least)
        for name in ("requests_per_second", "rows_per_second"):
            if getattr(self, name) is not None:
                _check_positive(self, name)
        for name in ("backoff_seconds", "longest_pause_seconds", "timeout_seconds", "interrupt_seconds"):
            _check_positive(self, name)
        _check_texts(self)
        if self.one_row and self.batch_rows not in (None, 1):
            raise InvalidInput(
                f'batch_rows must be 1 with a request that holds "$row". Got {self.batch_rows} instead. '
                'Use "$rows" to send several rows at once.'
            )

    @property
    def one_row(self) -> bool:
        """Whether a request carries exactly one row, and so its response exactly one answer."""
        return _carrier_of(json.loads(self.request)) == ROW


def _template_text(request: Any) -> str:
    """Return the template as JSON text, or say what is wrong with it."""
    template = request
    if isinstance(request, str):
        try:
            template = json.loads(request)
        except ValueError:
            template = request  # "$rows" itself is a template: the body is the list of rows
    try:
        text = json.dumps(template, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"request must be JSON. It is not ({error}). For example {_EXAMPLE}.") from error
    _carrier_of(template)
    return text


def _carrier_of(template: Any) -> str:
    """Return the one word of the template that carries rows; refuse none, and several."""
    found = [word for word in _words(template) if word in _CARRIERS]
    if len(found) != 1:
        got = " and ".join(found) or "none of them"
        raise InvalidInput(
            f'request must hold exactly one of "$rows", "$row" and "$flat", as a value. Got {got} instead. '
            f"For example {_EXAMPLE}."
        )
    return found[0]


def _words(template: Any) -> list[str]:
    """Return all texts that occur as values."""
    if isinstance(template, str):
        return [template]
    if isinstance(template, Mapping):
        return [word for value in template.values() for word in _words(value)]
    if isinstance(template, list | tuple):
        return [word for value in template for word in _words(value)]
    return []


def _checked_headers(headers: Any) -> dict[str, str]:
    """Return a copy; names and values must be text that fits into a header. Values are never shown."""
    if not isinstance(headers, Mapping):
        raise InvalidInput(f"headers must map names to texts. Got {type(headers).__name__} instead.")
    for name, value in headers.items():
        if not isinstance(name, str) or not name.isascii() or not name or not name.isprintable():
            raise InvalidInput(f"the name of a header must be plain text. Got {name!r} instead.")
        if not is_header_value(value):
            raise InvalidInput(f"the value of header {name!r} must be one line of plain text. It is not.")
    return dict(headers)


def is_header_value(value: Any) -> bool:
    """Whether ``value`` may stand in a header: one line of printable ASCII."""
    return isinstance(value, str) and value.isascii() and value.isprintable()


def is_loopback(host: str) -> bool:
    """Whether ``host`` can only be reached from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_whole(options: HttpOptions, name: str, least: int) -> None:
    value = getattr(options, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(f"{name} must be a whole number >= {least}. Got {value!r} instead.")


def _check_positive(options: HttpOptions, name: str) -> None:
    value = getattr(options, name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise InvalidInput(f"{name} must be a positive number. Got {value!r} instead.")


def _check_texts(options: HttpOptions) -> None:
    if not isinstance(options.answers, str):
        raise InvalidInput(
            f"answers must be a path such as 'data.0.values'. Got {options.answers!r} instead."
        )
    if options.token_env is not None and (not isinstance(options.token_env, str) or not options.token_env):
        raise InvalidInput(
            f"token_env must be the name of an environment variable. Got {options.token_env!r} instead."
        )
    if not is_header_value(options.token_header) or not is_header_value(options.token_prefix):
        raise InvalidInput("token_header and token_prefix must be plain text. They are not.")
