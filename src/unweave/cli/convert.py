"""``unweave convert``: a network file in another format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.compare import load_network
from unweave.cli.exits import DONE
from unweave.cli.options import AsJson, LayerActivations, OutDtype
from unweave.cli.output.console import print_line, stdout_console
from unweave.cli.output.document import print_json
from unweave.errors import InvalidInput, UnweaveError
from unweave.files import check_can_save, load, rounded, save
from unweave.recovery.describe import describe
from unweave.recovery.wording import counted


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """Options of ``unweave convert``."""

    a: Annotated[Path, typer.Argument(metavar="A", help="A network file.", show_default=False)]
    b: Annotated[Path, typer.Argument(metavar="B", help="The file to write.", show_default=False)]
    dtype: OutDtype = "float64"
    activations: LayerActivations = None
    as_json: AsJson = False


def run_convert(options: ConvertOptions) -> int:
    """Write the network in A to B. The ending of B chooses the format: .npz, .json, .onnx or .safetensors.

    Parameters are kept bit for bit unless --dtype float32 rounds them. B is read back and compared with A
    before the command reports success.

    \b
    Examples:
      unweave convert copy.npz copy.onnx
      unweave convert model.onnx model.safetensors --dtype float32
    """
    source, target, dtype = options.a, options.b, options.dtype
    check_can_save(target, dtype)
    network = load_network(source, options.activations)
    if target.exists() and target.samefile(source):
        raise InvalidInput(f"B must be another file than A. Got {str(target)!r} for both instead.")
    written = rounded(network, dtype)
    save(network, target, dtype)  # type: ignore[arg-type]  # checked above
    if load(target) != written:
        raise UnweaveError(
            f"{str(target)!r} does not hold the parameters of {str(source)!r} bit for bit: others were read "
            "back. Write it again, to another disk."
        )
    exact = written == network
    if options.as_json:
        found = {"network": describe(network), "n_parameters": network.n_parameters}
        print_json({"a": source, "b": target, **found, "dtype": dtype, "exact": exact})
    else:
        how = "bit for bit" if exact else f"rounded to {dtype}"
        what = f"{describe(network)}, {counted(network.n_parameters, 'parameter')}, {how}"
        print_line(stdout_console(), f"WROTE {target} {what}")
    return DONE
