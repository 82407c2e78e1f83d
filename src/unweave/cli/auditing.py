"""``unweave audit``: what the answers give away, at which precision, after how many queries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from unweave.audits import Audit, audit
from unweave.audits.level import Level
from unweave.audits.run import ALARM
from unweave.audits.wording import percent
from unweave.cli.arguments import parse_domain, parse_hidden, read_examples
from unweave.cli.console import print_line, print_pairs, print_table, stdout_console
from unweave.cli.exits import EXIT_OF_STATUS, INTERRUPTED, NOT_EXACT, USAGE
from unweave.cli.http_arguments import NO_HTTP, HttpArguments
from unweave.cli.jsonable import print_json
from unweave.cli.progress import watching
from unweave.cli.targets import CommandOptions, find_target, input_width, told_width
from unweave.errors import InvalidInput, UnweaveError
from unweave.recovery.result import Status

_ENDINGS = (".html", ".htm")


@dataclass(frozen=True)
class AuditOptions:
    """The command's options, as typed."""

    target: str
    decimals: str = "6,4,3,2"
    noise: str | None = None
    budget: str | None = None
    alarm: float = ALARM
    hidden: str | None = None
    activation: str | None = None
    output_activation: str | None = None
    inputs: int | None = None
    domain: str | None = None
    examples: Path | None = None
    max_queries: int | None = None
    deadline: float | None = None
    seed: int = 0
    out: Path | None = None
    checkpoint: Path | None = None
    quiet: bool = False
    verbosity: int = 0
    as_json: bool = False
    command: CommandOptions | None = None
    http: HttpArguments = NO_HTTP


def run_audit(options: AuditOptions) -> int:
    """Audit the target and return the exit code: that of its recovery, or 130 after Ctrl-C."""
    _check_out(options.out, options.target)
    found = _audit(options)
    problem = _write(options.out, found)
    if options.as_json:
        print_json({"target": options.target, **found.to_dict(), "out": None if problem else options.out})
    else:
        _show(options, found, problem)
    if problem:
        print(f"error: {problem}", file=sys.stderr)
    if found.interrupted:
        return INTERRUPTED
    if problem:
        return USAGE
    stands_in = found.check is not None and found.check.agrees
    code = EXIT_OF_STATUS[found.recovery.status]
    return code if stands_in or code else NOT_EXACT


def parse_numbers(text: str | None, option: str, example: str, kind: Callable[[str], Any]) -> list[Any]:
    """The numbers in ``text``, commas between; none for None or the empty text."""
    if text is None or not text.strip():
        return []
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        raise InvalidInput(
            f"{option} must be numbers with commas between. Got {text!r} instead. For example {example}."
        ) from error


def _audit(options: AuditOptions) -> Audit:
    decimals = parse_numbers(options.decimals, "--decimals", "6,4,3,2", int)
    noise = parse_numbers(options.noise, "--noise", "1e-3,1e-2", float)
    budgets = parse_numbers(options.budget, "--budget", "1000,10000,100000", int)
    hidden, domain = parse_hidden(options.hidden), parse_domain(options.domain)
    examples = read_examples(options.examples)
    told = told_width(options.inputs, examples)
    with (
        watching(not (options.quiet or options.as_json), options.verbosity) as progress,
        find_target(options.target, told, http=options.http.options(told), command=options.command) as target,
    ):
        return audit(
            target.function,
            decimals,
            noise,
            budgets or None,
            alarm=options.alarm,
            hidden=hidden,
            activation=options.activation,
            seed=options.seed,
            input_dim=input_width(target, options.inputs, examples),
            output_activation=options.output_activation,
            domain=domain,
            examples=examples,
            max_queries=options.max_queries,
            deadline=options.deadline,
            progress=progress,
            checkpoint=options.checkpoint,
        )


def _check_out(out: Path | None, target: str) -> None:
    """Refuse, before anything is asked, a page that could not be written afterwards."""
    if out is None:
        return
    if out.suffix.lower() not in _ENDINGS:
        raise InvalidInput(f"--out must end in {' or '.join(_ENDINGS)}. Got {str(out)!r} instead.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK) or out.is_dir():
        raise InvalidInput(
            f"--out must be a file in a folder that exists and may be written to. Got {str(out)!r} instead."
        )
    if Path(target).is_file() and out.resolve() == Path(target).resolve():
        raise InvalidInput(f"--out must not be the target itself. Got {str(out)!r} instead.")


def _write(out: Path | None, found: Audit) -> str:
    """Write the page if asked for; return what went wrong. What was paid for is shown all the same."""
    if out is None:
        return ""
    try:
        found.save_html(out)
    except (OSError, UnweaveError) as error:
        return f"--out could not be written: {error}"
    return ""


def _show(options: AuditOptions, found: Audit, problem: str) -> None:
    console = stdout_console()
    if not options.quiet:
        console.print(found.verdict, style="bold")
        if found.points:
            _show_curve(console, found)
        console.print()
        console.print("What follows", style="bold")
        print_pairs(console, (("-", line) for line in (*found.recommendations, *found.notes)))
        console.print()
        console.print("What a defender can do", style="bold")
        print_pairs(console, (("-", f"{defence.name}: {defence.worth}") for defence in found.defences))
        console.print()
        if options.out is not None and not problem:
            print_line(console, f"Wrote the audit to {options.out}.")
    print_line(console, summary(found))


def summary(found: Audit) -> str:
    """The last line: ``LEAKS at 2 decimals: weights to 2e-15 within 100,000 queries; ...``."""
    cost = f"{found.target_queries:,} queries to the target, {found.cpu_seconds:.0f} CPU s"
    known = [point for point in found.points if point.median_weight_error <= found.alarm]
    if not known:
        word = "HELD" if found.points else f"NOT {Status.RECOVERED.name}"
        return f"{word}; {cost}"
    coarsest = max(known, key=lambda point: (point.level.sigma, -point.median_weight_error))
    where = coarsest.level.label if coarsest.level == Level() else f"at {coarsest.level.label}"
    error = percent(coarsest.median_weight_error)
    return f"LEAKS {where}: weights to {error} within {coarsest.budget:,} queries; {cost}"


def _show_curve(console: Console, found: Audit) -> None:
    headings = ("published", *(f"{budget:,}" for budget in found.budgets), "first network", "exact after")
    rows = []
    for level in found.levels:
        best = [found.best(level, budget) for budget in found.budgets]
        if not any(best):
            continue
        entry = found.summary(level)
        rows.append(
            (
                level.label,
                *("-" if point is None else percent(point.median_weight_error) for point in best),
                "-" if entry is None or entry.first_network is None else f"{entry.first_network:,}",
                "-" if entry is None or entry.exact_after is None else f"{entry.exact_after:,}",
            )
        )
    title = "Median relative error of the weights, by what is published and how many queries are allowed"
    print_table(console, title, headings, rows, right=headings[1:])
