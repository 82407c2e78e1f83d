"""What went wrong with a request: in words, and whether it is worth another try."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

from unweave.targets.adapters.http_messages import excerpt
from unweave.targets.adapters.http_options import HttpOptions
from unweave.targets.adapters.http_pace import retry_after_seconds

_BUSY = (408, 425, 429, 500, 502, 503, 504)  # answers that another moment may change
HOLD_ALL = (429, 503)
"""Statuses that are said to a caller, not about a request: all of its requests wait."""


class RequestFailed(Exception):
    """A request that got no usable answer; the text goes on after "The endpoint ...".

    Parameters
    ----------
    message : what was required, what came instead, what to do.
    retry : whether it is worth another try.
    first_retries : most retries as long as the endpoint never gave an answer; None for as many as later.
    after : seconds that the endpoint asked to wait; None if it did not.
    status : status of the response; None if there was none.
    """

    def __init__(
        self,
        message: str,
        *,
        retry: bool,
        first_retries: int | None = None,
        after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.retry, self.first_retries = message, retry, first_retries
        self.after, self.status = after, status

    def __str__(self) -> str:
        return self.message

    @property
    def holds_all(self) -> bool:
        """Whether the endpoint said it to the caller, rather than about this request."""
        return self.status in HOLD_ALL


def shown_url(url: str) -> str:
    """Return ``url`` as messages show it: without the values of its query, which may be keys.

    >>> shown_url("https://example.org/predict?key=secret")
    'https://example.org/predict?...'
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path}{'?...' if parts.query else ''}"


def transport_failure(error: Exception, options: HttpOptions) -> RequestFailed:
    """Explain an exception of the HTTP client: no connection, no answer, or half of one."""
    for cause in causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = getattr(cause, "verify_message", "") or "unknown authority"
            return _unreachable(
                f"must have a certificate that can be verified. Its own cannot ({why}). Give "
                "the certificates to trust (ca_file), or verify_tls=False if you know who answers.",
                retry=False,
            )
        if isinstance(cause, ssl.SSLError):
            why = getattr(cause, "reason", "") or "an error"
            told = f"must speak TLS. Got {why} instead. Check whether the URL should begin with http://."
            return _unreachable(told, retry=False)
        if isinstance(cause, socket.gaierror):
            return _unreachable(
                "must have a host name that exists. No address was found for it "
                f"({cause.strerror or 'not found'}). Check the spelling and the network."
            )
        if isinstance(cause, ConnectionRefusedError):
            return _unreachable(
                "must be up. It refused the connection. Check host and port, and that it runs."
            )
    if isinstance(error, httpx.ConnectError):
        return _unreachable(f"must be up. It cannot be reached ({error}). Check host, port and network.")
    told = f"must answer every request. It dropped the connection ({type(error).__name__}: {error})."
    if isinstance(error, httpx.TimeoutException):
        told = (
            f"must answer within {options.timeout_seconds:g} s. No complete answer came in that time "
            f"({type(error).__name__}). Raise timeout_seconds or lower batch_rows."
        )
    return RequestFailed(told, retry=True)


def _unreachable(message: str, retry: bool = True) -> RequestFailed:
    """Return the failure of an endpoint that cannot be spoken to: never retried before its first answer."""
    return RequestFailed(message, retry=retry, first_retries=0)


def status_failure(
    status: int, headers: httpx.Headers, body: bytes, options: HttpOptions, n_rows: int
) -> RequestFailed:
    """Explain a response whose status is not 200."""
    said = f", which says {excerpt(body)}" if body.strip() else ""
    if 300 <= status < 400:
        place = headers.get("location", "")
        where = shown_url(place) if "://" in place else place.split("?")[0]
        told = (
            f"must answer itself. Got a redirect (status {status}){where and f' to {where}'} instead. Give "
            "the URL that answers; redirects are not followed, so that no key goes to another host."
        )
    elif status in (401, 403):
        key = (
            "No key was sent: name the environment variable that holds it (token_env)."
            if options.token_env is None
            else f"The key was taken from the environment variable {options.token_env}: check its value, and "
            f"how it is sent (header {options.token_header}, prefix {options.token_prefix!r})."
        )
        told = f"must accept the request. Got status {status}, not authorised, instead. {key}"
    elif status in (404, 405, 410):
        told = f"must exist and take POST. Got status {status} instead{said}. Check the path of the URL."
    elif status == 413:
        told = f"must accept {n_rows} rows per request. Got status 413, too large, instead. Lower batch_rows."
    elif status in _BUSY or status >= 500:
        limit = " Lower requests_per_second or rows_per_second." if status == 429 else ""
        told = f"must answer with status 200. Got status {status} instead{said}.{limit}"
        after = retry_after_seconds(headers.get("retry-after"))
        return RequestFailed(told, retry=True, after=after, status=status)
    else:
        told = (
            f"must answer with status 200. Got status {status} instead{said}. Check that the request has the "
            "form it wants (request)."
        )
    return RequestFailed(told, retry=False, status=status)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the exception, and those it was made from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
