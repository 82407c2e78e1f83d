"""The options of ``unweave diagnose``."""

from __future__ import annotations

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
    MaxQueries,
    Seed,
    TargetArgument,
)
from unweave.cli.exits import exit_code_of
from unweave.cli.http_arguments import NO_HTTP, HttpArguments, with_http_options


@with_http_options
def diagnose(
    target: TargetArgument,
    hidden: Hidden = None,
    activation: Activation = None,
    inputs: Inputs = None,
    domain: Domain = None,
    examples: Examples = None,
    max_queries: MaxQueries = None,
    seed: Seed = 0,
    command_format: CommandFormat = "csv",
    command_timeout: CommandTimeout = 60.0,
    as_json: AsJson = False,
    http: HttpArguments = NO_HTTP,
) -> None:
    """Look at TARGET for a few hundred queries: precision, region, kinks, and which methods would be tried.

    For a file with one hidden layer, also how hard its weights are to recover: coherence, conditioning, and
    whether the hypotheses of the theory hold.

    \b
    Example:
      unweave diagnose models:predict --inputs 20
    """
    from unweave.cli.diagnosing import DiagnoseOptions, run_diagnose
    from unweave.cli.targets import CommandOptions

    options = DiagnoseOptions(
        target=target,
        hidden=hidden,
        activation=activation,
        inputs=inputs,
        domain=domain,
        examples=examples,
        max_queries=max_queries,
        seed=seed,
        as_json=as_json,
        command=CommandOptions(command_format, command_timeout),
        http=http,
    )
    raise typer.Exit(exit_code_of(lambda: run_diagnose(options), as_json))
