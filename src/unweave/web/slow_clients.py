"""Connections that send slowly, or nothing, are closed: uvicorn itself waits for them for ever."""

from __future__ import annotations

import asyncio
import contextlib
from typing import ClassVar

from starlette.types import Message, Receive
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 200
"""Beyond that, requests are answered with status 503; a browser opens six."""
PAUSE_SECONDS = 20.0
"""Longest pause within the body of a request."""
BODY_SECONDS = 600.0
"""Longest time that the body of a request may take: 64 MB at one megabit per second."""
_SKIPPED_BYTES = 65_536  # of the body of a refused request that are read, ...
_SKIP_SECONDS = 1.0  # ... if they come so soon


class ImpatientProtocol(H11Protocol):
    """Closes a connection whose next request does not begin, or whose head does not end, in time."""

    head_seconds: ClassVar[float] = 20.0
    """From the connection, or the answer before, to the last line of a request's head."""
    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """See whether a request has begun."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _watch(self) -> None:
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy:
            self._stop_waiting()
        elif self._closing is None:
            self._closing = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None


class TimedBody:
    """Receives the body of a request; one that comes too slowly ends as if the client had gone."""

    def __init__(self, receive: Receive, pause_seconds: float, body_seconds: float) -> None:
        self._receive, self._pause = receive, pause_seconds
        self._last = asyncio.get_running_loop().time() + body_seconds
        self._ended = False
        self.was_late = False
        """Whether the body did not come in time."""

    async def __call__(self) -> Message:
        """Return the next part of the body."""
        if self._ended:
            return await self._receive()
        left = self._last - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(self._pause, left)):
                message = await self._receive()
        except TimeoutError:
            self.was_late = True
            return {"type": "http.disconnect"}
        self._ended = not message.get("more_body", False)
        return message

    async def skip(self) -> None:
        """Read and forget a short body: while a client still sends, an early answer may never reach it."""
        read = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SKIP_SECONDS):
                while not self._ended and not self.was_late and read < _SKIPPED_BYTES:
                    read += len((await self()).get("body", b""))
