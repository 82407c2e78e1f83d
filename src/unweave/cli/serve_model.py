"""``unweave serve-model``: a model file behind an HTTP server on this machine, with faults if asked for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.arguments import key_from_environment
from unweave.cli.exits import DONE, stopped_by_signals
from unweave.cli.options import AsJson, Port, Seed, TokenEnv
from unweave.cli.output.document import print_served
from unweave.serving import Faults, ReferenceServer, load_model


@dataclass(frozen=True, kw_only=True)
class ServeModelOptions:
    """Options of ``unweave serve-model``; those named like a field of `Faults` become that field."""

    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A network file or an ONNX file.", show_default=False)
    ]
    port: Port = 0
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1"
    decimals: Annotated[int | None, typer.Option(metavar="D", help="Round answers to D decimals.")] = None
    noise: Annotated[
        float, typer.Option(min=0, metavar="S", help="Add Gaussian noise of this standard deviation.")
    ] = 0.0
    drop: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Leave this share of requests unanswered.")
    ] = 0.0
    delay: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Answer this share of requests late.")
    ] = 0.0
    delay_seconds: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Delay of late answers.")] = (
        0.5
    )
    corrupt: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Damage this share of answers.")
    ] = 0.0
    token_env: TokenEnv = None
    seed: Seed = 0
    as_json: AsJson = False


def run_serve_model(options: ServeModelOptions) -> int:
    """Serve a model file over HTTP on this machine until Ctrl-C, with deliberate faults if you like.

    POST /predict takes {"instances": rows} and returns {"predictions": answers}. GET /metadata describes the
    model, /health says whether it is up, and /count what became of the rows. The URL is printed.

    \b
    Example:
      unweave serve-model net.onnx --port 8080 --drop 0.05 --delay 0.05
    """
    faults = Faults(**{entry.name: getattr(options, entry.name) for entry in fields(Faults)})
    token = key_from_environment(options.token_env)
    model = load_model(options.file)
    stopped = threading.Event()
    # Handlers come before the line: whoever has read it may stop the server at once.
    with (
        stopped_by_signals(stopped.set),
        ReferenceServer(model, host=options.host, port=options.port, faults=faults, token=token) as server,
    ):
        told = {"url": server.url, "n_inputs": model.n_inputs, "n_outputs": model.n_outputs}
        shape = f"{model.n_inputs} inputs, {model.n_outputs} outputs"
        print_served(f"Serving {options.file} ({shape}) at {server.url}", told, options.as_json)
        stopped.wait()
    return DONE
