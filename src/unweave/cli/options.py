"""Options that several commands have, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_TARGET_HELP = (
    "A model file (.npz, .json, .safetensors, .onnx), the URL of an endpoint, 'cmd:' and a command, or "
    "module:object."
)
TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET_HELP, show_default=False)]
TargetOrTable = Annotated[str | None, typer.Argument(metavar="TARGET", help=_TARGET_HELP, show_default=False)]
Hidden = Annotated[
    str | None,
    typer.Option(metavar="WIDTHS", help='Hidden widths if known, e.g. 30 or 50,25; "" for no hidden layer.'),
]
Activation = Annotated[str | None, typer.Option(metavar="NAME", help="Activation if known, e.g. tanh.")]
Inputs = Annotated[
    int | None, typer.Option(min=1, metavar="D", help="Number of inputs, if not declared by TARGET.")
]
Domain = Annotated[
    str | None, typer.Option(metavar="LOW,HIGH", help="Ask no rows outside, e.g. --domain=-1,1.")
]
Examples = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Typical inputs, one per row (.npy, .npz, .csv).")
]
MaxQueries = Annotated[int | None, typer.Option(min=0, metavar="N", help="Ask at most N rows.")]
Deadline = Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help="Stop after this time.")]
OutputActivation = Annotated[
    str | None, typer.Option(metavar="NAME", help="Output activation if known: identity, tanh, sigmoid.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="P", help="Port; 0 for any free one.")]
TokenEnv = Annotated[
    str | None, typer.Option(metavar="NAME", help="Environment variable that holds the key to ask for.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="S", help="Random seed; same seed, same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the last line.")]
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
        help="Activations, output layer included, for a .safetensors file that does not name them: "
        "tanh,tanh,identity.",
    ),
]
Report = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a report with pictures here (.html).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]
