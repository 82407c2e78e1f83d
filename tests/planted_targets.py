"""One network in every shape that a target may have, for the conformance suite."""

from __future__ import annotations

import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import unweave
from unweave import Network

os.environ.setdefault("KERAS_BACKEND", "torch")

NET = unweave.random_network([6, 4, 2], "tanh", seed=1000, outer="normal")
ONE_OUTPUT = Network(
    [NET.weights[0], NET.weights[1][:, :1]], [NET.biases[0], NET.biases[1][:1]], NET.activations
)
OVERFLOWS = Network(
    [np.zeros((6, 4)), np.full((4, 1), 1.7e308)], [np.full(4, 3.0), np.full(1, 1.7e308)], NET.activations
)
"""Finite parameters, infinite answers, in any precision."""
DOUBLE = 1e-14
"""Rounding of double precision in 30 sums of numbers of size one."""
SINGLE = 1e-5
"""The same of single precision, of inputs and weights as well."""

# Plain NumPy, so that it starts quickly; what it does not do is say anything but answers.
MODEL_SCRIPT = """
import json, sys
import numpy as np
with np.load({file!r}) as content:
    (w, b), (v, c) = [(content[f"w{{i}}"], content[f"b{{i}}"]) for i in range(2)]
def answer(row):
    return np.tanh(np.asarray(row, dtype=float) @ w + b) @ v + c
for line in sys.stdin:
    if {format!r} == "csv":
        print(",".join(map(repr, answer([float(word) for word in line.split(",")]).tolist())))
    else:
        print(json.dumps(answer(json.loads(line)).tolist()))
"""


@dataclass(frozen=True)
class Planted:
    """How to make the target, and how precisely it computes."""

    make: Callable[[Path, Network], Any]
    """Given a folder to write to and a network: the target, or a context manager of it."""
    precision: float = DOUBLE
    input_dim: int | None = None
    """What the user has to say."""
    most: int = 2
    """Outputs that it may have."""
    distinct: bool = True
    """Whether it is asked in a way of its own, so that a recovery shows something new."""
    opens: bool = False
    """Whether ``make`` gives a context manager."""


def model_script(folder: Path, net: Network = NET, format: str = "csv") -> list[str]:
    """The command of a process that answers for ``net``."""
    arrays = {f"w{i}": weight for i, weight in enumerate(net.weights)}
    arrays.update({f"b{i}": bias for i, bias in enumerate(net.biases)})
    np.savez(folder / "parameters.npz", **arrays)
    script = folder / f"model_{format}.py"
    script.write_text(
        textwrap.dedent(MODEL_SCRIPT).format(file=str(folder / "parameters.npz"), format=format),
        encoding="utf-8",
    )
    return [sys.executable, str(script)]


def torch_sequential(net: Network = NET, dtype: str = "float64") -> Any:
    import torch

    layers: list[Any] = []
    for weight, bias in zip(net.weights, net.biases, strict=True):
        layer = torch.nn.Linear(*weight.shape, dtype=getattr(torch, dtype))
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight.T.copy()))
            layer.bias.copy_(torch.from_numpy(bias.copy()))
        layers += [layer, torch.nn.Tanh()]
    layers.pop()  # the output layer is linear
    return torch.nn.Sequential(*layers)


def sklearn_regressor(net: Network = NET) -> Any:
    from sklearn.neural_network import MLPRegressor

    rng = np.random.default_rng(1000)
    model = MLPRegressor(
        hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", max_iter=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rng.standard_normal((20, 6)), rng.standard_normal((20, net.n_outputs)).squeeze())
    model.coefs_, model.intercepts_ = list(net.weights), list(net.biases)
    return model


def sklearn_pipeline(net: Network) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(np.array([[-1.0], [1.0]]) * np.ones((1, 6)))  # mean 0, deviation 1
    return make_pipeline(scaler, sklearn_regressor(net))


def keras_model(net: Network = NET) -> Any:
    import keras

    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(net.n_outputs)]
    )
    with np.errstate(over="ignore"):
        values = [np.asarray(p, dtype=np.float32) for p in (*net.weights, *net.biases)]
    model.set_weights([values[0], values[2], values[1], values[3]])
    return model


def onnx_file(
    folder: Path,
    net: Network = NET,
    dtype: str = "double",
    batch: int | str = "n",
    axes: tuple[int, ...] = (6,),
) -> Path:
    """The network as an ONNX graph with inputs of shape (batch, *axes); batch 0 means no batch axis."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    number = {"double": TensorProto.DOUBLE, "float": TensorProto.FLOAT}[dtype]
    kind = {"double": np.float64, "float": np.float32}[dtype]
    shape = list(axes) if batch == 0 else [batch, *axes]
    with np.errstate(over="ignore"):
        parameters = [
            numpy_helper.from_array(np.asarray(value).astype(kind), name)
            for name, value in zip("wvbc", (*net.weights, *net.biases), strict=True)
        ]
    parameters.append(numpy_helper.from_array(np.array([-1, 6]), "flat"))
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["rows"]),
        helper.make_node("Gemm", ["rows", "w", "b"], ["z"]),
        helper.make_node("Tanh", ["z"], ["h"]),
        helper.make_node("Gemm", ["h", "v", "c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", number, shape)],
        [helper.make_tensor_value_info("y", number, None)],
        parameters,
    )
    path = folder / f"net_{dtype}_{batch}_{len(axes)}.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def saved(folder: Path, net: Network, ending: str) -> Path:
    path = folder / f"net{ending}"
    net.save(path)
    return path


@contextmanager
def command(folder: Path, net: Network, format: str) -> Iterator[unweave.CommandTarget]:
    form = "csv" if format == "csv" else "json"
    with unweave.CommandTarget(model_script(folder, net, form), input_dim=6, format=format) as target:
        yield target


@contextmanager
def endpoint(net: Network) -> Iterator[str]:
    from unweave.serving import ReferenceServer, ServedModel

    with ReferenceServer(ServedModel(net, 6, net.n_outputs)) as server:
        yield server.url


class Holder:
    """Says its width; answers through a method."""

    n_inputs = 6

    def __init__(self, net: Network) -> None:
        self._net = net

    def ask(self, x: np.ndarray) -> np.ndarray:
        return self._net(x)


TARGETS: dict[str, Planted] = {
    "function": Planted(lambda _, net: lambda x: net(x), input_dim=6),
    "function (n,)": Planted(lambda _, net: lambda x: net(x).squeeze(axis=1).tolist(), input_dim=6, most=1),
    "bound method": Planted(lambda _, net: Holder(net).ask),
    "network": Planted(lambda _, net: net),
    "torch": Planted(lambda _, net: torch_sequential(net)),
    "torch method": Planted(lambda _, net: torch_sequential(net).forward, distinct=False),
    "torch float32": Planted(lambda _, net: torch_sequential(net, "float32"), SINGLE),
    "scikit-learn": Planted(lambda _, net: sklearn_regressor(net)),
    "scikit-learn pipeline": Planted(lambda _, net: sklearn_pipeline(net)),
    "scikit-learn method": Planted(lambda _, net: sklearn_regressor(net).predict, distinct=False),
    "keras": Planted(lambda _, net: keras_model(net), SINGLE),
    "keras method": Planted(lambda _, net: keras_model(net).predict, SINGLE),
    "onnx": Planted(lambda folder, net: onnx_file(folder, net)),
    "onnx float32": Planted(lambda folder, net: str(onnx_file(folder, net, "float")), SINGLE),
    "onnx one row": Planted(lambda folder, net: onnx_file(folder, net, batch=1), distinct=False),
    "onnx seven rows": Planted(lambda folder, net: onnx_file(folder, net, batch=7)),
    "onnx no batch axis": Planted(lambda folder, net: onnx_file(folder, net, batch=0)),
    "onnx more axes": Planted(lambda folder, net: onnx_file(folder, net, axes=(1, 2, 3)), distinct=False),
    "npz": Planted(lambda folder, net: saved(folder, net, ".npz")),
    "json": Planted(lambda folder, net: str(saved(folder, net, ".json")), distinct=False),
    "safetensors": Planted(lambda folder, net: saved(folder, net, ".safetensors")),
    "command csv": Planted(lambda folder, net: command(folder, net, "csv"), opens=True),
    "command json": Planted(lambda folder, net: command(folder, net, "json"), opens=True, distinct=False),
    "command batch": Planted(lambda folder, net: command(folder, net, "batch"), opens=True),
    "http": Planted(lambda _, net: endpoint(net), opens=True),
}


@contextmanager
def made(name: str, folder: Path, net: Network = NET) -> Iterator[Any]:
    """A target of kind ``name`` that answers for ``net``."""
    target = TARGETS[name].make(folder, net)
    with target if TARGETS[name].opens else nullcontext(target) as opened:
        yield opened
