"""A recovery for people: the answer first, then notes, stages and certificate, at the end a table to quote.

The last line is for programs: the name of the status, then what was found at what price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from unweave.cli.output.console import Cell, print_heading, print_line, print_pairs, print_table, sentence
from unweave.recovery import wording
from unweave.recovery.certificate import AGREEING
from unweave.recovery.describe import describe
from unweave.recovery.result import FRESH_CHECKS, Recovery, Status
from unweave.recovery.wording import counted, percent

STATUS_STYLE: dict[Status, str] = {
    Status.RECOVERED: "bold green",
    Status.RECOVERED_UP_TO_AMBIGUITY: "bold green",
    Status.APPROXIMATE: "bold yellow",
    Status.FAILED: "bold red",
}

_MOST_LIST_ENTRIES = 4  # shown of a list among the figures of a stage


def show_recovery(console: Console, recovery: Recovery, interrupted: bool = False) -> None:
    """Print all of ``recovery`` but how it ends: `show_result`, then `print_summary`.

    With ``interrupted``, a note that nothing was verified takes the place of the verdict.
    """
    if interrupted:
        print_line(console, "Interrupted: this is what was found so far, not verified.", "bold yellow")
    else:
        print_line(console, sentence(str(recovery.status)), STATUS_STYLE[recovery.status])
    console.print()
    because = [("because", recovery.message)] if recovery.message else []
    print_pairs(console, [("network", _found(recovery)), *because])
    if recovery.notes:
        print_heading(console, "Notes")
        print_pairs(console, (("-", note) for note in recovery.notes))
    if recovery.stages:
        _show_stages(console, recovery)
    if len(recovery.certificate):
        _show_certificate(console, recovery)


def print_summary(console: Console, recovery: Recovery, interrupted: bool = False) -> None:
    """Print the last line: the name of the status, or INTERRUPTED, then what was found at what price."""
    line = _verdict(recovery, interrupted)
    print_line(console, line.append(f" {summary(recovery)}", style="default not bold"))


def _verdict(recovery: Recovery, interrupted: bool) -> Text:
    if interrupted:
        return Text("INTERRUPTED", style="bold yellow")
    return Text(recovery.status.name, style=STATUS_STYLE[recovery.status])


def summary(recovery: Recovery) -> str:
    """Return ``20-100-1 tanh, 2,201 parameters, error 3e-14, 50,934 queries (23.0 per parameter), 4.1 s``.

    Where the network is not recovered, the reason follows.
    """
    network = recovery.network
    queries = wording.queries(recovery.queries)
    why = f": {recovery.message}" if recovery.message and not recovery.status.is_recovered else ""
    if network is None:
        known = recovery.known_layers
        kept = "" if known is None else f" (first layers known: {describe(known)})"
        return f"no network{kept}, {queries}, {recovery.seconds:.1f} s{why}"
    parts = (
        describe(network),
        counted(network.n_parameters, "parameter"),
        "error not measured" if math.isnan(recovery.error) else f"error {recovery.error:.1g}",
        f"{queries} ({recovery.queries_per_parameter:.1f} per parameter)",
        f"{recovery.seconds:.1f} s",
    )
    return ", ".join(parts) + why


def show_result(console: Console, recovery: Recovery, interrupted: bool = False) -> None:
    """Print the closing table: what a person would quote, one figure per line."""
    print_heading(console, "Result")
    print_pairs(console, result_rows(recovery, interrupted))
    console.print()


def result_rows(recovery: Recovery, interrupted: bool = False) -> list[tuple[str, Cell]]:
    """Return the rows of the closing table: status, network, error, error bars, cost."""
    verdict = _verdict(recovery, interrupted)
    if interrupted:
        verdict.append(" (not verified)", style="default not bold")
    rows: list[tuple[str, Cell]] = [("status", verdict), ("network", _found(recovery))]
    if recovery.network is not None:
        rows += [("error", _error(recovery)), ("error bars", _error_bars(recovery))]
    queries = f"{recovery.queries:,}"
    if recovery.queries:
        spent = recovery.queries - recovery.probing_queries - recovery.verification_queries
        queries += (
            f" (look {recovery.probing_queries:,}, recover {spent:,}, "
            f"verify {recovery.verification_queries:,})"
        )
    rows.append(("queries", queries))
    if recovery.network is not None and recovery.queries:
        rows.append(("per parameter", f"{recovery.queries_per_parameter:.1f} queries"))
    rows.append(("seconds", f"{recovery.seconds:.1f}"))
    return rows


def _found(recovery: Recovery) -> str:
    if recovery.network is not None:
        return f"{describe(recovery.network)}, {counted(recovery.network.n_parameters, 'parameter')}"
    if recovery.known_layers is not None:
        return f"none; first layers known: {describe(recovery.known_layers)}"
    return "none"


def _error(recovery: Recovery) -> str:
    """Return the error on fresh rows and the error allowed."""
    if math.isnan(recovery.error):
        return "not measured"
    checks = [recovery.certificate[name] for name in FRESH_CHECKS if name in recovery.certificate]
    allowed = [f" ({figure(check.threshold)} allowed)" for check in checks if check.threshold is not None]
    said = f"{recovery.error:.2g} of the largest answer, on fresh rows{''.join(allowed[:1])}"
    if AGREEING in recovery.certificate:
        said += f"; {percent(recovery.certificate[AGREEING].value)} of the rows agree"
    return said


def _error_bars(recovery: Recovery) -> str:
    """Return the largest standard error of a parameter, in the target's inputs where that is known."""
    evidence, errors = recovery.evidence, recovery.standard_errors
    if errors is not None and not evidence.from_exact_equations:  # exact equations leave less than these
        worst = max(float(part.max(initial=0.0)) for part in (*errors.weights, *errors.biases))
        return f"{worst:.2g} at most (standard error of a parameter)"
    if evidence.parameter_error_bar is None or math.isnan(evidence.parameter_error_bar):
        return "not measured"
    return f"{evidence.parameter_error_bar:.2g} at most (standard error, inputs normalised)"


def _show_stages(console: Console, recovery: Recovery) -> None:
    headings = ("stage", "seconds", "queries", "figures")
    rows = [(s.name, f"{s.seconds:.2f}", f"{s.queries:,}", figures(s.figures)) for s in recovery.stages]
    print_table(console, "Stages", headings, rows, right=("seconds", "queries"))


def _show_certificate(console: Console, recovery: Recovery) -> None:
    """Print the grounds of the verdict, then what else was measured."""
    styles = {"yes": "green", "NO": "bold red"}
    headings = ("check", "value", "against", "ok", "implies")
    certificate = recovery.certificate
    for title, checks in (
        ("Certificate: what the verdict rests on", certificate.grounds),
        ("Measured besides: hypotheses and figures that decide nothing", certificate.further),
    ):
        rows = []
        for check in checks:
            against = "" if check.threshold is None else figure(check.threshold)
            mark = Text(check.mark, style=styles.get(check.mark, ""))
            rows.append((check.name, figure(check.value), against, mark, check.implies))
        if rows:
            print_table(console, title, headings, rows, right=("value", "against"))


def figures(values: Mapping[str, Any]) -> str:
    """Return ``sites 115, width 100, gap 2.14e+03``."""
    return ", ".join(f"{name} {figure(value)}" for name, value in values.items())


def figure(value: Any) -> str:
    """Format one figure: three digits of a float, thousands of an int, the first few of a list."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        more = " ..." if len(value) > _MOST_LIST_ENTRIES else ""
        return " ".join(figure(entry) for entry in value[:_MOST_LIST_ENTRIES]) + more
    return f"{value:.3g}" if isinstance(value, float) else str(value)
