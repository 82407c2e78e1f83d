"""The options of ``unweave recover``."""

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
    OutDtype,
    OutputActivation,
    Quiet,
    Report,
    Seed,
    TargetOrTable,
    Verbose,
)
from unweave.cli.exits import exit_code_of
from unweave.cli.http_arguments import NO_HTTP, HttpArguments, with_http_options


@with_http_options
def recover(
    target: TargetOrTable = None,
    hidden: Hidden = None,
    activation: Activation = None,
    output_activation: OutputActivation = None,
    inputs: Inputs = None,
    domain: Domain = None,
    examples: Examples = None,
    max_queries: MaxQueries = None,
    deadline: Deadline = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="T", help="Relative error that counts as recovered [default: the target's precision]."
        ),
    ] = None,
    seed: Seed = 0,
    method: Annotated[str | None, typer.Option(metavar="NAME", help="Try only this method.")] = None,
    derivatives: Annotated[
        str,
        typer.Option(
            metavar="WHENCE",
            help="queries, or autodiff: a torch module's own, each pass a query.",
        ),
    ] = "queries",
    table: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Instead of TARGET: inputs, then answers (.csv, .npy, .npz, or x.npy,y.npy)."
        ),
    ] = None,
    outputs: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="Answers per row of the table [default: 1].")
    ] = None,
    command_format: CommandFormat = "csv",
    command_timeout: CommandTimeout = 60.0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the network here (.npz, .json, .onnx, .safetensors)."),
    ] = None,
    dtype: OutDtype = "float64",
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the whole result here (.npz).")
    ] = None,
    report: Report = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Keep every answer here (a .sqlite file, or a folder); run again to go on after a crash.",
        ),
    ] = None,
    check_log: Annotated[
        bool, typer.Option("--check-log", help="Ask one row of the checkpoint again: is it the same target?")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Compute on N processes (needs Dask).")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Compute on a Dask cluster, e.g. tcp://10.0.0.5:8786."),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    as_json: AsJson = False,
    http: HttpArguments = NO_HTTP,
) -> None:
    """Recover the network behind TARGET from its answers alone.

    TARGET is only ever asked for answers. It is a network that unweave wrote or an ONNX graph; the URL of an
    endpoint; "cmd:" and a command that reads a line of numbers per row and writes a line of answers; or
    module:object, imported from the current directory: any callable from (n, D) to (n,) or (n, K), a torch
    module, a scikit-learn estimator, a keras model. With --table there is nothing to ask, only samples.
    Ctrl-C shows what was found so far.

    \b
    Examples:
      unweave recover teacher.npz --out copy.npz --report report.html
      unweave recover deep.npz --hidden 50,25
      unweave recover models:predict --inputs 20 --domain=-1,1 --max-queries 100000
      unweave recover models:model.predict --examples typical.csv --json
      unweave recover model.onnx --out copy.npz
      unweave recover models:module --derivatives autodiff
      unweave recover http://127.0.0.1:8000/predict
      unweave recover "cmd:python model.py" --inputs 20
      unweave recover models:slow --inputs 20 --checkpoint run.sqlite --workers 2
      unweave recover --table samples.csv --outputs 2 --activation relu
    """
    from unweave.cli.recovering import RecoverOptions, run_recover
    from unweave.cli.running import RunningOptions
    from unweave.cli.targets import CommandOptions

    options = RecoverOptions(
        target=target,
        hidden=hidden,
        activation=activation,
        output_activation=output_activation,
        inputs=inputs,
        domain=domain,
        examples=examples,
        max_queries=max_queries,
        deadline=deadline,
        tolerance=tolerance,
        seed=seed,
        method=method,
        derivatives=derivatives,
        out=out,
        dtype=dtype,
        save=save,
        report=report,
        quiet=quiet,
        verbosity=verbose,
        as_json=as_json,
        table=table,
        outputs=outputs,
        command=CommandOptions(command_format, command_timeout),
        http=http,
        running=RunningOptions(workers, scheduler, checkpoint, check_log),
    )
    raise typer.Exit(exit_code_of(lambda: run_recover(options), as_json))
