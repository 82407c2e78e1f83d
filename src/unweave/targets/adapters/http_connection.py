"""One request, one response: address, keys, TLS, and how much is read for how long."""

from __future__ import annotations

import os
import ssl
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import httpx

from unweave.errors import InvalidInput
from unweave.targets.adapters.http_failures import RequestFailed, causes, status_failure, transport_failure
from unweave.targets.adapters.http_line import ENCODING, Line, read_body
from unweave.targets.adapters.http_options import HttpOptions, is_header_value, is_loopback

_LEAST_SECRET_LETTERS = 4  # hiding shorter texts would only garble messages
_KEEP_ALIVE_SECONDS = 30.0  # for an idle connection: many servers close theirs after a minute
_ERROR_BYTES = 4096  # read of a response that is an error: enough for its message


class Secrets:
    """Headers whose values must not be shown, and a way to take them out of a text."""

    def __init__(self, headers: dict[str, str], keys: tuple[str, ...]) -> None:
        self.headers = headers
        secret = {text for text in (*headers.values(), *keys) if len(text) >= _LEAST_SECRET_LETTERS}
        self._texts = sorted(secret, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.headers) or 'none'})"

    def hide(self, text: str) -> str:
        """Return ``text`` with every secret replaced by stars."""
        for secret in self._texts:
            text = text.replace(secret, "***")
        return text

    def cause(self, error: BaseException) -> BaseException | None:
        """Return ``error`` to be chained, or None: whoever prints a chain prints what the endpoint echoed."""
        return error if all(self.hide(str(each)) == str(each) for each in causes(error)) else None


def read_secrets(options: HttpOptions) -> Secrets:
    """Return the headers to send; the key is taken from the environment now."""
    headers = dict(options.headers)
    if options.token_env is None:
        return Secrets(headers, ())
    key = os.environ.get(options.token_env, "").strip()
    if not key or not is_header_value(key):
        got = "one line of other characters" if key else "nothing"
        raise InvalidInput(
            f"the environment variable {options.token_env} must hold the key of the endpoint, in plain text. "
            f"Got {got} instead. Set it, or give another name as token_env."
        )
    headers[options.token_header] = options.token_prefix + key
    return Secrets(headers, (key,))


def checked_url(url: str) -> str:
    """Return ``url`` if it is an http(s) address without a password in it; never show it whole."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidInput(
            "url must be an address such as http://127.0.0.1:8080/predict. This one cannot be read."
        ) from error
    if not usable:
        raise InvalidInput(
            "url must begin with http:// or https:// and name a host. Got "
            f"{f'{parts.scheme}:...' if parts.scheme else 'none of them'} instead. For example "
            "http://127.0.0.1:8080/predict."
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            "url must not hold a user name or password, because addresses are shown. This one does. "
            'Put "Basic ..." into an environment variable and give token_env and token_prefix="".'
        )
    return url


class Connection:
    """Connections to one endpoint, kept alive between requests; as many as may be in flight at once.

    Each has a client of its own, which one thread uses at a time: a pool of connections shared by threads may
    take one that is just receiving its answer for a dead one, and close it.
    """

    def __init__(
        self, url: str, options: HttpOptions, secrets: Secrets, transport: httpx.BaseTransport | None = None
    ) -> None:
        parts = urlsplit(url)
        self._options = options
        self._secrets = secrets
        self._transport = transport
        self._trust_env = not is_loopback(parts.hostname or "")  # no proxy between a machine and itself
        self._tls = _tls(parts, options, self._trust_env)
        self._idle: deque[Line] = deque()

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _lines(self) -> Iterator[Line]:
        """Lend a line that nobody else uses.

        Only after a whole answer is it kept: an interrupt in the midst of a request can leave a connection
        behind that never becomes free.
        """
        try:
            line = self._idle.pop()
        except IndexError:
            line = Line(self._new_client())
        try:
            yield line
        except BaseException:
            line.close()
            raise
        if line.is_cut:
            line.close()  # the time was over just when the answer had come
        else:
            self._idle.append(line)

    def _new_client(self) -> httpx.Client:
        kinds = dict.fromkeys(("Content-Type", "Accept"), "application/json")
        return httpx.Client(
            headers={**kinds, "Accept-Encoding": ENCODING, **self._secrets.headers},
            timeout=self._options.timeout_seconds,
            limits=httpx.Limits(max_connections=1, keepalive_expiry=_KEEP_ALIVE_SECONDS),
            verify=self._tls,
            trust_env=self._trust_env,
            follow_redirects=False,
            transport=self._transport,
        )

    def exchange(self, method: str, url: str, body: bytes | None, n_rows: int, seconds: float) -> bytes:
        """Send one request and return the body of its response; `RequestFailed` unless it is a success.

        It ends after ``seconds``, or ``timeout_seconds`` if those are fewer, whatever the endpoint does.
        """
        most, longest = self._options.max_answer_bytes, min(seconds, self._options.timeout_seconds)
        try:
            with self._lines() as line, line.request(method, url, body, longest) as response:
                success = response.is_success
                received = read_body(response, most if success else _ERROR_BYTES)
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            failure = transport_failure(error, self._options)
            failure.message = self._secrets.hide(failure.message)
            raise failure from self._secrets.cause(error)
        if not success:
            failure = status_failure(response.status_code, response.headers, received, self._options, n_rows)
            failure.message = self._secrets.hide(failure.message)
            raise failure
        if len(received) > most:
            raise RequestFailed(
                f"must answer with at most {most} bytes. It answers with more. Lower batch_rows, or raise "
                "max_answer_bytes.",
                retry=False,
            )
        return received


def _tls(parts: SplitResult, options: HttpOptions, trust_env: bool) -> ssl.SSLContext | bool:
    """Return how to check the endpoint's certificate, read once; nothing to check without TLS."""
    if parts.scheme != "https" or not options.verify_tls:
        return False
    if options.ca_file is None:
        return httpx.create_ssl_context(trust_env=trust_env)
    if not Path(options.ca_file).is_file():
        raise InvalidInput(f"ca_file must be an existing file. Got {str(options.ca_file)!r} instead.")
    try:
        return ssl.create_default_context(cafile=str(options.ca_file))
    except ssl.SSLError as error:
        raise InvalidInput(
            f"ca_file must hold certificates in PEM form. Got {str(options.ca_file)!r} instead."
        ) from error
