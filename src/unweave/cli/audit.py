"""``unweave audit``: what the answers give away, at which precision, after how many queries."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from unweave.audits import Audit, audit
from unweave.audits.curve import Point
from unweave.audits.run import ALARM, DECIMALS
from unweave.audits.trace import ENDINGS as TRACE_ENDINGS
from unweave.cli.arguments import PAGE_ENDINGS, check_outputs
from unweave.cli.exits import EXIT_OF_STATUS, INTERRUPTED, NOT_EXACT, USAGE
from unweave.cli.option_groups import TargetOptions
from unweave.cli.options import AsJson, Deadline, MaxQueries, OutputActivation, Quiet, TargetArgument, Verbose
from unweave.cli.output.console import print_heading, print_line, print_pairs, print_table, stdout_console
from unweave.cli.output.document import print_json
from unweave.cli.output.progress import watching
from unweave.cli.typed_command import named_spec, typed_command
from unweave.errors import InvalidInput, UnweaveError
from unweave.recovery.wording import counted, percent

DEFAULT_OUT = "audit.html"
"""Page that is written where no other name is given."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions(TargetOptions):
    """Options of ``unweave audit``."""

    target: TargetArgument
    decimals: Annotated[
        str, typer.Option(metavar="LIST", help='Numbers of decimals to try; "" for none.')
    ] = ",".join(str(digits) for digits in DECIMALS)
    noise: Annotated[
        str | None, typer.Option(metavar="LIST", help="Standard deviations of added noise to try.")
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Numbers of queries per client to try, e.g. 1000,10000 [default: powers of ten].",
        ),
    ] = None
    alarm: Annotated[
        float,
        typer.Option(metavar="E", help="Median relative error up to which weights count as given away."),
    ] = ALARM
    output_activation: OutputActivation = None
    max_queries: MaxQueries = None
    deadline: Deadline = None
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the audit as a page with pictures here (.html) [default: audit.html, or audit-2.html "
            "and so on if there is one; with --json nowhere].",
            show_default=False,
        ),
    ] = None
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write every row that TARGET was asked, to try a detector on (.jsonl or .csv).",
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Keep every answer of TARGET here (a .sqlite file, or a folder)."),
    ] = None
    quiet: Quiet = False
    verbose: Verbose = 0
    as_json: AsJson = False


def run_audit(options: AuditOptions) -> int:
    """Find out whether TARGET gives away its weights or its function, and after how many queries.

    TARGET is recovered once. The network found then stands in for it and is attacked at every precision
    and with every budget, by averaging and by bisection; that costs TARGET no further query. Ctrl-C shows
    what is done. Exit code 0: audited; 1 or 3: TARGET was not recovered, so there is no leakage curve.

    \b
    Examples:
      unweave audit models:predict --inputs 30 --trace queries.jsonl
      unweave audit http://127.0.0.1:8000/predict --decimals 4,3,2 --noise 1e-3,1e-2 --budget 1000,100000
    """
    check_outputs(
        options.target, {"--out": (options.out, PAGE_ENDINGS), "--trace": (options.trace, TRACE_ENDINGS)}
    )
    found = _audit(options)
    out = options.out if options.out is not None or options.as_json else free_name(DEFAULT_OUT)
    written, problems = _write(
        {"--out": (out, found.save_html), "--trace": (options.trace, found.save_trace)}
    )
    if options.as_json:
        print_json({"target": options.target, **found.to_dict(), "out": written.get("--out")})
    else:
        _show(options, found, written)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if found.interrupted:
        return INTERRUPTED
    if problems:
        return USAGE
    stands_in = found.check is not None and found.check.agrees
    code = EXIT_OF_STATUS[found.recovery.status]
    return code if stands_in or code else NOT_EXACT


def free_name(name: str) -> Path:
    """Return ``name``, or name-2, name-3, ... if there is such a file already."""
    path = Path(name)
    for number in itertools.count(2):
        if not path.exists():
            break
        path = Path(f"{Path(name).stem}-{number}{Path(name).suffix}")
    return path


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
        found = audit(
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
    kept = {"target": named_spec(options.target), "command": typed_command("audit", options)}
    return replace(found, settings={**found.settings, **kept})


def _write(
    wanted: dict[str, tuple[Path | None, Callable[[Path], None]]],
) -> tuple[dict[str, Path], list[str]]:
    """Write what was asked for; return where, and what went wrong: that must not hide the result."""
    written, problems = {}, []
    for option, (path, write) in wanted.items():
        if path is None:
            continue
        try:
            write(path)
            written[option] = path
        except (OSError, UnweaveError) as error:
            problems.append(f"{option} could not be written: {error}")
    return written, problems


def _show(options: AuditOptions, found: Audit, written: dict[str, Path]) -> None:
    console = stdout_console()
    if not options.quiet:
        console.print(found.verdict, style="bold")
        console.print(found.recommendation)
        if found.points:
            _show_curve(console, found)
        print_heading(console, "In detail")
        print_pairs(console, (("-", line) for line in (*found.details, *found.notes)))
        print_heading(console, "Findings by control")
        for finding in found.findings:
            print_pairs(console, [("-", f"{'; '.join(finding.controls)}. {finding.result}")])
        print_heading(console, "What a defender can do")
        print_pairs(console, (("-", f"{defence.name}: {defence.worth}") for defence in found.defences))
        console.print()
        for option, what in (("--out", "audit"), ("--trace", "trace")):
            if option in written:
                print_line(console, f"Wrote the {what} to {written[option]}.")
    print_line(console, summary(found))


def summary(found: Audit) -> str:
    """Return the last line: ``LEAKS at 2 decimals: weights to 2e-15 after 5,418 queries; ...``."""
    asked = counted(found.target_queries, "query", "queries")
    return f"{found.headline}; {asked} to the target, {found.cpu_seconds:.0f} CPU s"


def _show_curve(console: Console, found: Audit) -> None:
    headings = ("published", *(f"{budget:,}" for budget in found.budgets), "function", "weights", "exact")
    rows = []
    for level in found.levels:
        best = [found.best(level, budget) for budget in found.budgets]
        if not any(best):
            continue
        reaches = ("function_after", "alarm_after", "exact_after")
        first = [found.first_to(reach, level) for reach in reaches]
        after = [entry and getattr(entry, reach) for entry, reach in zip(first, reaches, strict=True)]
        about = ("", "about " if first[1] is not None and first[1].alarm_predicted else "", "")
        rows.append(
            (
                level.label,
                *("-" if point is None else _took(point, found.alarm) for point in best),
                *("-" if n is None else f"{word}{n:,}" for n, word in zip(after, about, strict=True)),
            )
        )
    title = "What a client can take within its queries, and after how many queries"
    print_table(console, title, headings, rows, right=headings[1:])


def _took(point: Point, alarm: float) -> str:
    """Return ``weights 0.02 %``, ``function 98 %`` or ``held``."""
    leak = point.leak(alarm)
    if leak == "nothing":
        return "held"
    return f"{leak} {percent(point.median_weight_error if leak == 'weights' else point.share_alike)}"
