"""``unweave serve``: the page to drive recoveries from a browser, served on this machine."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.arguments import key_from_environment
from unweave.cli.exits import DONE, stopped_by_signals
from unweave.cli.options import AsJson, Port, TokenEnv
from unweave.cli.output.document import print_served
from unweave.errors import InvalidInput, UnweaveError, install_hint
from unweave.targets.adapters.http_options import is_loopback
from unweave.web.child_process import OWNER_ONLY

_KEY_BYTES = 24  # random ones: nobody guesses 192 bits
_PACKAGES = ("fastapi", "uvicorn", "python_multipart")
_WAITING_CONNECTIONS = 128
"""Connections that the system keeps until the server accepts them: the usual number."""
_SHUTDOWN_SECONDS = 2
"""Time that requests under way get when the server is stopped: pages are answered in less."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of ``unweave serve``."""

    host: Annotated[
        str,
        typer.Option(metavar="HOST", help="Address to listen on; beyond this machine only with --token-env."),
    ] = "127.0.0.1"
    port: Port = 8377
    folder: Annotated[Path, typer.Option(metavar="RUNS", help="Folder that keeps the runs.")] = Path(
        "unweave-runs"
    )
    token_env: TokenEnv = None
    no_token: Annotated[bool, typer.Option("--no-token", help="Ask for no key; on this machine only.")] = (
        False
    )
    allow_env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Environment variable that runs may send as a key; may be repeated."
        ),
    ] = None
    max_upload_mb: Annotated[float, typer.Option(metavar="MB", help="Largest file accepted.")] = 64.0
    max_memory_mb: Annotated[float, typer.Option(metavar="MB", help="Largest memory of one run.")] = 4096.0
    max_run_hours: Annotated[float, typer.Option(metavar="HOURS", help="Longest run.")] = 12.0
    as_json: AsJson = False


def run_serve(options: ServeOptions) -> int:
    """Serve a page to drive recoveries from a browser, until Ctrl-C.

    Upload a model file or a table, or name an endpoint; watch or cancel the run, read the report, download
    the network. Runs are kept in RUNS and survive a restart. One line with the address is printed, with a key
    that changes every time.

    \b
    Examples:
      unweave serve
      unweave serve --port 9000 --folder runs
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UnweaveError(f"{', '.join(missing)} must be installed to serve the page. {install_hint('web')}")
    import uvicorn

    from unweave.web.app import PageOptions, create_app
    from unweave.web.guards import TOKEN
    from unweave.web.limits import Limits
    from unweave.web.slow_clients import MOST_CONNECTIONS, ImpatientProtocol

    os.umask(OWNER_ONLY)
    key = key_from_environment(options.token_env)
    own_key = key is None and not options.no_token and is_loopback(options.host)
    if own_key:
        key = secrets.token_urlsafe(_KEY_BYTES)
    _check_folder(options.folder)
    with _listening(options.host, options.port) as listener:
        port = listener.getsockname()[1]
        app = create_app(
            PageOptions(
                options.folder,
                options.host,
                port,
                key,
                options.token_env,
                options.max_upload_mb,
                allow_env=tuple(options.allow_env or ()),
                limits=Limits(options.max_memory_mb, 3600 * options.max_run_hours),
            )
        )
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                ws="none",
                http=ImpatientProtocol,
                limit_concurrency=MOST_CONNECTIONS,
                lifespan="on",
                proxy_headers=False,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )
        host = f"[{options.host}]" if ":" in options.host else options.host
        url = f"http://{host}:{port}/" + (f"?{TOKEN}={key}" if own_key else "")
        # Handlers come before the line: whoever has read it may stop the server at once. Uvicorn has handlers
        # of its own while it runs, and hands the signal on to these when it has done its work.
        with stopped_by_signals(partial(setattr, server, "should_exit", True)):
            line = f"Serving the page, with its runs in {options.folder}, at {url}"
            print_served(line, {"url": url}, options.as_json)
            server.run(sockets=[listener])
    return DONE


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket on ``host`` and ``port``; connections wait there until the server has started."""
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
