"""The options of ``unweave serve-model``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.declared_options import AsJson, Port, Seed, TokenEnv
from unweave.cli.exits import exit_code_of


def serve_model(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A network file or an ONNX file.", show_default=False)
    ],
    port: Port = 0,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    decimals: Annotated[int | None, typer.Option(metavar="D", help="Round the answers.")] = None,
    noise: Annotated[float, typer.Option(min=0, metavar="S", help="Add Gaussian noise of this size.")] = 0.0,
    drop: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Requests left unanswered.")
    ] = 0.0,
    delay: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Requests answered late.")
    ] = 0.0,
    delay_seconds: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How late.")] = 0.5,
    corrupt: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Answers damaged.")] = 0.0,
    token_env: TokenEnv = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Serve a model file over HTTP on this machine, with faults if asked for, until Ctrl-C.

    POST /predict answers {"instances": rows} with {"predictions": answers}; GET /metadata, /health and
    /count (what became of the rows) tell about it. One line with the URL is printed.

    \b
    Example:
      unweave serve-model net.onnx --port 8080 --drop 0.05 --delay 0.05
    """
    from unweave.cli.serving_model import ServeOptions, run_serve_model

    options = ServeOptions(
        path=file,
        host=host,
        port=port,
        drop=drop,
        delay=delay,
        delay_seconds=delay_seconds,
        corrupt=corrupt,
        noise=noise,
        decimals=decimals,
        token_env=token_env,
        seed=seed,
        as_json=as_json,
    )
    raise typer.Exit(exit_code_of(lambda: run_serve_model(options), as_json))
