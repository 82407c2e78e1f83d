"""A recovery for people: the answer first, then notes, stages, the certificate, and one line of summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from unweave.cli.console import Cell, print_line, print_pairs, print_table
from unweave.describing import describe
from unweave.result import Recovery, Status

STATUS_STYLE: dict[Status, str] = {
    Status.RECOVERED: "bold green",
    Status.RECOVERED_UP_TO_AMBIGUITY: "bold green",
    Status.APPROXIMATE: "bold yellow",
    Status.FAILED: "bold red",
}

_MOST_ENTRIES = 4  # of a list among the figures of a stage


def show_recovery(console: Console, recovery: Recovery, interrupted: bool = False) -> None:
    """Print all of ``recovery`` but its last line, which is `print_summary`.

    ``interrupted`` replaces the verdict, which nobody has passed, by the words that it is not verified.
    """
    if interrupted:
        print_line(console, "Interrupted: this is what was found so far, not verified.", "bold yellow")
    else:
        print_line(console, _sentence(str(recovery.status)), STATUS_STYLE[recovery.status])
    console.print()
    print_pairs(console, _answer(recovery))
    if recovery.notes:
        console.print()
        console.print("Notes", style="bold")
        print_pairs(console, (("-", note) for note in recovery.notes))
    if recovery.stages:
        _show_stages(console, recovery)
    if len(recovery.certificate):
        _show_certificate(console, recovery)


def print_summary(console: Console, recovery: Recovery) -> None:
    """Print the last line: the name of the status, then what was found at what price."""
    status = recovery.status
    line = Text(status.name, style=STATUS_STYLE[status])
    print_line(console, line.append(f" {summary(recovery)}", style="default not bold"))


def summary(recovery: Recovery) -> str:
    """``20-100-1 tanh, 2201 parameters, error 3e-14, 50,934 queries (23.0 per parameter), 4.1 s``."""
    network = recovery.network
    queries = f"{recovery.queries:,} queries"
    if network is None:
        known = recovery.known_layers
        kept = "" if known is None else f" (first layers known: {describe(known)})"
        return f"no network{kept}, {queries}, {recovery.seconds:.1f} s"
    parts = [
        describe(network),
        f"{network.n_parameters} parameters",
        f"error {_number(recovery.error, 1)}",
        f"{queries} ({recovery.queries_per_parameter:.1f} per parameter)",
        f"{recovery.seconds:.1f} s",
    ]
    return ", ".join(parts)


def _answer(recovery: Recovery) -> list[tuple[str, Cell]]:
    rows: list[tuple[str, Cell]] = []
    network = recovery.network
    if network is not None:
        rows.append(("network", f"{describe(network)}, {network.n_parameters:,} parameters"))
        rows.append(("error", f"{_number(recovery.error, 2)} on fresh rows, relative to the largest answer"))
    if recovery.known_layers is not None:
        rows.append(
            ("known", f"the first layers, {describe(recovery.known_layers)}: inputs to hidden states")
        )
    spent = recovery.queries - recovery.probing_queries - recovery.verification_queries
    each = "" if network is None else f" = {recovery.queries_per_parameter:.1f} per parameter"
    rows.append(
        (
            "cost",
            f"{recovery.queries:,} queries, {recovery.seconds:.1f} s (look {recovery.probing_queries:,}, "
            f"recover {spent:,}{each}, verify {recovery.verification_queries:,})",
        )
    )
    if recovery.message:
        rows.append(("because", recovery.message))
    return rows


def _show_stages(console: Console, recovery: Recovery) -> None:
    print_table(
        console,
        "Stages",
        ("stage", "seconds", "queries", "figures"),
        (
            (stage.name, f"{stage.seconds:.2f}", f"{stage.queries:,}", figures(stage.figures))
            for stage in recovery.stages
        ),
        right=("seconds", "queries"),
    )


def _show_certificate(console: Console, recovery: Recovery) -> None:
    marks = {True: Text("yes", style="green"), False: Text("NO", style="bold red"), None: Text("")}
    print_table(
        console,
        "Certificate",
        ("check", "value", "against", "ok", "implies"),
        (
            (
                check.name,
                figure(check.value),
                "" if check.threshold is None else figure(check.threshold),
                marks[check.holds],
                check.implies,
            )
            for check in recovery.certificate
        ),
        right=("value", "against"),
    )


def figures(values: Mapping[str, Any]) -> str:
    """``sites 115, width 100, gap 2.14e+03``."""
    return ", ".join(f"{name} {figure(value)}" for name, value in values.items())


def figure(value: Any) -> str:
    """One figure, short: three digits of a float, thousands of an int marked, the first few of a list."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        more = " ..." if len(value) > _MOST_ENTRIES else ""
        return " ".join(figure(entry) for entry in value[:_MOST_ENTRIES]) + more
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _number(value: float, digits: int) -> str:
    return "not measured" if math.isnan(value) else f"{value:.{digits}g}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
