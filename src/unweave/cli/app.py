"""The commands and their options; what they do is in the module named after each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave import __version__
from unweave.cli.exits import EXIT_CODES, exit_code_of
from unweave.cli.http_arguments import NO_HTTP, HttpArguments, with_http_options
from unweave.comparison import SAME_PARAMETERS

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

_TARGET_HELP = (
    "A model file (.npz, .json, .safetensors, .onnx), the URL of an endpoint, 'cmd:' and a command, or "
    "module:object."
)
TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET_HELP, show_default=False)]
TargetOrTable = Annotated[str | None, typer.Argument(metavar="TARGET", help=_TARGET_HELP, show_default=False)]
CommandFormat = Annotated[
    str, typer.Option(metavar="FORMAT", help="How a command reads rows and answers: csv, json or batch.")
]
CommandTimeout = Annotated[
    float, typer.Option(metavar="SECONDS", help="Longest time without an answer of a command.")
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
OutDtype = Annotated[
    str, typer.Option(metavar="TYPE", help="Write parameters as float64, exactly, or rounded to float32.")
]
LayerActivations = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Activations, output layer included, of a .safetensors file that does not say them: "
        "tanh,tanh,identity.",
    ),
]
Report = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a report with pictures here (.html).")
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
@with_http_options
def recover(
    target: TargetOrTable = None,
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
    derivatives: Annotated[
        str,
        typer.Option(
            metavar="WHENCE",
            help="queries, or autodiff: a torch module's own, each pass a query.",
        ),
    ] = "queries",
    table: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Instead of TARGET: inputs, then answers (.csv, .npy, .npz, or x.npy,y.npy)."
        ),
    ] = None,
    outputs: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="Answers per row of the table [default: 1].")
    ] = None,
    command_format: CommandFormat = "csv",
    command_timeout: CommandTimeout = 60.0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the network here (.npz, .json, .onnx, .safetensors)."),
    ] = None,
    dtype: OutDtype = "float64",
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the whole result here (.npz).")
    ] = None,
    report: Report = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Keep every answer here (a .sqlite file, or a folder); run again to go on after a crash.",
        ),
    ] = None,
    check_log: Annotated[
        bool, typer.Option("--check-log", help="Ask one row of the checkpoint again: is it the same target?")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Compute on N processes (needs Dask).")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Compute on a Dask cluster, e.g. tcp://10.0.0.5:8786."),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    as_json: AsJson = False,
    http: HttpArguments = NO_HTTP,
) -> None:
    """Recover the network behind TARGET from its answers alone.

    TARGET is only ever asked for answers. It is a network that unweave wrote or an ONNX graph; the URL of an
    endpoint; "cmd:" and a command that reads a line of numbers per row and writes a line of answers; or
    module:object, imported from the current directory: any callable from (n, D) to (n,) or (n, K), a torch
    module, a scikit-learn estimator, a keras model. With --table there is nothing to ask, only samples.
    Ctrl-C shows what was found so far.

    \b
    Examples:
      unweave recover teacher.npz --out copy.npz --report report.html
      unweave recover deep.npz --hidden 50,25
      unweave recover models:predict --inputs 20 --domain=-1,1 --max-queries 100000
      unweave recover models:model.predict --examples typical.csv --json
      unweave recover model.onnx --out copy.npz
      unweave recover models:module --derivatives autodiff
      unweave recover http://127.0.0.1:8000/predict
      unweave recover "cmd:python model.py" --inputs 20
      unweave recover models:slow --inputs 20 --checkpoint run.sqlite --workers 2
      unweave recover --table samples.csv --outputs 2 --activation relu
    """
    from unweave.cli.recovering import RecoverOptions, run_recover
    from unweave.cli.running import RunningOptions
    from unweave.cli.targets import CommandOptions

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
        derivatives=derivatives,
        out=out,
        dtype=dtype,
        save=save,
        report=report,
        quiet=quiet,
        verbosity=verbose,
        as_json=as_json,
        table=table,
        outputs=outputs,
        command=CommandOptions(command_format, command_timeout),
        http=http,
        running=RunningOptions(workers, scheduler, checkpoint, check_log),
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
    activations: LayerActivations = None,
    as_json: AsJson = False,
) -> None:
    """Tell whether two network files hold the same network, up to symmetry.

    Any two of .npz, .json, .onnx (a chain of layers, whoever wrote it) and .safetensors (also the state of a
    torch module, with --activations). Order and signs of neurons, duplicates and the like do not count. Exit
    code 0: the same; 1: different.

    \b
    Example:
      unweave compare teacher.npz copy.npz --tolerance 1e-9
      unweave compare teacher.onnx state.safetensors --activations tanh,identity
    """
    from unweave.cli.comparing import run_compare

    raise typer.Exit(exit_code_of(lambda: run_compare(a, b, tolerance, as_json, activations), as_json))


@app.command(short_help="Write a network file in another format.")
def convert(
    a: Annotated[Path, typer.Argument(metavar="A", help="A network file.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="The file to write.", show_default=False)],
    dtype: OutDtype = "float64",
    activations: LayerActivations = None,
    as_json: AsJson = False,
) -> None:
    """Write the network in A to B: .npz, .json, .onnx or .safetensors, as its ending says.

    Parameters are kept bit for bit unless --dtype float32 rounds them. B is read back and compared before
    the command says so.

    \b
    Example:
      unweave convert copy.npz copy.onnx
      unweave convert model.onnx model.safetensors --dtype float32
    """
    from unweave.cli.converting import run_convert

    raise typer.Exit(exit_code_of(lambda: run_convert(a, b, dtype, activations, as_json), as_json))


@app.command(short_help="Look at TARGET: precision, region, kinks, methods.")
@with_http_options
def diagnose(
    target: TargetArgument,
    hidden: Hidden = None,
    activation: Activation = None,
    inputs: Inputs = None,
    domain: Domain = None,
    examples: Examples = None,
    max_queries: MaxQueries = None,
    seed: Seed = 0,
    command_format: CommandFormat = "csv",
    command_timeout: CommandTimeout = 60.0,
    as_json: AsJson = False,
    http: HttpArguments = NO_HTTP,
) -> None:
    """Look at TARGET for a few hundred queries: precision, region, kinks, and which methods would be tried.

    For a file with one hidden layer, also how hard its weights are to recover: coherence, conditioning, and
    whether the hypotheses of the theory hold.

    \b
    Example:
      unweave diagnose models:predict --inputs 20
    """
    from unweave.cli.diagnosing import DiagnoseOptions, run_diagnose
    from unweave.cli.targets import CommandOptions

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
        command=CommandOptions(command_format, command_timeout),
        http=http,
    )
    raise typer.Exit(exit_code_of(lambda: run_diagnose(options), as_json))


@app.command(short_help="Tell what recovering TARGET would cost, before anything is asked.")
@with_http_options
def plan(
    target: TargetArgument,
    hidden: Hidden = None,
    activation: Activation = None,
    inputs: Inputs = None,
    outputs: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="Number of outputs, if the target does not say.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Of the answers: float64 (assumed), float32, rounded or noisy."),
    ] = None,
    look: Annotated[
        bool, typer.Option("--look", help="Ask a few hundred rows, to measure instead of assuming.")
    ] = False,
    domain: Domain = None,
    examples: Examples = None,
    seed: Seed = 0,
    command_format: CommandFormat = "csv",
    command_timeout: CommandTimeout = 60.0,
    as_json: AsJson = False,
    http: HttpArguments = NO_HTTP,
) -> None:
    """Tell what recovering TARGET would cost: rows, seconds and memory, per method, with the assumptions.

    Nothing is asked without --look.

    \b
    Examples:
      unweave plan models:predict --inputs 20 --hidden 40
      unweave plan model.onnx --look
    """
    from unweave.cli.planning import PlanOptions, run_plan
    from unweave.cli.targets import CommandOptions

    options = PlanOptions(
        target=target,
        hidden=hidden,
        activation=activation,
        inputs=inputs,
        outputs=outputs,
        precision=precision,
        look=look,
        domain=domain,
        examples=examples,
        seed=seed,
        as_json=as_json,
        command=CommandOptions(command_format, command_timeout),
        http=http,
    )
    raise typer.Exit(exit_code_of(lambda: run_plan(options), as_json))


@app.command(short_help="Find out what the answers of TARGET give away, at which precision.")
@with_http_options
def audit(
    target: TargetArgument,
    decimals: Annotated[
        str, typer.Option(metavar="LIST", help='Decimals that might be published; "" for none.')
    ] = "6,4,3,2",
    noise: Annotated[
        str | None, typer.Option(metavar="LIST", help="Standard deviations of noise that might be added.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Queries that a client might be allowed, e.g. 1000,10000 [default: powers of ten].",
        ),
    ] = None,
    alarm: Annotated[
        float, typer.Option(metavar="E", help="Median relative error at which weights count as given away.")
    ] = 0.01,
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
    seed: Seed = 0,
    command_format: CommandFormat = "csv",
    command_timeout: CommandTimeout = 60.0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the audit with pictures here (.html).")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Keep every answer of TARGET here (a .sqlite file, or a folder)."),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    as_json: AsJson = False,
    http: HttpArguments = NO_HTTP,
) -> None:
    """Find out whether TARGET gives its weights away, after how many queries, at how many decimals.

    TARGET is recovered once. The network found then stands in for it and is attacked with every precision
    and every budget, by averaging and by bisection; that costs TARGET no further query. Ctrl-C shows the
    points that are done. Exit code 0: audited; 1 or 3: TARGET was not recovered, so that there is no curve.

    \b
    Examples:
      unweave audit models:predict --inputs 30 --out audit.html
      unweave audit http://127.0.0.1:8000/predict --decimals 4,3,2 --noise 1e-3,1e-2 --budget 1000,100000
    """
    from unweave.cli.auditing import AuditOptions, run_audit
    from unweave.cli.targets import CommandOptions

    options = AuditOptions(
        target=target,
        decimals=decimals,
        noise=noise,
        budget=budget,
        alarm=alarm,
        hidden=hidden,
        activation=activation,
        output_activation=output_activation,
        inputs=inputs,
        domain=domain,
        examples=examples,
        max_queries=max_queries,
        deadline=deadline,
        seed=seed,
        out=out,
        checkpoint=checkpoint,
        quiet=quiet,
        verbosity=verbose,
        as_json=as_json,
        command=CommandOptions(command_format, command_timeout),
        http=http,
    )
    raise typer.Exit(exit_code_of(lambda: run_audit(options), as_json))


@app.command(short_help="Serve a model file over HTTP on this machine.")
def serve_model(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A network file or an ONNX file.", show_default=False)
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="P", help="0 for any free one.")] = 0,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    decimals: Annotated[int | None, typer.Option(metavar="D", help="Round the answers.")] = None,
    noise: Annotated[float, typer.Option(min=0, metavar="S", help="Add Gaussian noise of this size.")] = 0.0,
    drop: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Requests left unanswered.")
    ] = 0.0,
    delay: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="Requests answered late.")
    ] = 0.0,
    delay_seconds: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How late.")] = 0.5,
    corrupt: Annotated[float, typer.Option(min=0, max=1, metavar="SHARE", help="Answers damaged.")] = 0.0,
    token_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable with the key to ask for.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Serve a model file over HTTP on this machine, with faults if asked for, until Ctrl-C.

    POST /predict answers {"instances": rows} with {"predictions": answers}; GET /metadata, /health and
    /count (what became of the rows) tell about it. One line with the URL is printed.

    \b
    Example:
      unweave serve-model net.onnx --port 8080 --drop 0.05 --delay 0.05
    """
    from unweave.cli.serving_model import ServeOptions, run_serve_model

    options = ServeOptions(
        path=file,
        host=host,
        port=port,
        drop=drop,
        delay=delay,
        delay_seconds=delay_seconds,
        corrupt=corrupt,
        noise=noise,
        decimals=decimals,
        token_env=token_env,
        seed=seed,
        as_json=as_json,
    )
    raise typer.Exit(exit_code_of(lambda: run_serve_model(options), as_json))


@app.command(short_help="Serve a page to drive recoveries from a browser.")
def serve(
    host: Annotated[
        str,
        typer.Option(metavar="HOST", help="Address to listen on; beyond this machine only with --token-env."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="P", help="0 for any free one.")] = 8377,
    folder: Annotated[
        Path, typer.Option(metavar="RUNS", help="Where the runs are kept, one folder each.")
    ] = Path("unweave-runs"),
    token_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable with the key to ask for.")
    ] = None,
    max_upload_mb: Annotated[float, typer.Option(metavar="MB", help="Largest file that is taken.")] = 64.0,
    as_json: AsJson = False,
) -> None:
    """Serve a page to drive recoveries from a browser, until Ctrl-C.

    Upload a model file or a table, or name an endpoint; watch, cancel, read the report, download the network.
    Runs are kept in RUNS and survive a restart. One line with the address is printed.

    \b
    Example:
      unweave serve
      unweave serve --port 9000 --folder runs
    """
    from unweave.cli.serving_page import ServePageOptions, run_serve

    options = ServePageOptions(folder, host, port, token_env, max_upload_mb, as_json)
    raise typer.Exit(exit_code_of(lambda: run_serve(options), as_json))


@app.command(short_help="Measure published tables, figures and claims again.")
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


@app.command(short_help="Hide a network, recover it, compare.")
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
