"""``unweave demo``: plant a network, hide it, recover it, compare with the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from unweave.arrays import Array
from unweave.cli.arguments import PAGE_ENDINGS, check_outputs
from unweave.cli.compare import comparison_dict, comparison_rows
from unweave.cli.exits import EXIT_OF_STATUS, INTERRUPTED, NOT_EXACT
from unweave.cli.options import AsJson, Quiet, Report, Seed, Verbose
from unweave.cli.output.console import print_heading, print_line, print_pairs, stdout_console
from unweave.cli.output.document import print_json
from unweave.cli.output.progress import watching
from unweave.cli.output.recovery import print_summary, show_recovery, show_result
from unweave.cli.typed_command import typed_command
from unweave.errors import Interrupted, InvalidInput
from unweave.networks.comparison import Comparison, compare
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.recovery.describe import describe
from unweave.recovery.recover import recover
from unweave.recovery.result import Recovery
from unweave.search.request import widths_from_text


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Options of ``unweave demo``."""

    layers: Annotated[
        str, typer.Option(metavar="WIDTHS", help="Inputs, hidden widths and outputs of the hidden network.")
    ] = "20,100,1"
    report: Report = None
    seed: Seed = 0
    quiet: Quiet = False
    verbose: Verbose = 0
    as_json: AsJson = False


def plant(layers: str, seed: int) -> Network:
    """Return the network to hide: tanh, weights of norms 0.5 to 2, biases in [-1, 1], outer signs mixed.

    Example: ``plant("20,100,1", 0).n_parameters`` is 2201.
    """
    try:
        widths = widths_from_text(layers)
    except InvalidInput as error:
        raise InvalidInput(
            f"--layers must be whole numbers >= 1 with commas between. Got {layers!r} instead. "
            "For example 20,100,1."
        ) from error
    return random_network(widths, activation="tanh", seed=seed, outer="signed", norms=(0.5, 2), bias=1)


def run_demo(options: DemoOptions) -> int:
    """Hide a random network of 2,201 parameters, recover it from its answers, and compare it with the truth.

    Exit code 0: the network found is the planted one.

    \b
    Example:
      unweave demo --seed 3
    """
    report, as_json, quiet = options.report, options.as_json, options.quiet
    check_outputs("", {"--report": (report, PAGE_ENDINGS)})
    truth = plant(options.layers, options.seed)

    def target(x: Array) -> Array:
        return truth(x)

    console = stdout_console()
    if not (as_json or quiet):
        _introduce(console, truth)
    try:
        # One thread is as fast at this size, and does not collapse where other programs keep the cores busy.
        with watching(not (quiet or as_json), options.verbose) as progress, threadpool_limits(limits=1):
            recovery = recover(target, input_dim=truth.n_inputs, seed=options.seed, progress=progress)
    except Interrupted as error:
        if not as_json:
            if not quiet:
                show_recovery(console, error.recovery, interrupted=True)
                console.print()
            print_summary(console, error.recovery, interrupted=True)
        else:
            print_json({**error.recovery.to_dict(), "interrupted": True})
        return INTERRUPTED
    if report is not None:
        settings = {**recovery.settings, "command": typed_command("demo", options)}
        replace(recovery, settings=settings).save_report(report)
    comparison = None if recovery.network is None else compare(truth, recovery.network)
    if as_json:
        figures = None if comparison is None else comparison_dict(comparison)
        planted = {"planted": describe(truth), **recovery.to_dict()}
        print_json({**planted, "comparison": figures, "report": report})
    else:
        _show(console, recovery, comparison, quiet, report)
    code = EXIT_OF_STATUS[recovery.status]
    return code if code or (comparison is not None and comparison.is_same) else NOT_EXACT


def _introduce(console: Console, truth: Network) -> None:
    console.print(
        f"A random {describe(truth)} network with {truth.n_parameters:,} parameters is hidden behind a "
        f"function that only answers. unweave is told that it takes {truth.n_inputs} inputs: neither its "
        "width, nor its activation, nor a single weight."
    )
    console.print()


def _show(
    console: Console, recovery: Recovery, comparison: Comparison | None, quiet: bool, report: Path | None
) -> None:
    if not quiet:
        show_recovery(console, recovery)
        if comparison is not None:
            print_heading(console, "Against the truth, which only this comparison sees")
            print_pairs(console, comparison_rows(comparison))
        if report is not None:
            console.print()
            print_line(console, f"Wrote the report to {report}.")
        show_result(console, recovery)
    if comparison is not None and not comparison.is_same:
        print_line(console, f"DIFFERENT from the planted network: {comparison}", "bold red")
    else:
        print_summary(console, recovery)
