"""``unweave compare``: whether two saved networks are the same function, up to symmetry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from unweave.cli.exits import DONE, NOT_EXACT
from unweave.cli.options import AsJson, LayerActivations
from unweave.cli.output.console import print_line, print_pairs, sentence, stdout_console
from unweave.cli.output.document import print_json
from unweave.files import load, names_activations
from unweave.networks.comparison import SAME_PARAMETERS, Comparison, compare
from unweave.networks.network import Network
from unweave.recovery.describe import describe
from unweave.recovery.wording import counted


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Options of ``unweave compare``."""

    a: Annotated[Path, typer.Argument(metavar="A", help="A network file: the reference.", show_default=False)]
    b: Annotated[Path, typer.Argument(metavar="B", help="The network file to compare.", show_default=False)]
    tolerance: Annotated[
        float, typer.Option(metavar="T", help="Parameter error up to which two networks are the same.")
    ] = SAME_PARAMETERS
    activations: LayerActivations = None
    as_json: AsJson = False


def run_compare(options: CompareOptions) -> int:
    """Tell whether two network files hold the same network, up to symmetry.

    Files may be .npz, .json, .onnx (any chain of layers) and .safetensors (also the state of a torch module,
    with --activations). Symmetries such as the order and the signs of units are ignored. Exit code 0: the
    same; 1: different.

    \b
    Examples:
      unweave compare teacher.npz copy.npz --tolerance 1e-9
      unweave compare teacher.onnx state.safetensors --activations tanh,identity
    """
    a, b = (load_network(path, options.activations) for path in (options.a, options.b))
    comparison = compare(a, b, tolerance=options.tolerance)
    if options.as_json:
        print_json({"a": options.a, "b": options.b, **comparison_dict(comparison)})
    else:
        rows = [
            (name, f"{path}: {describe(net)}, {counted(net.n_parameters, 'parameter')}")
            for name, path, net in (("a", options.a, a), ("b", options.b, b))
        ]
        _show(stdout_console(), comparison, rows)
    return DONE if comparison.is_same else NOT_EXACT


def load_network(path: Path, activations: str | None) -> Network:
    """Return the network in a file; ``activations``, commas between, are for files that name none."""
    if activations is None or names_activations(path):
        return load(path)
    return load(path, [name.strip() for name in activations.split(",")])


def _show(console: Console, comparison: Comparison, rows: list[tuple[str, str]]) -> None:
    style = "bold green" if comparison.is_same else "bold red"
    print_line(console, sentence(str(comparison).partition(":")[0]), style)
    console.print()
    print_pairs(console, [*rows, *comparison_rows(comparison)])
    console.print()
    word = "SAME" if comparison.is_same else "DIFFERENT"
    grounds = comparison.reason or f"parameter error {comparison.parameter_error:.2g}"
    print_line(console, f"{word} {grounds}, function error {_measured(comparison.function_error)}")


def comparison_dict(comparison: Comparison) -> dict[str, object]:
    """Return the figures of ``comparison`` by name; the matching is left out."""
    names = ("parameter_error", "weight_error", "bias_error", "output_error", "function_error", "tolerance")
    figures = {name: getattr(comparison, name) for name in names}
    return {"is_same": comparison.is_same, **figures, "reason": comparison.reason}


def comparison_rows(comparison: Comparison) -> list[tuple[str, str]]:
    """Return the figures of ``comparison`` in words."""
    function = ("function error", f"{_measured(comparison.function_error)} on Gaussian inputs")
    if comparison.reason:
        return [("why", comparison.reason), function]
    units = sum(len(permutation) for permutation, _ in comparison.matching)
    parts = (
        f"weights {comparison.weight_error:.2g}, biases {comparison.bias_error:.2g}, "
        f"output layer {comparison.output_error:.2g}"
    )
    error = f"{comparison.parameter_error:.2g}, the same network up to {comparison.tolerance:.2g}"
    return [("parameter error", error), ("", parts), function, ("units matched", f"{units:,}")]


def _measured(value: float) -> str:
    return "not measured" if math.isnan(value) else f"{value:.2g}"
