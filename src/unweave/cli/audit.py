"""``unweave audit``: what the answers give away, at which precision, after how many queries."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from unweave.audits import Audit, audit
from unweave.audits.advice import percent
from unweave.audits.level import Level
from unweave.audits.run import ALARM, DECIMALS
from unweave.cli.arguments import PAGE_ENDINGS, check_outputs
from unweave.cli.exits import EXIT_OF_STATUS, INTERRUPTED, NOT_EXACT, USAGE
from unweave.cli.option_groups import TargetOptions
from unweave.cli.options import AsJson, Deadline, MaxQueries, OutputActivation, Quiet, TargetArgument, Verbose
from unweave.cli.output.console import print_heading, print_line, print_pairs, print_table, stdout_console
from unweave.cli.output.document import print_json
from unweave.cli.output.progress import watching
from unweave.errors import InvalidInput, UnweaveError
from unweave.recovery.result import Status


@dataclass(frozen=True, kw_only=True)
class AuditOptions(TargetOptions):
    """Options of ``unweave audit``."""

    target: TargetArgument
    decimals: Annotated[
        str, typer.Option(metavar="LIST", help='Decimals that might be published; "" for none.')
    ] = ",".join(str(digits) for digits in DECIMALS)
    noise: Annotated[
        str | None, typer.Option(metavar="LIST", help="Standard deviations of noise that might be added.")
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Queries that a client might be allowed, e.g. 1000,10000 [default: powers of ten].",
        ),
    ] = None
    alarm: Annotated[
        float, typer.Option(metavar="E", help="Median relative error at which weights count as given away.")
    ] = ALARM
    output_activation: OutputActivation = None
    max_queries: MaxQueries = None
    deadline: Deadline = None
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the audit with pictures here (.html).")
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Keep every answer of TARGET here (a .sqlite file, or a folder)."),
    ] = None
    quiet: Quiet = False
    verbose: Verbose = 0
    as_json: AsJson = False


def run_audit(options: AuditOptions) -> int:
    """Find out whether TARGET gives its weights away, after how many queries, at how many decimals.

    TARGET is recovered once. The network found then stands in for it and is attacked at every precision
    and with every budget, by averaging and by bisection; that costs TARGET no further query. Ctrl-C shows the
    points that are done. Exit code 0: audited; 1 or 3: TARGET was not recovered, so that there is no curve.

    \b
    Examples:
      unweave audit models:predict --inputs 30 --out audit.html
      unweave audit http://127.0.0.1:8000/predict --decimals 4,3,2 --noise 1e-3,1e-2 --budget 1000,100000
    """
    check_outputs(options.target, {"--out": (options.out, PAGE_ENDINGS)})
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
    """Return the numbers in ``text``, commas between; none for None or the empty text."""
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
    with (
        watching(not (options.quiet or options.as_json), options.verbose) as progress,
        options.opened(options.target, options.deadline) as (target, told),
    ):
        return audit(
            target.function,
            decimals,
            noise,
            budgets or None,
            alarm=options.alarm,
            output_activation=options.output_activation,
            max_queries=options.max_queries,
            deadline=options.deadline,
            progress=progress,
            checkpoint=options.checkpoint,
            **told,
        )


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
        print_heading(console, "What follows")
        print_pairs(console, (("-", line) for line in (*found.recommendations, *found.notes)))
        print_heading(console, "What a defender can do")
        print_pairs(console, (("-", f"{defence.name}: {defence.worth}") for defence in found.defences))
        console.print()
        if options.out is not None and not problem:
            print_line(console, f"Wrote the audit to {options.out}.")
    print_line(console, summary(found))


def summary(found: Audit) -> str:
    """Return the last line: ``LEAKS at 2 decimals: weights to 2e-15 within 100,000 queries; ...``."""
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
