"""``unweave recover``: ask, show, write, and say how it went."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.cli.arguments import check_outputs, parse_domain, parse_hidden, read_examples
from unweave.cli.console import print_line, stdout_console
from unweave.cli.exits import EXIT_OF_STATUS, INTERRUPTED, USAGE
from unweave.cli.jsonable import print_json
from unweave.cli.progress import watching
from unweave.cli.show import print_summary, show_recovery
from unweave.cli.targets import Target, find_target
from unweave.errors import Interrupted, InvalidInput, UnweaveError
from unweave.recover import recover
from unweave.result import Recovery


@dataclass(frozen=True)
class RecoverOptions:
    """The command's options, as typed."""

    target: str
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
    out: Path | None = None
    save: Path | None = None
    quiet: bool = False
    verbosity: int = 0
    as_json: bool = False


def run_recover(options: RecoverOptions) -> int:
    """Recover the target and return the exit code.

    What was found before Ctrl-C is shown and written like any other result, and named as not verified.
    """
    check_outputs(options.out, options.save, options.target)
    interrupted = False
    try:
        recovery = _recover(options)
    except Interrupted as error:
        recovery, interrupted = error.recovery, True
    written, problems = _write(options, recovery)
    if options.as_json:
        files = {"out": written.get("--out"), "save": written.get("--save")}
        print_json({"target": options.target, **recovery.to_dict(), "interrupted": interrupted, **files})
    else:
        _show(options, recovery, written, interrupted)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if interrupted:
        return INTERRUPTED
    return USAGE if problems else EXIT_OF_STATUS[recovery.status]


def input_width(target: Target, inputs: int | None, examples: Any) -> int | None:
    """The number of inputs: as given, or that of the examples for a function that does not declare it."""
    if inputs is not None or target.declares_inputs:
        return inputs
    if examples is not None and examples.ndim == 2:
        return int(examples.shape[1])
    raise InvalidInput(
        f"--inputs must be given for {target.spec}, because its number of inputs cannot be read from it. "
        "Got neither --inputs nor --examples instead. For example --inputs 20."
    )


def _recover(options: RecoverOptions) -> Recovery:
    hidden, domain = parse_hidden(options.hidden), parse_domain(options.domain)
    examples = read_examples(options.examples)
    with watching(not (options.quiet or options.as_json), options.verbosity) as progress:
        target = find_target(options.target)
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
            progress=progress,
        )


def _write(options: RecoverOptions, recovery: Recovery) -> tuple[dict[str, Path], list[str]]:
    """Write the files asked for; return those written and what went wrong with the others.

    A disk that fills up now must not cost the answer that was paid for, so nothing is raised.
    """
    written: dict[str, Path] = {}
    problems = []
    for option, path in (("--out", options.out), ("--save", options.save)):
        if path is None or (option == "--out" and recovery.network is None):
            continue
        try:
            if option == "--save":
                recovery.save(path)
            elif recovery.network is not None:
                recovery.network.save(path)
            written[option] = path
        except (OSError, UnweaveError) as error:
            problems.append(f"{option} could not be written: {error}")
    return written, problems


def _show(options: RecoverOptions, recovery: Recovery, written: dict[str, Path], interrupted: bool) -> None:
    console = stdout_console()
    if not options.quiet:
        show_recovery(console, recovery, interrupted)
        console.print()
        caveat = " (not verified)" if interrupted else ""
        for option, path in written.items():
            what = "network" if option == "--out" else "result"
            print_line(console, f"Wrote the {what} to {path}{caveat}.")
        if options.out is not None and recovery.network is None:
            print_line(console, f"There is no network to write to {options.out}.")
    print_summary(console, recovery)
