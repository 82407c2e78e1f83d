"""The options of ``unweave compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.declared_options import AsJson, LayerActivations
from unweave.cli.exits import exit_code_of
from unweave.networks.comparison import SAME_PARAMETERS


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
