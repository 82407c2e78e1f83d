"""Whom a server on this machine answers: the names in Host and Origin, which a browser cannot make up.

A page from elsewhere may have a name that was made to point to 127.0.0.1 (DNS rebinding), or send requests to
127.0.0.1 from the browser of whoever reads it. Host tells the first, Origin the second.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from unweave.targets.adapters.http_options import is_loopback

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_own_host(header: str, bound: str) -> bool:
    """Whether the header ``Host`` names a server on ``bound``; beyond this machine any name does.

    >>> is_own_host("127.0.0.2:8080", "127.0.0.2"), is_own_host("evil.example", "127.0.0.1")
    (True, False)
    """
    return not is_loopback(bound) or _host_name(header) in (*_LOOPBACK_NAMES, bound.lower())


def is_same_origin(said: str | None, host: str) -> bool:
    """Whether ``said``, an Origin or Referer, is a page of the very host and port in ``host``."""
    try:
        parts = urlsplit(said or "")
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and parts.netloc.lower() == host.lower()


def _host_name(host: str) -> str:
    """Return the name in a Host header, without the port; empty if it is none."""
    try:
        parts = urlsplit(f"//{host}")
        return "" if parts.path or parts.query or "@" in parts.netloc else (parts.hostname or "")
    except ValueError:
        return ""
