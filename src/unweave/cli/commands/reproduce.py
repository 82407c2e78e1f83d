"""The options of ``unweave reproduce``."""

from __future__ import annotations

from typing import Annotated

import typer

from unweave.cli.declared_options import AsJson, Quiet, Seed
from unweave.cli.exits import exit_code_of


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Which one, or all; none for the list.", show_default=False),
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Only show the list.")] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure a published table, figure or claim again, and show published beside measured figures.

    Each takes from less than a second to half a minute. Ctrl-C shows what is measured so far. Exit code 0:
    every figure agrees; 1: one does not.

    \b
    Examples:
      unweave reproduce --list
      unweave reproduce wide-layers
      unweave reproduce all --json
    """
    from unweave.cli.reproducing import ReproduceOptions, run_reproduce

    options = ReproduceOptions(name, list_only, seed, quiet, as_json)
    raise typer.Exit(exit_code_of(lambda: run_reproduce(options), as_json))
