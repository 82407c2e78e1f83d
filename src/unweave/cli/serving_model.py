"""``unweave serve-model``: a model file behind an HTTP server on this machine, with faults if asked for."""

from __future__ import annotations

import json
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from unweave.cli.arguments import key_from_environment
from unweave.cli.exits import DONE
from unweave.serving import Faults, ReferenceServer, load_model


@dataclass(frozen=True)
class ServeOptions:
    """The command's options, as typed."""

    path: Path
    host: str = "127.0.0.1"
    port: int = 0
    drop: float = 0.0
    delay: float = 0.0
    delay_seconds: float = 0.5
    corrupt: float = 0.0
    noise: float = 0.0
    decimals: int | None = None
    token_env: str | None = None
    seed: int = 0
    as_json: bool = False


def run_serve_model(options: ServeOptions) -> int:
    """Serve until Ctrl-C or SIGTERM, then return the exit code, 0. One line with the URL goes to stdout."""
    faults = Faults(
        drop=options.drop,
        delay=options.delay,
        delay_seconds=options.delay_seconds,
        corrupt=options.corrupt,
        noise=options.noise,
        decimals=options.decimals,
        seed=options.seed,
    )
    token = key_from_environment(options.token_env)
    model = load_model(options.path)
    stopped = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()

    # Before the line is printed: whoever has read it may stop the server at once.
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with ReferenceServer(
            model, host=options.host, port=options.port, faults=faults, token=token
        ) as server:
            told = {"url": server.url, "n_inputs": model.n_inputs, "n_outputs": model.n_outputs}
            line = (
                f"Serving {options.path} ({model.n_inputs} inputs, {model.n_outputs} outputs) at {server.url}"
            )
            sys.stdout.write((json.dumps(told) if options.as_json else line) + "\n")
            sys.stdout.flush()
            stopped.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return DONE
