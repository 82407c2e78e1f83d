"""The commands and their options; what they do is in the module named after each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave import __version__
from unweave.cli.exits import EXIT_CODES, exit_code_of
from unweave.comparison import SAME_PARAMETERS

_CODES = "\n".join(f"{code:>5}  {meaning}" for code, meaning in EXIT_CODES.items())

app = typer.Typer(
    name="unweave",
    help=f"""Recover a neural network from what it answers, with a certificate of how sure that is.

\b
Try it:
  unweave demo
  unweave recover teacher.npz --out copy.npz
  unweave recover models:predict --inputs 20
  unweave compare teacher.npz copy.npz

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

TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A network file (.npz, .json), or module:function.", show_default=False
    ),
]
Hidden = Annotated[
    str | None,
    typer.Option(metavar="WIDTHS", help='Hidden widths if known, e.g. 30 or 50,25; "" for no hidden layer.'),
]
Activation = Annotated[str | None, typer.Option(metavar="NAME", help="Activation if known, e.g. tanh.")]
Inputs = Annotated[
    int | None, typer.Option(min=1, metavar="D", help="Number of inputs, for a function that does not say.")
]
Domain = Annotated[
    str | None, typer.Option(metavar="LOW,HIGH", help="Ask nothing outside, e.g. --domain=-1,1.")
]
Examples = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Typical inputs, one per row (.npy, .npz, .csv).")
]
MaxQueries = Annotated[int | None, typer.Option(min=0, metavar="N", help="Most rows that may be asked.")]
Seed = Annotated[int, typer.Option(min=0, metavar="S", help="Same seed, same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the last line.")]
Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Log to stderr; -vv for more.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]


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


@app.command(short_help="Recover the network behind TARGET.")
def recover(
    target: TargetArgument,
    hidden: Hidden = None,
    activation: Activation = None,
    output_activation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Output activation if known: identity, tanh, sigmoid.")
    ] = None,
    inputs: Inputs = None,
    domain: Domain = None,
    examples: Examples = None,
    max_queries: MaxQueries = None,
    deadline: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Most time to take.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="T", help="Relative error that counts as recovered [default: the target's precision]."
        ),
    ] = None,
    seed: Seed = 0,
    method: Annotated[str | None, typer.Option(metavar="NAME", help="Try only this method.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the network here (.npz, .json).")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the whole result here (.npz).")
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    as_json: AsJson = False,
) -> None:
    """Recover the network behind TARGET from its answers alone.

    TARGET is a file that unweave wrote, of which only answers are used, or module:function, imported from
    the current directory: any callable from (n, D) to (n,) or (n, K). Ctrl-C shows what was found so far.

    \b
    Examples:
      unweave recover teacher.npz --out copy.npz
      unweave recover deep.npz --hidden 50,25
      unweave recover models:predict --inputs 20 --domain=-1,1 --max-queries 100000
      unweave recover models:model.predict --examples typical.csv --json
    """
    from unweave.cli.recovering import RecoverOptions, run_recover

    options = RecoverOptions(
        target=target,
        hidden=hidden,
        activation=activation,
        output_activation=output_activation,
        inputs=inputs,
        domain=domain,
        examples=examples,
        max_queries=max_queries,
        deadline=deadline,
        tolerance=tolerance,
        seed=seed,
        method=method,
        out=out,
        save=save,
        quiet=quiet,
        verbosity=verbose,
        as_json=as_json,
    )
    raise typer.Exit(exit_code_of(lambda: run_recover(options), as_json))


@app.command(short_help="Tell whether two network files are the same.")
def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="A network file: the reference.", show_default=False)
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="The network file to compare.", show_default=False)],
    tolerance: Annotated[
        float, typer.Option(metavar="T", help="Largest parameter error of the same network.")
    ] = SAME_PARAMETERS,
    as_json: AsJson = False,
) -> None:
    """Tell whether two network files hold the same network, up to symmetry.

    Order and signs of neurons, duplicates and the like do not count. Exit code 0: the same; 1: different.

    \b
    Example:
      unweave compare teacher.npz copy.npz --tolerance 1e-9
    """
    from unweave.cli.comparing import run_compare

    raise typer.Exit(exit_code_of(lambda: run_compare(a, b, tolerance, as_json), as_json))


@app.command(short_help="Look at TARGET: precision, region, kinks, methods.")
def diagnose(
    target: TargetArgument,
    hidden: Hidden = None,
    activation: Activation = None,
    inputs: Inputs = None,
    domain: Domain = None,
    examples: Examples = None,
    max_queries: MaxQueries = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Look at TARGET for a few hundred queries: precision, region, kinks, and which methods would be tried.

    For a file with one hidden layer, also how hard its weights are to recover: coherence, conditioning, and
    whether the hypotheses of the theory hold.

    \b
    Example:
      unweave diagnose models:predict --inputs 20
    """
    from unweave.cli.diagnosing import DiagnoseOptions, run_diagnose

    options = DiagnoseOptions(
        target=target,
        hidden=hidden,
        activation=activation,
        inputs=inputs,
        domain=domain,
        examples=examples,
        max_queries=max_queries,
        seed=seed,
        as_json=as_json,
    )
    raise typer.Exit(exit_code_of(lambda: run_diagnose(options), as_json))


@app.command(short_help="Hide a network, recover it, compare.")
def demo(seed: Seed = 0, quiet: Quiet = False, verbose: Verbose = 0, as_json: AsJson = False) -> None:
    """Plant a network of 2,201 parameters, hide it, recover it from its answers, compare with the truth.

    \b
    Example:
      unweave demo --seed 3
    """
    from unweave.cli.demo import run_demo

    raise typer.Exit(exit_code_of(lambda: run_demo(seed, quiet, verbose, as_json), as_json))
