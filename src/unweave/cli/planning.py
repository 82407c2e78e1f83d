"""``unweave plan``: what a recovery would cost, before anything is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.cli.arguments import parse_domain, parse_hidden, read_examples
from unweave.cli.console import print_line, print_table, stdout_console
from unweave.cli.exits import DONE
from unweave.cli.http_arguments import NO_HTTP, HttpArguments
from unweave.cli.jsonable import print_json
from unweave.cli.progress import watching
from unweave.cli.targets import CommandOptions, find_target, input_width, told_width
from unweave.recovery.plan import MethodPlan, Plan, plan


@dataclass(frozen=True)
class PlanOptions:
    """The command's options, as typed."""

    target: str
    hidden: str | None = None
    activation: str | None = None
    inputs: int | None = None
    outputs: int | None = None
    precision: str | None = None
    look: bool = False
    domain: str | None = None
    examples: Path | None = None
    seed: int = 0
    as_json: bool = False
    command: CommandOptions | None = None
    http: HttpArguments = NO_HTTP


def run_plan(options: PlanOptions) -> int:
    """Show what a recovery of the target would cost and return the exit code, 0."""
    examples = read_examples(options.examples)
    told = told_width(options.inputs, examples)
    with (
        watching(False, 0),
        find_target(options.target, told, http=options.http.options(told), command=options.command) as target,
    ):
        made = plan(
            target.function,
            hidden=parse_hidden(options.hidden),
            activation=options.activation,
            input_dim=input_width(target, options.inputs, examples),
            outputs=options.outputs,
            precision=options.precision,
            look=options.look,
            domain=parse_domain(options.domain),
            examples=examples,
            seed=options.seed,
        )
    if options.as_json:
        print_json({"target": options.target, **_plan_dict(made)})
    else:
        _show(options.target, made)
    return DONE


def _plan_dict(made: Plan) -> dict[str, Any]:
    return {
        "inputs": made.inputs,
        "outputs": made.outputs,
        "precision": made.precision,
        "sent": made.sent,
        "seconds_per_row": made.seconds_per_row,
        "methods": [_entry_dict(entry) for entry in made.methods],
        "assumptions": list(made.assumptions),
    }


def _entry_dict(entry: MethodPlan) -> dict[str, Any]:
    return {
        "method": entry.method,
        "hidden": list(entry.hidden),
        "parameters": entry.parameters,
        "tried": entry.tried,
        "why": entry.why,
        "rows": entry.rows,
        "rows_per_parameter": entry.rows_per_parameter,
        "look_rows": entry.look_rows,
        "verification_rows": entry.verification_rows,
        "computing_seconds": entry.cost.seconds,
        "seconds": entry.seconds,
        "megabytes": entry.cost.megabytes,
        "how": entry.cost.how,
    }


def _show(target: str, made: Plan) -> None:
    console = stdout_console()
    asked = f"{made.sent:,} rows were asked" if made.sent else "nothing was asked"
    shape = f"{made.inputs} inputs, {made.outputs} output{'s' if made.outputs > 1 else ''}, {made.precision}"
    print_line(console, f"{target}: {shape}; {asked}.", "bold")
    tried = [entry for entry in made.methods if entry.tried]
    headings = ("method", "hidden", "parameters", "rows", "per parameter", "seconds", "MB", "how")
    print_table(
        console,
        "Would be tried, in this order",
        headings,
        [_row(entry) for entry in tried],
        right=headings[2:7],
    )
    others = {entry.method: entry.why for entry in made.methods if not entry.tried}
    if others:
        print_table(console, "Would not be tried", ("method", "because"), list(others.items()))
    console.print()
    for line in made.assumptions:
        print_line(console, f"- {line}")


def _row(entry: MethodPlan) -> tuple[str, ...]:
    seconds = entry.cost.seconds if entry.seconds is None else entry.seconds
    plus = "" if entry.seconds is not None else " + target"
    return (
        entry.method,
        "-".join(str(width) for width in entry.hidden) or "none",
        f"{entry.parameters:,}",
        f"{entry.rows:,}",
        f"{entry.rows_per_parameter:.1f}",
        f"{seconds:.2g}{plus}",
        f"{entry.cost.megabytes:,.0f}",
        entry.cost.how,
    )
