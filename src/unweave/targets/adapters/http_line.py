"""One connection to an endpoint, whose requests end in time and whose answers have a size.

httpx limits the time of each read and unpacks whatever it is sent. An endpoint that sends a byte now and then
would hold a request for ever, and two kilobytes may unpack to gigabytes. So a timer cuts the connection, and
answers are unpacked here, no further than they may be long. The system's search for the address of a name has
no limit either: it runs beside the request first, which does not wait for it longer than it may take.
"""

from __future__ import annotations

import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx

ENCODING = "gzip"
"""The only way in which an answer may be packed, once."""
_GZIP = 16 + zlib.MAX_WBITS  # how zlib is told to expect it


class Line:
    """A client with a single connection; one thread uses it at a time."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._socket: socket.socket | None = None
        self._latest = 0.0
        self.is_cut = False
        """Whether a request took too long; then the connection is of no use any more."""

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    @contextmanager
    def request(self, method: str, url: str, body: bytes | None, seconds: float) -> Iterator[httpx.Response]:
        """Send a request and give its response; `httpx.ReadTimeout` where all of it took ``seconds``."""
        if seconds <= 0:
            raise httpx.ReadTimeout("no time was left")
        self._latest = time.monotonic() + seconds
        timer = threading.Timer(seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            watched = {"trace": self._watch}
            with self._client.stream(
                method, url, content=body, timeout=seconds, extensions=watched
            ) as response:
                yield response
        except (httpx.HTTPError, OSError) as error:
            if not self.is_cut:
                raise
            raise httpx.ReadTimeout("the answer came too slowly") from error
        finally:
            timer.cancel()

    def _watch(self, event: str, info: dict[str, Any]) -> None:
        """Note the socket of the connection; httpx tells about every step."""
        if event == "connection.connect_tcp.started":
            self._look_up(info["host"], info["port"])
        stream: Any = info.get("return_value")
        if hasattr(stream, "get_extra_info"):
            self._socket = stream.get_extra_info("socket")
            if self.is_cut:
                self._cut()

    def _look_up(self, host: str, port: int) -> None:
        """Wait for the addresses of a name; what is wrong with it shows when it is connected to."""
        done = threading.Event()

        def search() -> None:
            with suppress(OSError, UnicodeError):
                socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            done.set()

        threading.Thread(target=search, daemon=True).start()
        if not done.wait(max(self._latest - time.monotonic(), 0.0)):
            raise httpx.ConnectTimeout("the address of the endpoint was not found in time")

    def _cut(self) -> None:
        """End whatever waits for the connection, from another thread."""
        self.is_cut = True
        if self._socket is not None:
            with suppress(OSError):
                # Not the method of a TLS socket, which would change it under the thread that reads.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def read_body(response: httpx.Response, limit: int) -> bytes:
    """Return the body, unpacked; of a longer one, the first ``limit`` bytes and one more."""
    if response.is_stream_consumed:  # a transport in place of the network had it at once
        return response.content[: limit + 1]
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return _joined(response.iter_raw(), limit)
    if encoding != ENCODING:
        told = f"the answer must be packed with {ENCODING} or not at all, it is packed with {encoding[:40]!r}"
        raise httpx.DecodingError(told)
    return _joined(_unpacked(response.iter_raw(), limit + 1), limit)


def _joined(pieces: Iterator[bytes], limit: int) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > limit:
            break
    return bytes(body[: limit + 1])


def _unpacked(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Yield pieces of at most ``most`` bytes; the packed ones may not be longer in all than that either."""
    decoder, packed = zlib.decompressobj(_GZIP), 0
    for piece in pieces:
        packed += len(piece)
        if packed > most:
            raise httpx.DecodingError("the packed answer is too long")
        rest = piece
        while rest and not decoder.eof:
            try:
                yield decoder.decompress(rest, most)
            except zlib.error as error:
                raise httpx.DecodingError(f"the answer cannot be unpacked ({error})") from error
            rest = decoder.unconsumed_tail
    if not decoder.eof:
        raise httpx.DecodingError("the packed answer ends too early")
