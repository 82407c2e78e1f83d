"""The options of ``unweave plan``."""

from __future__ import annotations

from typing import Annotated

import typer

from unweave.cli.declared_options import (
    Activation,
    AsJson,
    CommandFormat,
    CommandTimeout,
    Domain,
    Examples,
    Hidden,
    Inputs,
    Seed,
    TargetArgument,
)
from unweave.cli.exits import exit_code_of
from unweave.cli.http_arguments import NO_HTTP, HttpArguments, with_http_options


@with_http_options
def plan(
    target: TargetArgument,
    hidden: Hidden = None,
    activation: Activation = None,
    inputs: Inputs = None,
    outputs: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="Number of outputs, if the target does not say.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Of the answers: float64 (assumed), float32, rounded or noisy."),
    ] = None,
    look: Annotated[
        bool, typer.Option("--look", help="Ask a few hundred rows, to measure instead of assuming.")
    ] = False,
    domain: Domain = None,
    examples: Examples = None,
    seed: Seed = 0,
    command_format: CommandFormat = "csv",
    command_timeout: CommandTimeout = 60.0,
    as_json: AsJson = False,
    http: HttpArguments = NO_HTTP,
) -> None:
    """Tell what recovering TARGET would cost: rows, seconds and memory, per method, with the assumptions.

    Nothing is asked without --look.

    \b
    Examples:
      unweave plan models:predict --inputs 20 --hidden 40
      unweave plan model.onnx --look
    """
    from unweave.cli.planning import PlanOptions, run_plan
    from unweave.cli.targets import CommandOptions

    options = PlanOptions(
        target=target,
        hidden=hidden,
        activation=activation,
        inputs=inputs,
        outputs=outputs,
        precision=precision,
        look=look,
        domain=domain,
        examples=examples,
        seed=seed,
        as_json=as_json,
        command=CommandOptions(command_format, command_timeout),
        http=http,
    )
    raise typer.Exit(exit_code_of(lambda: run_plan(options), as_json))
