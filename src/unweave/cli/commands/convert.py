"""The options of ``unweave convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.declared_options import AsJson, LayerActivations, OutDtype
from unweave.cli.exits import exit_code_of


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
