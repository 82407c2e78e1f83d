"""``unweave recover``: ask, show, write, and say how it went."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.arguments import PAGE_ENDINGS, check_outputs, parse_hidden, parse_verify
from unweave.cli.exits import EXIT_OF_STATUS, INTERRUPTED, USAGE
from unweave.cli.option_groups import RunningOptions, TargetOptions
from unweave.cli.options import (
    LIMITS,
    METHOD,
    RESULTS,
    ROWS,
    AsJson,
    Deadline,
    MaxQueries,
    OutDtype,
    OutputActivation,
    Quiet,
    Report,
    TargetOrTable,
    Verbose,
)
from unweave.cli.output.console import print_line, stdout_console
from unweave.cli.output.document import print_json
from unweave.cli.output.progress import watching
from unweave.cli.output.recovery import print_summary, show_recovery, show_result
from unweave.cli.typed_command import named_target, typed_command
from unweave.errors import Interrupted, InvalidInput, UnweaveError
from unweave.files import FORMATS, check_can_save
from unweave.files.tables import read_table
from unweave.methods.table import METHODS
from unweave.recovery.recover import recover
from unweave.recovery.result import Recovery
from unweave.search.journal import Progress
from unweave.targets.samples import Samples

_METHOD_NAMES = ", ".join(method.name for method in METHODS)


@dataclass(frozen=True, kw_only=True)
class RecoverOptions(TargetOptions):
    """Options of ``unweave recover``."""

    target: TargetOrTable = None
    output_activation: OutputActivation = None
    max_queries: MaxQueries = None
    deadline: Deadline = None
    max_memory: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="GB",
            help="Memory that fits may take [default: half of what is free].",
            rich_help_panel=LIMITS,
        ),
    ] = None
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help="Relative error that counts as recovered [default: the target's precision].",
            rich_help_panel=LIMITS,
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"Try only this method: {_METHOD_NAMES}.", rich_help_panel=METHOD),
    ] = None
    averaging: Annotated[
        float | None,
        typer.Option(
            min=2,
            metavar="R",
            help="For rounded or noisy answers: rows of the final fit per parameter, instead of bisection.",
            rich_help_panel=METHOD,
        ),
    ] = None
    derivatives: Annotated[
        str,
        typer.Option(
            metavar="SOURCE",
            help="queries, or autodiff: the gradients of a torch module, where each pass counts as a query.",
            rich_help_panel=METHOD,
        ),
    ] = "queries"
    verify: Annotated[
        str | None,
        typer.Option(
            metavar="N|FILE",
            help="Ask N more random rows to verify the network, or the rows in a file of your own.",
            rich_help_panel=METHOD,
        ),
    ] = None
    table: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Instead of TARGET: samples, inputs first, then answers (.csv, .npy, .npz, or x.npy,y.npy).",
            rich_help_panel=ROWS,
        ),
    ] = None
    outputs: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="Answers per row of the table [default: 1].", rich_help_panel=ROWS
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the network here (.npz, .json, .onnx, .safetensors).",
            rich_help_panel=RESULTS,
        ),
    ] = None
    dtype: OutDtype = "float64"
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the whole result here (.npz).", rich_help_panel=RESULTS),
    ] = None
    report: Report = None
    quiet: Quiet = False
    verbose: Verbose = 0
    as_json: AsJson = False
    running: RunningOptions = field(default_factory=RunningOptions)

    @property
    def source(self) -> str:
        """The target or the table, as it was typed."""
        return self.target or self.table or ""


def run_recover(options: RecoverOptions) -> int:
    """Recover the network behind TARGET from its answers alone.

    TARGET is only ever asked for answers. It may be a network file or an ONNX graph; the URL of an endpoint;
    "cmd:" and a command that reads one line of numbers per row and writes one line of answers; or
    module:object, imported from the current directory: a callable from (n, D) to (n,) or (n, K), a torch
    module, a scikit-learn estimator or a keras model. With --table nothing is asked: the network is fitted
    to samples. Ctrl-C stops and shows what was found so far.

    \b
    Examples:
      unweave recover teacher.npz --out copy.npz --report report.html
      unweave recover deep.npz --hidden 50,25
      unweave recover models:predict --inputs 20 --domain=-1,1 --max-queries 100000
      unweave recover models:model.predict --examples typical.csv --json
      unweave recover teacher.npz --verify 10000
      unweave recover model.onnx --out copy.npz
      unweave recover models:module --derivatives autodiff
      unweave recover http://127.0.0.1:8000/predict
      unweave recover "cmd:python model.py" --inputs 20
      unweave recover models:slow --inputs 20 --checkpoint run.sqlite --workers 2
      unweave recover --table samples.csv --outputs 2 --activation relu
    """
    _check_source(options)
    files = {"--out": options.out, "--save": options.save, "--report": options.report}
    endings = {"--out": tuple(FORMATS), "--save": (".npz",), "--report": PAGE_ENDINGS}
    check_outputs(options.source, {name: (path, endings[name]) for name, path in files.items()})
    if options.out is not None:
        check_can_save(options.out, options.dtype)
    interrupted = False
    try:
        recovery = _recover(options)
    except Interrupted as error:
        recovery, interrupted = error.recovery, True
    kept = {"target": named_target(options), "command": typed_command("recover", options)}
    recovery = replace(recovery, settings={**recovery.settings, **kept})
    written, problems = _write(options, recovery)
    if options.as_json:
        paths = {name.removeprefix("--"): written.get(name) for name in files}
        print_json({"target": options.source, **recovery.to_dict(), "interrupted": interrupted, **paths})
    else:
        _show(options, recovery, written, interrupted)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if interrupted:
        return INTERRUPTED
    return USAGE if problems else EXIT_OF_STATUS[recovery.status]


def _check_source(options: RecoverOptions) -> None:
    """Refuse a target and a table at once, neither of them, and options that the one given has no use for."""
    if (options.target is None) == (options.table is None):
        got = "neither" if options.target is None else "both"
        raise InvalidInput(
            f"Either TARGET or --table must be given. Got {got}. For example unweave recover "
            "teacher.npz, or unweave recover --table samples.csv."
        )
    if options.table is None and options.outputs is not None:
        raise InvalidInput(
            "--outputs is for --table only: TARGET says its number of outputs itself. Leave it out."
        )
    useless = ("inputs", "domain", "examples", "max_queries", "verify", "averaging")
    given = [f"--{name.replace('_', '-')}" for name in useless if getattr(options, name) is not None]
    if options.derivatives != "queries":
        given.append("--derivatives")
    if options.running != RunningOptions():
        given.append("--workers, --scheduler, --checkpoint and --check-log")
    if options.table is not None and given:
        raise InvalidInput(f"With --table nothing can be asked, so that {', '.join(given)} must be left out.")


def _recover(options: RecoverOptions) -> Recovery:
    with watching(not (options.quiet or options.as_json), options.verbose) as progress:
        return _recover_table(options, progress) if options.table else _recover_target(options, progress)


def _recover_table(options: RecoverOptions, progress: Callable[[Progress], None] | None) -> Recovery:
    x, y = read_table(options.table or "", options.outputs)
    return recover(
        Samples(x, y),
        hidden=parse_hidden(options.hidden),
        activation=options.activation,
        output_activation=options.output_activation,
        method=options.method,
        seed=options.seed,
        deadline=options.deadline,
        tolerance=options.tolerance,
        max_memory=_bytes(options.max_memory),
        progress=progress,
    )


def _bytes(gigabytes: float | None) -> float | None:
    return None if gigabytes is None else gigabytes * 1e9


def _recover_target(options: RecoverOptions, progress: Callable[[Progress], None] | None) -> Recovery:
    checkpoint = options.running.kept()
    with (
        options.opened(options.source, options.deadline) as (target, told),
        options.running.executor() as executor,
    ):
        return recover(
            target.function,
            output_activation=options.output_activation,
            max_queries=options.max_queries,
            deadline=options.deadline,
            tolerance=options.tolerance,
            verify=parse_verify(options.verify),
            max_memory=_bytes(options.max_memory),
            method=options.method,
            averaging=options.averaging,
            derivatives=options.derivatives,
            progress=progress,
            executor=executor,
            checkpoint=checkpoint,
            **told,
        )


def _write(options: RecoverOptions, recovery: Recovery) -> tuple[dict[str, Path], list[str]]:
    """Write the files asked for; return those written and what went wrong with the others.

    A disk that fills up now must not cost the answer that was paid for, so nothing is raised.
    """
    written: dict[str, Path] = {}
    problems = []
    for option, path in (("--out", options.out), ("--save", options.save), ("--report", options.report)):
        if path is None or (option == "--out" and recovery.network is None):
            continue
        try:
            if option == "--save":
                recovery.save(path)
            elif option == "--report":
                recovery.save_report(path)
            elif recovery.network is not None:
                recovery.network.save(path, options.dtype)
            written[option] = path
        except (OSError, UnweaveError) as error:
            problems.append(f"{option} could not be written: {error}")
    return written, problems


def _show(options: RecoverOptions, recovery: Recovery, written: dict[str, Path], interrupted: bool) -> None:
    console = stdout_console()
    if not options.quiet:
        show_recovery(console, recovery, interrupted)
        if written or (options.out is not None and recovery.network is None):
            console.print()
        caveat = " (not verified)" if interrupted else ""
        for option, path in written.items():
            what = {"--out": "network", "--save": "result", "--report": "report"}[option]
            print_line(console, f"Wrote the {what} to {path}{caveat}.")
        if options.out is not None and recovery.network is None:
            print_line(console, f"There is no network to write to {options.out}.")
        show_result(console, recovery, interrupted)
    print_summary(console, recovery, interrupted)
