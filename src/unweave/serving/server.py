"""The reference server: ``POST /predict``, ``GET /metadata``, ``/health`` and ``/count``.

Rows are counted by what became of them: answered, dropped, damaged, or given up by the client before their
answer was ready. So a test can prove that every answer that was paid for arrived, and arrived once.
"""

from __future__ import annotations

import contextlib
import hmac
import math
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from unweave.errors import InvalidInput
from unweave.serving.faults import Dice, Fault, Faults
from unweave.serving.model import ServedModel, read_rows, to_json, write_answers
from unweave.serving.origins import is_own_host, is_same_origin
from unweave.targets.adapters.http_options import is_loopback

_MOST_BODY_BYTES = 256 * 2**20  # of a request: a million rows of ten numbers as text
_IDLE_SECONDS = 60.0  # after which a silent connection is closed
_ARRIVAL_SECONDS = 120.0  # from the answer before to the last byte of a request: some send byte by byte
_WAITING_CONNECTIONS = 128  # that the system keeps until the server accepts them: the usual number
_PAGE = b"<html><head><title>Service</title></head><body><h1>Something went wrong</h1></body></html>"
_COUNTS = ("rows_answered", "rows_dropped", "rows_corrupted", "rows_abandoned", "requests", "connections")


class ReferenceServer:
    """Serves ``model`` on ``host`` (loopback by default) until it is closed.

    Parameters
    ----------
    model : what answers.
    port : 0 for any free one; ``url`` tells which.
    faults : what goes wrong; nothing by default.
    token : key that every request but ``/health`` must bring as ``Authorization: Bearer ...``; None for none.

    Example
    -------
    >>> from unweave import random_network
    >>> net = random_network([3, 2, 1], seed=0)
    >>> with ReferenceServer(ServedModel(net, 3, 1)) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        model: ServedModel,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        faults: Faults | None = None,
        token: str | None = None,
    ) -> None:
        if token is None and not is_loopback(host):
            raise InvalidInput(
                f"token must be given to serve beyond this machine, as host {host} does. On the "
                "command line give --token-env, the name of a variable that holds it."
            )
        self.model, self.token, self.host = model, token, host
        self.faults = Faults() if faults is None else faults
        self.dice = Dice(self.faults)
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        try:
            self._http = _Server(self, host, port)
        except (OSError, OverflowError) as error:
            raise InvalidInput(
                f"host and port must be free to listen on. Got {host}:{port} instead ({error}). Give "
                "port 0 for any free one."
            ) from error
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Address of the predictions."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/predict"

    @property
    def counts(self) -> dict[str, int]:
        """What became of the rows so far, and how many requests and connections there were."""
        with self._lock:
            return {name: self._counts[name] for name in _COUNTS}

    def count(self, **changes: int) -> None:
        """Add to the counts."""
        with self._lock:
            self._counts.update(changes)

    def start(self) -> ReferenceServer:
        """Answer in a thread of its own from now on."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
            self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening and close every connection; requests under way get no answer."""
        if self._thread is not None:
            self._http.shutdown()
            self._thread.join()
            self._thread = None
        self._http.server_close()

    def __enter__(self) -> ReferenceServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """One thread per connection; all connections are closed with the server."""

    daemon_threads = True
    request_queue_size = _WAITING_CONNECTIONS

    def __init__(self, reference: ReferenceServer, host: str, port: int) -> None:
        self.reference = reference
        self._open: dict[Any, float] = {}  # connection -> when its request must have arrived
        self._guard = threading.Lock()
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.reference.count(connections=1)
        self.expect_request(request)
        super().process_request(request, client_address)

    def expect_request(self, connection: Any) -> None:
        """Close ``connection`` unless a whole request comes in time."""
        with self._guard:
            self._open[connection] = time.monotonic() + _ARRIVAL_SECONDS

    def request_arrived(self, connection: Any) -> None:
        """Leave ``connection`` open for as long as its answer takes."""
        with self._guard:
            self._open[connection] = math.inf

    def service_actions(self) -> None:
        """Close the connections that keep the server waiting; called a few times per second."""
        now = time.monotonic()
        with self._guard:
            late = [connection for connection, until in self._open.items() if until < now]
        _wake_up(late)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        with self._guard:
            connections = list(self._open)
        _wake_up(connections)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that went away."""


def _wake_up(connections: Iterable[socket.socket]) -> None:
    """End ``connections``: the thread of each one wakes up and closes it."""
    for connection in connections:
        with contextlib.suppress(OSError):  # gone already
            connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """The requests of one connection, which is kept alive between them."""

    protocol_version = "HTTP/1.1"
    server_version = "unweave"
    sys_version = ""
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True
    server: _Server

    def handle_one_request(self) -> None:
        """Wait for a request and answer it."""
        self.server.expect_request(self.connection)
        super().handle_one_request()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self.server.request_arrived(self.connection)
        if self._foreign():
            return
        reference = self.server.reference
        pages: dict[str, dict[str, Any]] = {
            "/health": {"status": "ok"},
            "/metadata": {"n_inputs": reference.model.n_inputs, "n_outputs": reference.model.n_outputs},
            "/count": reference.counts,
        }
        path = self.path.partition("?")[0]
        if path != "/health" and not self._authorized():
            return
        if path in pages:
            self._reply(200, to_json(pages[path]))
        else:
            self._refuse(404, f"there is no {path!r}; GET one of {', '.join(pages)}, or POST /predict")

    def do_POST(self) -> None:
        body = self._body()
        self.server.request_arrived(self.connection)
        if body is None or self._foreign() or not self._authorized():
            return
        if self.path.partition("?")[0] not in ("/", "/predict"):
            return self._refuse(404, "POST /predict")
        reference = self.server.reference
        try:
            rows = read_rows(body, reference.model.n_inputs)
        except InvalidInput as error:
            return self._refuse(400, str(error))
        fault, delay = reference.dice.fate()
        reference.count(requests=1)
        if fault is Fault.DROP:
            reference.count(rows_dropped=rows.shape[0])
            return self._hang_up(delay)
        with np.errstate(all="ignore"):
            answers = reference.dice.worsen(reference.model(rows))
        time.sleep(delay)
        if fault is Fault.NONE:
            self._answer(write_answers(answers), rows.shape[0])
        else:
            reference.count(rows_corrupted=rows.shape[0])
            self._damage(fault, answers)

    def _answer(self, body: bytes, n_rows: int) -> None:
        """Send a good answer; it counts only if somebody was there to take it."""
        reference = self.server.reference
        if self._abandoned():
            reference.count(rows_abandoned=n_rows)
            self.close_connection = True
            return
        reference.count(rows_answered=n_rows)  # before it is sent: a client that has it finds it counted
        try:
            self._reply(200, body)
        except OSError:
            reference.count(rows_answered=-n_rows, rows_abandoned=n_rows)
            raise

    def _damage(self, fault: Fault, answers: Any) -> None:
        """Send one of the answers that no client can use."""
        body = write_answers(answers)
        if fault is Fault.TRUNCATED:
            self._reply(200, body[: len(body) // 2])
        elif fault is Fault.CUT:
            self._reply(200, body[: len(body) // 2], length=len(body))
            self._hang_up(0.0)
        elif fault is Fault.HTML:
            self._reply(200, _PAGE, kind="text/html")
        elif fault is Fault.SHAPE:
            self._reply(200, write_answers(answers[:-1]))
        else:
            self._refuse(500, "an error made on purpose")

    def _hang_up(self, delay: float) -> None:
        time.sleep(delay)
        self.close_connection = True

    def _abandoned(self) -> bool:
        """Whether the client has closed the connection."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _body(self) -> bytes | None:
        """Return the body of the request; None, after a refusal, if its length is missing or too large."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BODY_BYTES:
            self.close_connection = True  # what follows cannot be told from the next request
            status = 413 if length.isdecimal() else 411
            self._refuse(status, f"Content-Length must be given and at most {_MOST_BODY_BYTES}")
            return None
        return self.rfile.read(int(length))

    def _foreign(self) -> bool:
        """Refuse what comes through a foreign name of this machine, or from a page of another origin."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not is_own_host(host, self.server.reference.host):
            self._refuse(421, "this server is only answered under the names of this machine")
        elif origin is not None and not is_same_origin(origin, host):
            self._refuse(403, "pages from elsewhere may not ask this server")
        else:
            return False
        return True

    def _authorized(self) -> bool:
        token = self.server.reference.token
        given = self.headers.get("Authorization", "")
        if token is None or hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            return True
        self._refuse(401, "a valid key is needed", {"WWW-Authenticate": "Bearer"})
        return False

    def _refuse(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        self._reply(status, to_json({"error": message}), headers=headers)

    def _reply(
        self,
        status: int,
        body: bytes,
        *,
        kind: str = "application/json",
        length: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a whole response in one piece: two would wait for each other on some networks."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self._headers_buffer.append(b"\r\n" + body)  # type: ignore[attr-defined]
        self.flush_headers()
