"""The options of ``unweave demo``."""

from __future__ import annotations

import typer

from unweave.cli.declared_options import AsJson, Quiet, Report, Seed, Verbose
from unweave.cli.exits import exit_code_of


def demo(
    seed: Seed = 0,
    report: Report = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    as_json: AsJson = False,
) -> None:
    """Plant a network of 2,201 parameters, hide it, recover it from its answers, compare with the truth.

    \b
    Example:
      unweave demo --seed 3
    """
    from unweave.cli.demo import run_demo

    raise typer.Exit(exit_code_of(lambda: run_demo(seed, quiet, verbose, as_json, report), as_json))
