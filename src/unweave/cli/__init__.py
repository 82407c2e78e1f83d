"""The command line: ``unweave recover``, ``compare``, ``diagnose``, ``reproduce``, ``demo`` and more."""

from __future__ import annotations

import signal
import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line and leave the process with one of the codes of `unweave.cli.exits.EXIT_CODES`."""
    try:
        from unweave.cli.app import app  # typer is only loaded when there is a command line to read

        app(prog_name="unweave")
    except KeyboardInterrupt:
        _say_interrupted()
        sys.exit(_INTERRUPTED)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            _say_interrupted()
        raise
    finally:  # what the command had to say is said: leaving takes a moment, and its code should stand
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _say_interrupted() -> None:
    """Say so, unless the command has: an interrupt may come before it begins, when typer leaves silently."""
    exits = sys.modules.get("unweave.cli.exits")
    if exits is None or not exits.interrupt_told:
        print("interrupted", file=sys.stderr)


__all__ = ["main"]
