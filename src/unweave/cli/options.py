"""Options that several commands have, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave.networks.links import ALL_LINKS

KNOWN = "What is known of the network"
ROWS = "What may be asked"
LIMITS = "Limits"
METHOD = "How it is found"
RESULTS = "Results"
SHOWN = "Output"
"""Headings of the help."""

_TARGET_HELP = (
    "A model file (.npz, .json, .safetensors, .onnx), the URL of an endpoint, 'cmd:' and a command, or "
    "module:object."
)
TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET_HELP, show_default=False)]
TargetOrTable = Annotated[str | None, typer.Argument(metavar="TARGET", help=_TARGET_HELP, show_default=False)]
Hidden = Annotated[
    str | None,
    typer.Option(
        metavar="WIDTHS",
        help='Widths of the hidden layers, e.g. 30 or 50,25; "" for no hidden layer.',
        rich_help_panel=KNOWN,
    ),
]
Activation = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Activation of the hidden layers, e.g. tanh.", rich_help_panel=KNOWN),
]
Inputs = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="D", help="Number of inputs, if TARGET does not say it.", rich_help_panel=ROWS
    ),
]
Domain = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,HIGH",
        help="Bounds of every input: ask no rows outside, e.g. --domain=-1,1.",
        rich_help_panel=ROWS,
    ),
]
Examples = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Typical inputs, one per row (.npy, .npz, .csv).", rich_help_panel=ROWS
    ),
]
MaxQueries = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Ask at most N rows.", rich_help_panel=LIMITS)
]
Deadline = Annotated[
    float | None,
    typer.Option(min=0, metavar="SECONDS", help="Stop after this time.", rich_help_panel=LIMITS),
]
OutputActivation = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Activation of the outputs: {', '.join(ALL_LINKS)}.",
        rich_help_panel=KNOWN,
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="P", help="Port; 0 for any free one.")]
TokenEnv = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Environment variable with the key that clients must send."),
]
Seed = Annotated[
    int,
    typer.Option(min=0, metavar="S", help="Random seed; same seed, same result.", rich_help_panel=METHOD),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only the last line.", rich_help_panel=SHOWN)
]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Log to stderr; -vv for more.",
        rich_help_panel=SHOWN,
    ),
]
OutDtype = Annotated[
    str,
    typer.Option(
        metavar="TYPE",
        help="Write parameters as float64 (exact) or rounded to float32.",
        rich_help_panel=RESULTS,
    ),
]
LayerActivations = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Activations, output layer included, for a .safetensors file that does not name them: "
        "tanh,tanh,identity.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a report with pictures here (.html).", rich_help_panel=RESULTS),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.", rich_help_panel=SHOWN)
]
