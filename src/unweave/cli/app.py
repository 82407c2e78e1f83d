"""The command line as a whole: its help, and the commands in the order they are listed."""

from __future__ import annotations

from typing import Annotated

import typer

from unweave import __version__
from unweave.cli.commands.audit import audit
from unweave.cli.commands.compare import compare
from unweave.cli.commands.convert import convert
from unweave.cli.commands.demo import demo
from unweave.cli.commands.diagnose import diagnose
from unweave.cli.commands.plan import plan
from unweave.cli.commands.recover import recover
from unweave.cli.commands.reproduce import reproduce
from unweave.cli.commands.serve import serve
from unweave.cli.commands.serve_model import serve_model
from unweave.cli.exits import EXIT_CODES

_CODES = "\n".join(f"{code:>5}  {meaning}" for code, meaning in EXIT_CODES.items())

app = typer.Typer(
    name="unweave",
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
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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


app.command(short_help="Recover the network behind TARGET.")(recover)
app.command(short_help="Tell whether two network files are the same.")(compare)
app.command(short_help="Write a network file in another format.")(convert)
app.command(short_help="Look at TARGET: precision, region, kinks, methods.")(diagnose)
app.command(short_help="Tell what recovering TARGET would cost, before anything is asked.")(plan)
app.command(short_help="Find out what the answers of TARGET give away, at which precision.")(audit)
app.command(short_help="Serve a model file over HTTP on this machine.")(serve_model)
app.command(short_help="Serve a page to drive recoveries from a browser.")(serve)
app.command(short_help="Measure published tables, figures and claims again.")(reproduce)
app.command(short_help="Hide a network, recover it, compare.")(demo)
