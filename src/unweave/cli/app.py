"""The command line as a whole: its help, and the commands in the order they are listed."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from unweave import __version__
from unweave.cli.command import SETTINGS, as_app
from unweave.cli.exits import EXIT_CODES

COMMANDS = {
    "recover": "Recover the network behind TARGET.",
    "compare": "Tell whether two network files hold the same network.",
    "convert": "Write a network file in another format.",
    "diagnose": "Look at TARGET with a few hundred queries.",
    "plan": "Estimate what recovering TARGET would cost.",
    "audit": "Find out what the answers of TARGET give away.",
    "serve-model": "Serve a model file over HTTP on this machine.",
    "serve": "Serve a page to drive recoveries from a browser.",
    "reproduce": "Measure published tables, figures and claims again.",
    "demo": "Hide a network, recover it, compare the two.",
}
"""Name of a command -> short help. ``serve-model`` is `unweave.cli.serve_model.run_serve_model`."""

_CODES = "\n".join(f"{code:>5}  {meaning}" for code, meaning in EXIT_CODES.items())


class _LoadsOnUse(TyperGroup):
    """Imports the module of a command when that command is called, and of no other."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            word = name.replace("-", "_")
            run = getattr(import_module(f"unweave.cli.{word}"), f"run_{word}")
            command = typer.main.get_command(as_app(run))
        return name, command, rest


app = typer.Typer(
    name="unweave",
    cls=_LoadsOnUse,
    help=f"""Recover a neural network from what it answers, with a certificate of how sure that is.

\b
Try it:
  unweave demo
  unweave recover teacher.npz --out copy.npz
  unweave recover model.onnx --out copy.npz
  unweave recover models:predict --inputs 20
  unweave compare teacher.npz copy.npz
  unweave reproduce --list

\b
Exit codes:
{_CODES}
""",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=SETTINGS,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"unweave {__version__}")
        raise typer.Exit()


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _listed() -> None:
    """Stands for a command in the list; `_LoadsOnUse` puts the command itself in its place."""


for _name, _short_help in COMMANDS.items():
    app.command(_name, short_help=_short_help)(_listed)
