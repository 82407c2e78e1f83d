"""Who may talk to the page: checks that every request passes before any route sees it.

- **Host.** On loopback only names of this machine are answered, so that a foreign name that was made to point
  to 127.0.0.1 (DNS rebinding) reaches nothing.
- **Origin.** What changes something must come from this page itself: Origin (or Referer) must name the same
  host and port as Host. A request that carries the key in a header needs none, since no other page knows it.
- **Key.** If there is one, a cookie made from it or ``Authorization: Bearer KEY`` is required.
- **Headers** on every answer: no foreign content, no inline script, no frames, no guessing of types.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unweave.errors import InvalidInput
from unweave.targets.adapters.http_options import is_loopback

LEAST_KEY = 16
"""Characters of a key: shorter ones can be guessed."""
SESSION_SECONDS = 12 * 3600
LOGIN = "/login"
CONTENT_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-popups"
)
"""A report is a document of its own: it may style itself, and do nothing else."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_READING = ("GET", "HEAD")
_STATIC = "/static/"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Access:
    """Where the page is served, and the key that it asks for."""

    host: str
    key: str | None = None

    def __post_init__(self) -> None:
        if self.key is None and not is_loopback(self.host):
            raise InvalidInput(
                f"--token-env must be given to serve beyond this machine. Got none for --host {self.host} "
                "instead. Put a long random text into an environment variable, and give its name."
            )
        if self.key is not None and (len(self.key) < LEAST_KEY or not self.key.isascii()):
            raise InvalidInput(
                f"The key in the variable that --token-env names must have {LEAST_KEY} plain characters or "
                f"more. Got {len(self.key)} instead. For example the output of: openssl rand -hex 24."
            )

    def is_key(self, text: str) -> bool:
        """Whether ``text`` is the key; takes the same time whatever it is."""
        return self.key is not None and hmac.compare_digest(text.encode(), self.key.encode())

    def new_cookie(self) -> str:
        """Return a cookie that expires after `SESSION_SECONDS`, signed with the key without revealing it."""
        until = str(int(time.time()) + SESSION_SECONDS)
        return f"{until}.{self._signature(until)}"

    def is_cookie(self, value: str) -> bool:
        """Whether ``value`` is a cookie of ours that is still good."""
        until, _, signature = value.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(until).encode()):
            return False
        return until.isascii() and until.isdecimal() and int(until) >= time.time()

    def _signature(self, until: str) -> str:
        return hmac.new((self.key or "").encode(), f"unweave {until}".encode(), hashlib.sha256).hexdigest()


class Guard:
    """Lets through what may pass, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access, cookie_name: str) -> None:
        self._app, self._access, self._cookie_name = app, access, cookie_name
        self._local = is_loopback(access.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # no websockets here

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(message)
            await send(message)

        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not pass; None if it may."""
        headers = Headers(scope=scope)
        if self._local and _host_name(headers.get("host", "")) not in _LOOPBACK_NAMES:
            return _refused(421, "This page is only answered under the names localhost and 127.0.0.1.")
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        by_header = self._access.is_key(bearer)
        if scope["method"] not in _READING and not by_header and not _same_origin(headers):
            return _refused(403, "This must be done from the page itself. Reload it and try again.")
        if self._access.key is None or by_header or _is_open(scope["path"]):
            return None
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie_name, "")
        if self._access.is_cookie(cookie):
            return None
        if scope["method"] in _READING and not scope["path"].startswith("/api/"):
            return RedirectResponse(LOGIN, status_code=303)
        return _refused(401, "The key must be given first. Open the page again.")


def _is_open(path: str) -> bool:
    return path == LOGIN or path.startswith(_STATIC)


def _host_name(host: str) -> str:
    """Return the name in a Host header, without the port; empty if it is none."""
    try:
        parts = urlsplit(f"//{host}")
        return "" if parts.path or parts.query or "@" in parts.netloc else (parts.hostname or "")
    except ValueError:
        return ""


def _same_origin(headers: Headers) -> bool:
    """Whether the request says that it comes from a page of this very host and port."""
    said = headers.get("origin") or headers.get("referer")
    host = headers.get("host", "")
    try:
        parts = urlsplit(said or "")
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and parts.netloc.lower() == host.lower()


def _add_headers(message: MutableMapping[str, Any]) -> None:
    headers = MutableHeaders(raw=message["headers"])
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
    message["headers"] = headers.raw


def _refused(code: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=code)
