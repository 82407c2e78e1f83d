"""The options of ``unweave serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.declared_options import AsJson, Port, TokenEnv
from unweave.cli.exits import exit_code_of


def serve(
    host: Annotated[
        str,
        typer.Option(metavar="HOST", help="Address to listen on; beyond this machine only with --token-env."),
    ] = "127.0.0.1",
    port: Port = 8377,
    folder: Annotated[
        Path, typer.Option(metavar="RUNS", help="Where the runs are kept, one folder each.")
    ] = Path("unweave-runs"),
    token_env: TokenEnv = None,
    max_upload_mb: Annotated[float, typer.Option(metavar="MB", help="Largest file that is taken.")] = 64.0,
    as_json: AsJson = False,
) -> None:
    """Serve a page to drive recoveries from a browser, until Ctrl-C.

    Upload a model file or a table, or name an endpoint; watch, cancel, read the report, download the network.
    Runs are kept in RUNS and survive a restart. One line with the address is printed.

    \b
    Example:
      unweave serve
      unweave serve --port 9000 --folder runs
    """
    from unweave.cli.serving_page import ServePageOptions, run_serve

    options = ServePageOptions(folder, host, port, token_env, max_upload_mb, as_json)
    raise typer.Exit(exit_code_of(lambda: run_serve(options), as_json))
