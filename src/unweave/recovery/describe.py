"""Networks and evidence in a few words and figures, for people and for JSON."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.networks.model import Model
from unweave.networks.network import Network
from unweave.search import Evidence


def describe(network: Network | Model) -> str:
    """``20-100-1 tanh``: widths and hidden activations; output and skip where they are not the usual.

    Other models describe themselves.
    """
    if not isinstance(network, Network):
        return network.describe()
    widths = "-".join(str(width) for width in (network.n_inputs, *network.hidden, network.n_outputs))
    inner, output = network.activations[:-1], network.activations[-1]
    names = "/".join(dict.fromkeys(inner)) if len(set(inner)) < 2 else "/".join(inner)
    extras = [] if output == "identity" else [f"{output} output"]
    extras += [] if network.skip is None else ["skip"]
    return ", ".join([f"{widths} {names or 'affine'}", *extras])


def parameter_ranges(network: Network) -> list[dict[str, Any]]:
    """Shape, activation and range of the parameters of every layer, output layer included.

    Example: ``parameter_ranges(net)[0]["weights"]["largest"]``
    """
    layers = zip(network.weights, network.biases, network.activations, strict=True)
    return [
        {
            "inputs": int(weights.shape[0]),
            "units": int(weights.shape[1]),
            "activation": activation,
            "weights": figures_of(weights.reshape(-1)),
            "biases": figures_of(biases),
        }
        for weights, biases, activation in layers
    ]


def evidence_figures(evidence: Evidence) -> dict[str, Any]:
    """Everything in ``evidence`` but the layers; of a list count and range, of a picture the shape."""
    found: dict[str, Any] = {"kind": type(evidence).__name__}
    for entry in fields(evidence):
        value = getattr(evidence, entry.name)
        if isinstance(value, np.ndarray):
            value = figures_of(value) if value.ndim == 1 else {"shape": list(value.shape)}
        if entry.name != "layers":
            found[entry.name] = list(value) if isinstance(value, tuple) else value
    return found


def figures_of(values: Array) -> dict[str, Any]:
    """Count, smallest, median and largest of ``values`` (n,); NaN where there is none."""
    if not len(values):
        return {"count": 0, "smallest": np.nan, "median": np.nan, "largest": np.nan}
    numbers = np.asarray(values, dtype=np.float64)
    return {
        "count": len(numbers),
        "smallest": float(numbers.min()),
        "median": float(np.median(numbers)),
        "largest": float(numbers.max()),
    }
