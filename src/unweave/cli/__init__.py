"""The command line: ``unweave recover``, ``compare``, ``diagnose``, ``reproduce``, ``demo`` and more."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave the process with one of the codes of `unweave.cli.exits.EXIT_CODES`."""
    try:
        from unweave.cli.app import app  # typer is only loaded when there is a command line to read

        app(prog_name="unweave")
    except KeyboardInterrupt:  # before or after a command ran, where there is nothing more to tell
        print("interrupted", file=sys.stderr)
        sys.exit(130)


__all__ = ["main"]
