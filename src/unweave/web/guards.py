"""Who may talk to the page: checks that every request passes before any route sees it.

- **Host.** On loopback only names of this machine are answered, so that a foreign name that was made to point
  to 127.0.0.1 (DNS rebinding) reaches nothing (`unweave.serving.origins`).
- **Origin.** What changes something must come from this page itself: Origin (or Referer) must name the same
  host and port as Host. A request that carries the key in a header needs none, since no other page knows it.
- **Key.** If there is one, a cookie made from it or ``Authorization: Bearer KEY`` is required. An address
  with ``?token=KEY`` gives the cookie.
- **Time.** A body that comes too slowly is given up (`unweave.web.slow_clients`).
- **Headers** on every answer: no foreign content, no inline script, no frames, no guessing of types.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unweave.errors import InvalidInput
from unweave.serving.origins import is_own_host, is_same_origin
from unweave.targets.adapters.http_options import is_loopback
from unweave.web.slow_clients import BODY_SECONDS, PAUSE_SECONDS, TimedBody

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
TOKEN = "token"
"""Name of the key in the query of an address."""


@dataclass(frozen=True)
class Access:
    """Where the page is served, and the key that it asks for."""

    host: str
    key: str | None = None

    def __post_init__(self) -> None:
        if self.key is None and not is_loopback(self.host):
            raise InvalidInput(
                f"--token-env must be given to serve beyond this machine, as --host {self.host} does. "
                "Put a long random text into an environment variable, and give its name."
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

    def give_cookie(self, response: Response, name: str, secure: bool) -> None:
        """Let ``response`` set the cookie ``name``."""
        response.set_cookie(
            name,
            self.new_cookie(),
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def _signature(self, until: str) -> str:
        return hmac.new((self.key or "").encode(), f"unweave {until}".encode(), hashlib.sha256).hexdigest()


class Guard:
    """Lets through what may pass, and adds the headers to every answer."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        cookie_name: str,
        pause_seconds: float = PAUSE_SECONDS,
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._app, self._access, self._cookie_name = app, access, cookie_name
        self._pause, self._body = pause_seconds, body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # no websockets here

        body = TimedBody(receive, self._pause, self._body)
        refusal = self._refusal(scope)
        if refusal is not None and scope["method"] not in _READING:
            await body.skip()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Where the body was not read, what follows cannot be told from the next request.
                unread = body.was_late or (refusal is not None and scope["method"] not in _READING)
                _add_headers(message, close=unread)
            await send(message)

        await (self._app if refusal is None else refusal)(scope, body, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not pass; None if it may."""
        headers = Headers(scope=scope)
        if not is_own_host(headers.get("host", ""), self._access.host):
            own = " and ".join(dict.fromkeys(("localhost", "127.0.0.1", self._access.host)))
            return _refused(421, f"This page is only answered under the names {own}.")
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
            said = parse_qs(scope["query_string"].decode("latin-1")).get(TOKEN, [""])[0]
            if not self._access.is_key(said):
                return RedirectResponse(LOGIN, status_code=303)
            response = RedirectResponse("/", status_code=303)  # so that the key leaves the address
            self._access.give_cookie(response, self._cookie_name, scope["scheme"] == "https")
            return response
        return _refused(401, "The key must be given first. Open the page again.")


def _is_open(path: str) -> bool:
    return path == LOGIN or path.startswith(_STATIC)


def _same_origin(headers: Headers) -> bool:
    """Whether the request says that it comes from a page of this very host and port."""
    return is_same_origin(headers.get("origin") or headers.get("referer"), headers.get("host", ""))


def _add_headers(message: MutableMapping[str, Any], close: bool) -> None:
    headers = MutableHeaders(raw=message["headers"])
    if close:
        headers["Connection"] = "close"
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
    message["headers"] = headers.raw


def _refused(code: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=code)
