"""``unweave serve``: the page to drive recoveries from a browser, served on this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from unweave.cli.arguments import key_from_environment
from unweave.cli.exits import DONE
from unweave.errors import InvalidInput, UnweaveError

_PACKAGES = ("fastapi", "uvicorn", "python_multipart")
_WAITING_CONNECTIONS = 128
_GRACE_SECONDS = 2  # for requests that are under way when the server is stopped


@dataclass(frozen=True)
class ServePageOptions:
    """The command's options, as typed."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8377
    token_env: str | None = None
    max_upload_mb: float = 64.0
    as_json: bool = False


def run_serve(options: ServePageOptions) -> int:
    """Serve until Ctrl-C or SIGTERM, then return 0. One line with the address goes to stdout."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UnweaveError(
            f"{', '.join(missing)} must be installed to serve the page. Got no such package instead. "
            "Install it: pip install 'unweave[web]'."
        )
    import uvicorn

    from unweave.web.app import PageOptions, create_app

    key = key_from_environment(options.token_env)
    _check_folder(options.folder)
    with _listening(options.host, options.port) as listener:
        port = listener.getsockname()[1]
        app = create_app(
            PageOptions(options.folder, options.host, port, key, options.token_env, options.max_upload_mb)
        )
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                ws="none",
                lifespan="on",
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

        def stop(_signal: int, _frame: FrameType | None) -> None:
            server.should_exit = True

        # Before the line is printed: whoever has read it may stop the server at once. Uvicorn has handlers of
        # its own while it runs, and hands the signal on to these when it has done its work.
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            _tell(options, port)
            server.run(sockets=[listener])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return DONE


def _tell(options: ServePageOptions, port: int) -> None:
    host = f"[{options.host}]" if ":" in options.host else options.host
    url = f"http://{host}:{port}/"
    line = f"Serving the page, with its runs in {options.folder}, at {url}"
    sys.stdout.write((json.dumps({"url": url}) if options.as_json else line) + "\n")
    sys.stdout.flush()


def _listening(host: str, port: int) -> socket.socket:
    """A socket on ``host`` and ``port``; connections wait there until the server has started."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_WAITING_CONNECTIONS)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"--host and --port must be free to listen on. Got {host}:{port} instead ({error}). Give --port "
            "0 for any free one."
        ) from error


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK)
    except OSError:
        usable = False
    if not usable:
        raise InvalidInput(
            f"--folder must be a folder that may be written to. Got {str(folder)!r} instead. Give another."
        )
