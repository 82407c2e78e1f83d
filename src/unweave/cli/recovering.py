"""``unweave recover``: ask, show, write, and say how it went."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unweave.cli.arguments import check_outputs, parse_domain, parse_hidden, read_examples
from unweave.cli.console import print_line, stdout_console
from unweave.cli.exits import EXIT_OF_STATUS, INTERRUPTED, USAGE
from unweave.cli.http_arguments import NO_HTTP, HttpArguments
from unweave.cli.jsonable import print_json
from unweave.cli.progress import watching
from unweave.cli.repeat_command import with_command
from unweave.cli.running import NOTHING_KEPT, RunningOptions
from unweave.cli.show import print_summary, show_recovery, show_result
from unweave.cli.tables import read_table
from unweave.cli.targets import CommandOptions, find_target, input_width, told_width
from unweave.errors import Interrupted, InvalidInput, UnweaveError
from unweave.files import check_can_save
from unweave.recovery.recover import recover
from unweave.recovery.result import Recovery
from unweave.search.journal import Progress


@dataclass(frozen=True)
class RecoverOptions:
    """The command's options, as typed."""

    target: str | None
    hidden: str | None = None
    activation: str | None = None
    output_activation: str | None = None
    inputs: int | None = None
    domain: str | None = None
    examples: Path | None = None
    max_queries: int | None = None
    deadline: float | None = None
    tolerance: float | None = None
    seed: int = 0
    method: str | None = None
    derivatives: str = "queries"
    out: Path | None = None
    dtype: str = "float64"
    save: Path | None = None
    report: Path | None = None
    quiet: bool = False
    verbosity: int = 0
    as_json: bool = False
    table: str | None = None
    outputs: int | None = None
    command: CommandOptions | None = None
    http: HttpArguments = NO_HTTP
    running: RunningOptions = NOTHING_KEPT

    @property
    def source(self) -> str:
        """What is to be recovered, as it was typed: the target or the table."""
        return self.target or self.table or ""


def run_recover(options: RecoverOptions) -> int:
    """Recover the target and return the exit code.

    What was found before Ctrl-C is shown and written like any other result, and named as not verified.
    """
    _check_source(options)
    check_outputs(options.out, options.save, options.source, options.report)
    if options.out is not None:
        check_can_save(options.out, options.dtype)
    interrupted = False
    try:
        recovery = _recover(options)
    except Interrupted as error:
        recovery, interrupted = error.recovery, True
    recovery = with_command(recovery, options)
    written, problems = _write(options, recovery)
    if options.as_json:
        files = {name: written.get(f"--{name}") for name in ("out", "save", "report")}
        print_json({"target": options.source, **recovery.to_dict(), "interrupted": interrupted, **files})
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
            f"Either TARGET or --table must be given. Got {got} instead. For example unweave recover "
            "teacher.npz, or unweave recover --table samples.csv."
        )
    if options.table is None and options.outputs is not None:
        raise InvalidInput("--outputs must be given with --table only. Got a TARGET instead. Leave it out.")
    useless = ("output_activation", "inputs", "domain", "examples", "max_queries", "method")
    given = [f"--{name.replace('_', '-')}" for name in useless if getattr(options, name) is not None]
    if options.derivatives != "queries":
        given.append("--derivatives")
    if options.running != NOTHING_KEPT:
        given.append("--workers, --scheduler, --checkpoint and --check-log")
    if options.table is not None and given:
        raise InvalidInput(
            f"With --table nothing can be asked, so {', '.join(given)} must be left out. Got them instead."
        )


def _recover(options: RecoverOptions) -> Recovery:
    with watching(not (options.quiet or options.as_json), options.verbosity) as progress:
        return _recover_table(options, progress) if options.table else _recover_target(options, progress)


def _recover_table(options: RecoverOptions, progress: Callable[[Progress], None] | None) -> Recovery:
    return recover(
        read_table(options.table or "", options.outputs),
        hidden=parse_hidden(options.hidden),
        activation=options.activation,
        seed=options.seed,
        deadline=options.deadline,
        tolerance=options.tolerance,
        progress=progress,
    )


def _recover_target(options: RecoverOptions, progress: Callable[[Progress], None] | None) -> Recovery:
    hidden, domain = parse_hidden(options.hidden), parse_domain(options.domain)
    examples = read_examples(options.examples)
    width = told_width(options.inputs, examples)
    checkpoint = options.running.kept()
    with (
        find_target(
            options.source, width, http=options.http.options(width), command=options.command
        ) as target,
        options.running.executor() as executor,
    ):
        return recover(
            target.function,
            hidden=hidden,
            activation=options.activation,
            seed=options.seed,
            input_dim=input_width(target, options.inputs, examples),
            output_activation=options.output_activation,
            domain=domain,
            examples=examples,
            max_queries=options.max_queries,
            deadline=options.deadline,
            tolerance=options.tolerance,
            method=options.method,
            derivatives=options.derivatives,
            progress=progress,
            executor=executor,
            checkpoint=checkpoint,
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
                recovery.network.save(path, options.dtype)  # type: ignore[arg-type]  # it is checked there
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
    print_summary(console, recovery)
