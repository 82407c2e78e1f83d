"""The options of ``unweave audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.declared_options import (
    Activation,
    AsJson,
    CommandFormat,
    CommandTimeout,
    Deadline,
    Domain,
    Examples,
    Hidden,
    Inputs,
    MaxQueries,
    OutputActivation,
    Quiet,
    Seed,
    TargetArgument,
    Verbose,
)
from unweave.cli.exits import exit_code_of
from unweave.cli.http_arguments import NO_HTTP, HttpArguments, with_http_options


@with_http_options
def audit(
    target: TargetArgument,
    decimals: Annotated[
        str, typer.Option(metavar="LIST", help='Decimals that might be published; "" for none.')
    ] = "6,4,3,2",
    noise: Annotated[
        str | None, typer.Option(metavar="LIST", help="Standard deviations of noise that might be added.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Queries that a client might be allowed, e.g. 1000,10000 [default: powers of ten].",
        ),
    ] = None,
    alarm: Annotated[
        float, typer.Option(metavar="E", help="Median relative error at which weights count as given away.")
    ] = 0.01,
    hidden: Hidden = None,
    activation: Activation = None,
    output_activation: OutputActivation = None,
    inputs: Inputs = None,
    domain: Domain = None,
    examples: Examples = None,
    max_queries: MaxQueries = None,
    deadline: Deadline = None,
    seed: Seed = 0,
    command_format: CommandFormat = "csv",
    command_timeout: CommandTimeout = 60.0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the audit with pictures here (.html).")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Keep every answer of TARGET here (a .sqlite file, or a folder)."),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    as_json: AsJson = False,
    http: HttpArguments = NO_HTTP,
) -> None:
    """Find out whether TARGET gives its weights away, after how many queries, at how many decimals.

    TARGET is recovered once. The network found then stands in for it and is attacked with every precision
    and every budget, by averaging and by bisection; that costs TARGET no further query. Ctrl-C shows the
    points that are done. Exit code 0: audited; 1 or 3: TARGET was not recovered, so that there is no curve.

    \b
    Examples:
      unweave audit models:predict --inputs 30 --out audit.html
      unweave audit http://127.0.0.1:8000/predict --decimals 4,3,2 --noise 1e-3,1e-2 --budget 1000,100000
    """
    from unweave.cli.auditing import AuditOptions, run_audit
    from unweave.cli.targets import CommandOptions

    options = AuditOptions(
        target=target,
        decimals=decimals,
        noise=noise,
        budget=budget,
        alarm=alarm,
        hidden=hidden,
        activation=activation,
        output_activation=output_activation,
        inputs=inputs,
        domain=domain,
        examples=examples,
        max_queries=max_queries,
        deadline=deadline,
        seed=seed,
        out=out,
        checkpoint=checkpoint,
        quiet=quiet,
        verbosity=verbose,
        as_json=as_json,
        command=CommandOptions(command_format, command_timeout),
        http=http,
    )
    raise typer.Exit(exit_code_of(lambda: run_audit(options), as_json))
