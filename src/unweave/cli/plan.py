"""``unweave plan``: what a recovery would cost, before anything is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from unweave.cli.exits import DONE
from unweave.cli.option_groups import TargetOptions
from unweave.cli.options import AsJson, TargetArgument
from unweave.cli.output.console import print_line, print_pairs, print_table, stdout_console
from unweave.cli.output.document import print_json
from unweave.cli.output.progress import watching
from unweave.recovery.plan import MethodPlan, Plan, plan
from unweave.recovery.wording import counted


@dataclass(frozen=True, kw_only=True)
class PlanOptions(TargetOptions):
    """Options of ``unweave plan``."""

    target: TargetArgument
    outputs: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Number of outputs, if TARGET does not say it."),
    ] = None
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="Precision of the answers: float64 (assumed), float32, rounded or noisy."
        ),
    ] = None
    look: Annotated[
        bool, typer.Option("--look", help="Ask a few hundred rows and measure, instead of assuming.")
    ] = False
    as_json: AsJson = False


def run_plan(options: PlanOptions) -> int:
    """Estimate the rows, seconds and memory that recovering TARGET would take, and list the assumptions.

    Nothing is asked unless --look is given.

    \b
    Examples:
      unweave plan models:predict --inputs 20 --hidden 40
      unweave plan model.onnx --look
    """
    with watching(False, 0), options.opened(options.target) as (target, told):
        made = plan(
            target.function, outputs=options.outputs, precision=options.precision, look=options.look, **told
        )
    if options.as_json:
        methods = [_entry_dict(entry) for entry in made.methods]
        print_json({"target": options.target, **vars(made), "methods": methods})
    else:
        _show(options.target, made)
    return DONE


def _entry_dict(entry: MethodPlan) -> dict[str, Any]:
    names = ("method", "hidden", "parameters", "tried", "why", "rows", "rows_per_parameter", "look_rows")
    cost = entry.cost
    return {
        **{name: getattr(entry, name) for name in (*names, "verification_rows")},
        "computing_seconds": cost.seconds,
        "seconds": entry.seconds,
        "megabytes": cost.megabytes,
        "how": cost.how,
    }


def _show(target: str, made: Plan) -> None:
    console = stdout_console()
    asked = f"{counted(made.sent, 'row')} asked" if made.sent else "nothing was asked"
    shape = f"{counted(made.inputs, 'input')}, {counted(made.outputs, 'output')}, {made.precision}"
    print_line(console, f"{target}: {shape}; {asked}.", "bold")
    headings = ("method", "hidden", "parameters", "rows", "per param.", "seconds", "MB", "how")
    tried = [_row(entry) for entry in made.methods if entry.tried]
    print_table(console, "Would be tried, in this order", headings, tried, right=headings[2:7])
    others = {entry.method: entry.why for entry in made.methods if not entry.tried}
    if others:
        print_table(console, "Would not be tried", ("method", "because"), list(others.items()))
    console.print()
    alone = any(entry.seconds is None for entry in made.methods if entry.tried)
    said = ("seconds are those of the computation; + the time that the target takes",) if alone else ()
    print_pairs(console, (("-", line) for line in (*made.assumptions, *said)))


def _row(entry: MethodPlan) -> tuple[str, ...]:
    seconds = entry.cost.seconds if entry.seconds is None else entry.seconds
    plus = "" if entry.seconds is not None else " +"
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
