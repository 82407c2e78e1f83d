"""``unweave demo``: plant a network, hide it, recover it, compare with the truth."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from threadpoolctl import threadpool_limits

from unweave.arrays import Array
from unweave.cli.arguments import check_outputs
from unweave.cli.comparing import comparison_dict, comparison_rows
from unweave.cli.console import print_line, print_pairs, stdout_console
from unweave.cli.exits import EXIT_OF_STATUS, INTERRUPTED, NOT_EXACT
from unweave.cli.jsonable import print_json
from unweave.cli.progress import watching
from unweave.cli.show import print_summary, show_recovery, show_result
from unweave.errors import Interrupted
from unweave.networks.comparison import Comparison, compare
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.recovery.describe import describe
from unweave.recovery.recover import recover
from unweave.recovery.result import Recovery

LAYERS = (20, 100, 1)
"""Inputs, neurons and outputs of the planted network: five times as many neurons as inputs."""


def plant(seed: int) -> Network:
    """The network to hide: tanh, weights of norms 0.5 to 2, biases in [-1, 1], outer weights of both signs.

    Example: ``plant(0).n_parameters`` is 2201.
    """
    return random_network(LAYERS, activation="tanh", seed=seed, outer="signed", norms=(0.5, 2), bias=1)


def run_demo(seed: int, quiet: bool, verbosity: int, as_json: bool, report: Path | None = None) -> int:
    """Run the demonstration and return the exit code: 0 only if the network is the planted one."""
    check_outputs(None, None, "", report)
    truth = plant(seed)

    def target(x: Array) -> Array:
        return truth(x)

    console = stdout_console()
    if not (as_json or quiet):
        _introduce(console, truth)
    try:
        # One thread is as fast at this size, and does not collapse where other programs keep the cores busy.
        with watching(not (quiet or as_json), verbosity) as progress, threadpool_limits(limits=1):
            recovery = recover(target, input_dim=truth.n_inputs, seed=seed, progress=progress)
    except Interrupted as error:
        if not as_json:
            print_summary(console, error.recovery)
        else:
            print_json({**error.recovery.to_dict(), "interrupted": True})
        return INTERRUPTED
    if report is not None:
        command = f"unweave demo --seed {seed} --report {shlex.quote(str(report))}"
        replace(recovery, settings={**recovery.settings, "command": command}).save_report(report)
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
            console.print()
            console.print("Against the truth, which only this comparison sees", style="bold")
            print_pairs(console, comparison_rows(comparison))
        if report is not None:
            console.print()
            print_line(console, f"Wrote the report to {report}.")
        show_result(console, recovery)
    if comparison is not None and not comparison.is_same:
        print_line(console, f"DIFFERENT from the planted network: {comparison}", "bold red")
    else:
        print_summary(console, recovery)
