"""ONNX files from elsewhere: which graphs are read, exactly, and what is said about the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from unweave.errors import InvalidInput
from unweave.files import load
from unweave.networks.network import Network
from unweave.networks.random import random_network

RNG = np.random.default_rng(1060)
W1, B1, W2, B2 = (RNG.standard_normal(shape) for shape in ((3, 4), (4,), (4, 2), (2,)))
PARAMETERS = {"W1": W1, "B1": B1, "W2": W2, "B2": B2, "W1T": W1.T.copy(), "W2T": W2.T.copy()}
X = RNG.standard_normal((50, 3))

Step = tuple[Any, ...]  # operator, inputs, outputs, attributes


def write(
    path: Path,
    steps: Sequence[Step],
    constants: dict[str, Any] | None = None,
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
    kind: int = TensorProto.DOUBLE,
    opset: int = 17,
) -> Path:
    """A graph of ``steps`` (operator, "inputs with blanks", output, attributes) and the usual parameters."""
    nodes = []
    for number, (operator, read, made, *rest) in enumerate(steps):
        attributes = rest[0] if rest else {}
        domain = attributes.pop("domain", "")
        node = helper.make_node(
            operator, read.split(" "), made.split(" "), f"node{number}", None, domain, **attributes
        )
        nodes.append(node)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    arrays = {name: np.asarray(value, dtype) for name, value in PARAMETERS.items()}
    arrays |= {name: np.asarray(value) for name, value in (constants or {}).items()}
    used = {name for step in steps for name in step[1].split(" ")} | set(outputs)
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, kind, ["n", 3]) for name in inputs],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in arrays.items() if name in used],
    )
    versions = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), path)
    return path


def gemm(read: str, number: int, made: str, **attributes: Any) -> Step:
    return ("Gemm", f"{read} W{number} B{number}", made, attributes)


def activated(*middle: Step) -> list[Step]:
    """x -> Gemm -> z -> ``middle`` -> h -> Gemm -> y."""
    return [gemm("x", 1, "z"), *middle, gemm("h", 2, "y")]


TANH = Network([W1, W2], [B1, B2], ["tanh", "identity"])

SAME_AS_TANH: dict[str, list[Step]] = {
    "gemm": activated(("Tanh", "z", "h")),
    "transposed, as torch writes": [
        ("Gemm", "x W1T B1", "z", {"transB": 1, "alpha": 1.0, "beta": 1.0}),
        ("Tanh", "z", "h"),
        ("Gemm", "h W2T B2", "y", {"transB": 1}),
    ],
    "matmul and add, as skl2onnx writes": [
        ("Cast", "x", "x1", {"to": TensorProto.DOUBLE}),
        ("MatMul", "x1 W1", "a"),
        ("Add", "a B1", "z"),
        ("Tanh", "z", "h"),
        ("MatMul", "h W2", "b"),
        ("Add", "B2 b", "c"),
        ("Reshape", "c out", "y"),
    ],
    "transposed constants": [
        ("Transpose", "W1T", "w", {"perm": [1, 0]}),
        ("MatMul", "x w", "a"),
        ("Add", "a B1", "z"),
        ("Tanh", "z", "h"),
        ("Transpose", "W2T", "v"),
        gemm("h", 2, "y"),
    ],
    "nothing done": [
        ("Flatten", "x", "x1"),
        ("Identity", "x1", "x2"),
        ("Dropout", "x2", "x3"),
        ("Squeeze", "x3", "x4"),
        gemm("x4", 1, "z"),
        ("Identity", "z", "z1"),
        ("Tanh", "z1", "h1"),
        ("Dropout", "h1", "h"),
        ("Reshape", "h flat", "h2"),
        gemm("h2", 2, "z2"),
        ("Cast", "z2", "y", {"to": TensorProto.DOUBLE}),
    ],
    "a node that the output does not need": [
        *activated(("Tanh", "z", "h")),
        ("ArgMax", "y", "label"),
    ],
    "tanh from sigmoid": activated(
        ("Mul", "z two", "a"), ("Sigmoid", "a", "b"), ("Mul", "b two", "c"), ("Sub", "c one", "h")
    ),
}
CONSTANTS = {
    "out": np.array([-1, 2]),
    "flat": np.array([0, -1]),
    "one": np.array(1.0),
    "two": np.array([2.0]),
    "half": np.array(0.5),
    "root": np.array(2**0.5),
    "minus": np.array(-1.0),
    "slope": np.array(0.01),
}


@pytest.mark.parametrize("name", SAME_AS_TANH)
def test_parameters_are_those_of_the_graph(tmp_path: Path, name: str) -> None:
    assert load(write(tmp_path / "net.onnx", SAME_AS_TANH[name], CONSTANTS)) == TANH


ACTIVATIONS: dict[str, tuple[str, list[Step]]] = {
    "gelu with erf, as torch writes": (
        "gelu",
        [
            ("Div", "z root", "a"),
            ("Erf", "a", "b"),
            ("Add", "b one", "c"),
            ("Mul", "z c", "d"),
            ("Mul", "d half", "h"),
        ],
    ),
    "swish": ("swish", [("Sigmoid", "z", "s"), ("Mul", "z s", "h")]),
    "softplus": ("softplus", [("Softplus", "z", "h")]),
    "naive softplus": ("softplus", [("Exp", "z", "e"), ("Add", "one e", "f"), ("Log", "f", "h")]),
    "leaky relu": ("leaky_relu", [("LeakyRelu", "z", "h")]),
    "leaky relu by comparison": (
        "leaky_relu",
        [("Greater", "z zero", "p"), ("Mul", "slope z", "m"), ("Where", "p z m", "h")],
    ),
    "logistic by hand": (
        "sigmoid",
        [("Neg", "z", "a"), ("Exp", "a", "b"), ("Add", "b one", "c"), ("Reciprocal", "c", "h")],
    ),
    "square": ("quadratic", [("Pow", "z two", "h")]),
    "cube": ("cubic", [("Mul", "z z", "s"), ("Mul", "s z", "h")]),
    "squared relu": ("squared_relu", [("Max", "z zero", "r"), ("Pow", "r two", "h")]),
    "sine": ("sine", [("Sin", "z", "h")]),
    "none": ("identity", [("Identity", "z", "h")]),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_recognised_by_what_they_compute(tmp_path: Path, name: str) -> None:
    activation, middle = ACTIVATIONS[name]
    path = write(tmp_path / "net.onnx", activated(*middle), {**CONSTANTS, "zero": np.array(0.0)})
    assert load(path) == Network([W1, W2], [B1, B2], [activation, "identity"])


def test_gelu_of_opset_20(tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx", activated(("Gelu", "z", "h")), opset=20)
    assert load(path).activations[0] == "gelu"
    write(path, activated(("Gelu", "z", "h", {"approximate": "tanh"})), opset=20)
    with pytest.raises(InvalidInput, match=r"Gelu \(node 'node1'\): its tanh approximation"):
        load(path)


def test_softmax_and_output_activations(tmp_path: Path) -> None:
    for operator, name in (("Softmax", "softmax"), ("Sigmoid", "sigmoid")):
        steps = [gemm("x", 1, "z"), ("Relu", "z", "h"), gemm("h", 2, "u"), (operator, "u", "y")]
        assert load(write(tmp_path / "net.onnx", steps)) == Network([W1, W2], [B1, B2], ["relu", name])


def test_alpha_beta_and_no_bias(tmp_path: Path) -> None:
    steps = [
        ("Gemm", "x W1 B1", "z", {"alpha": 0.5, "beta": 2.0}),
        ("Tanh", "z", "h"),
        ("Gemm", "h W2", "y", {"alpha": 2.0}),
    ]
    net = load(write(tmp_path / "net.onnx", steps))
    assert net == Network([0.5 * W1, 2 * W2], [2 * B1, np.zeros(2)], ["tanh", "identity"])


def test_single_precision_parameters_are_exact(tmp_path: Path) -> None:
    net = load(write(tmp_path / "net.onnx", activated(("Tanh", "z", "h")), kind=TensorProto.FLOAT))
    assert_array_equal(net.weights[0], W1.astype(np.float32))
    assert_array_equal(net.biases[1], B2.astype(np.float32))


SCALERS: dict[str, list[Step]] = {
    "vectors": [("Sub", "x mean", "a"), ("Div", "a deviation", "v")],
    "rows": [("Sub", "x mean_row", "a"), ("Mul", "a factor", "v")],
    "numbers": [("Sub", "x half", "a"), ("Div", "a two", "v")],
    "images": [("Div", "x deviation", "a"), ("Add", "a mean", "v")],
    "flipped": [("Sub", "mean x", "v")],
    "scaler": [
        ("Scaler", "x", "v", {"domain": "ai.onnx.ml", "offset": [0.5, 1.0, -2.0], "scale": [2.0, 0.25, 1.5]})
    ],
}


@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize("output_scaled", [False, True])
def test_scalers_are_folded_in(tmp_path: Path, name: str, output_scaled: bool) -> None:
    last: list[Step] = (
        [("Mul", "u outer", "w"), ("Add", "w one", "y")] if output_scaled else [("Identity", "u", "y")]
    )
    steps = [*SCALERS[name], gemm("v", 1, "z"), ("Tanh", "z", "h"), gemm("h", 2, "u"), *last]
    constants = {
        **CONSTANTS,
        "mean": RNG.standard_normal(3),
        "mean_row": RNG.standard_normal((1, 3)),
        "deviation": 1 + RNG.random(3),
        "factor": 1 + RNG.random((1, 3)),
        "outer": 1 + RNG.random(2),
    }
    path = write(tmp_path / "net.onnx", [tuple(map(_copied, step)) for step in steps], constants)
    session = (
        None if name == "scaler" else onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    )
    net = load(path)
    assert net.hidden == (4,)
    if session is None:  # onnxruntime has this operator in float32 only
        scaled = (X - [0.5, 1.0, -2.0]) * [2.0, 0.25, 1.5]
        expected = TANH(scaled) * (constants["outer"] if output_scaled else 1) + (1 if output_scaled else 0)
    else:
        expected = session.run(None, {"x": X})[0]
    # A handful of roundings of numbers of size 10.
    assert_allclose(net(X), expected, rtol=0, atol=1e-13)


def _copied(part: Any) -> Any:
    return dict(part) if isinstance(part, dict) else part


def test_scaling_between_layers_is_folded_in(tmp_path: Path) -> None:
    steps = activated(("Tanh", "z", "t"), ("Mul", "t gain", "s"), ("Add", "s offset", "h"))
    gain, offset = RNG.standard_normal(4), RNG.standard_normal(4)
    net = load(write(tmp_path / "net.onnx", steps, {"gain": gain, "offset": offset}))
    expected = (np.tanh(X @ W1 + B1) * gain + offset) @ W2 + B2
    assert_allclose(net(X), expected, rtol=0, atol=1e-13)


def test_a_temperature_is_folded_in(tmp_path: Path) -> None:
    steps = [
        *activated(("Mul", "z half", "a"), ("Tanh", "a", "h"))[:-1],
        gemm("h", 2, "u"),
        ("Div", "u two", "t"),
    ]
    net = load(write(tmp_path / "net.onnx", [*steps, ("Softmax", "t", "y")], CONSTANTS))
    assert net == Network([W1 / 2, W2 / 2], [B1 / 2, B2 / 2], ["tanh", "softmax"])


def test_skips_from_the_inputs(tmp_path: Path) -> None:
    skip, more = RNG.standard_normal((3, 2)), RNG.standard_normal(2)
    constants = {"S": skip, "more": more}
    body = activated(("Tanh", "z", "h"))[:-1]
    plain = [*body, gemm("h", 2, "u"), ("MatMul", "x S", "s"), ("Add", "s u", "y")]
    expected = Network([W1, W2], [B1, B2], ["tanh", "identity"], skip)
    assert load(write(tmp_path / "net.onnx", plain, constants)) == expected
    biased = [*body, gemm("h", 2, "u"), ("Gemm", "x S more", "s"), ("Add", "u s", "w"), ("Sigmoid", "w", "y")]
    net = load(write(tmp_path / "net.onnx", biased, constants))
    assert net == Network([W1, W2], [B1, B2 + more], ["tanh", "sigmoid"], skip)
    scaled = [*body, gemm("h", 2, "u"), ("MatMul", "x S", "s"), ("Add", "u s", "w"), ("Mul", "w more", "y")]
    net = load(write(tmp_path / "net.onnx", scaled, constants))
    assert net == Network([W1, W2 * more], [B1, B2 * more], ["tanh", "identity"], skip * more)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_what_torch_exports(tmp_path: Path, dtype: torch.dtype) -> None:
    torch.manual_seed(1061)
    layers: list[torch.nn.Module] = [torch.nn.Flatten()]
    kinds = [torch.nn.GELU, torch.nn.SiLU, torch.nn.Softplus, torch.nn.LeakyReLU, torch.nn.Tanh]
    for kind in kinds:
        layers += [torch.nn.Linear(3, 3), kind(), torch.nn.Dropout(0.5)]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(3, 2), torch.nn.Softmax(-1)).to(dtype).eval()
    path = tmp_path / "net.onnx"
    for opset in (13, 17, 20):
        torch.onnx.export(module, (torch.zeros(1, 3, dtype=dtype),), path, dynamo=False, opset_version=opset)
        assert load(path) == Network.from_torch(module)


REFUSED: dict[str, tuple[list[Step], str]] = {
    "convolution": (
        [("Conv", "x W1", "y")],
        r"operator Conv \(node 'node0'\).*Supported are Abs, Add, .*Where",
    ),
    "another domain": (
        activated(("Gelu", "z", "h", {"domain": "com.microsoft"})),
        r"operator com\.microsoft\.Gelu \(node 'node1'\)",
    ),
    "thresholded": (activated(("ThresholdedRelu", "z", "h")), r"operator ThresholdedRelu"),
    "another elu": (activated(("Elu", "z", "h", {"alpha": 0.5})), "none of the activations tanh, "),
    "another slope": (activated(("LeakyRelu", "z", "h", {"alpha": 0.2})), "none of the activations tanh, "),
    "tanh gelu": (
        activated(
            ("Pow", "z three", "a"),
            ("Mul", "a small", "b"),
            ("Add", "z b", "c"),
            ("Mul", "c factor", "d"),
            ("Tanh", "d", "e"),
            ("Add", "e one", "f"),
            ("Mul", "z f", "g"),
            ("Mul", "g half", "h"),
        ),
        "none of the activations",
    ),
    "clipped relu": (activated(("Relu", "z", "r"), ("Min", "r hundred", "h")), "none of the activations"),
    "scaled output": (
        [gemm("x", 1, "z"), ("Tanh", "z", "t"), ("Mul", "t B1", "y")],
        "scaled after its activation",
    ),
    "activation of the inputs": ([("Tanh", "x", "v"), gemm("v", 1, "y")], "no matrix was applied to"),
    "residual": (
        [gemm("x", 1, "z"), ("Tanh", "z", "h"), ("MatMul", "h S", "u"), ("Add", "u h", "y")],
        "an activation is followed by|two different layers",
    ),
    "two branches": (
        [
            gemm("x", 1, "z"),
            ("Tanh", "z", "h"),
            ("Relu", "z", "r"),
            gemm("h", 2, "a"),
            gemm("r", 2, "b"),
            ("Add", "a b", "y"),
        ],
        "do not form a chain",
    ),
    "product of layers": (
        [gemm("x", 1, "z"), ("Gemm", "x W1", "u"), ("Mul", "z u", "y")],
        "combines two different layers",
    ),
    "softmax inside": (activated(("Softmax", "z", "h")), "softmax is followed by another layer"),
    "softmax over rows": (
        [gemm("x", 1, "z"), ("Softmax", "z", "y", {"axis": 0})],
        "does not run over the outputs",
    ),
    "left product": ([("MatMul", "S x", "y")], "from the left"),
    "transposed inputs": ([("Gemm", "x W1 B1", "y", {"transA": 1})], "from the left"),
    "computed matrix": ([("MatMul", "x x", "y")], "computed from the inputs"),
    "mixing rows": ([("Reshape", "x blocks", "v"), gemm("v", 1, "y")], r"reshapes to \[-1, 2, 2\]"),
    "merging rows": ([("Flatten", "x", "v", {"axis": 0}), gemm("v", 1, "y")], "merges rows"),
    "integers": ([gemm("x", 1, "z"), ("Cast", "z", "y", {"to": TensorProto.INT64})], "casts to int64"),
    "wrong widths": ([gemm("x", 1, "z"), ("Gemm", "z W1", "y")], r"matrix has shape \(3, 4\), for 4 inputs"),
    "wrong bias": ([("Gemm", "x W1 B2", "y")], "not one number per unit"),
    "wrong scaler": ([("Sub", "x B1", "v"), gemm("v", 1, "y")], "scaled by 4 constants"),
    "no layer": ([("Identity", "x", "y")], "no layer between"),
    "constant": ([("Identity", "B1", "y")], "the output is a constant"),
    "missing tensor": ([("Gemm", "x nothing", "y")], "'nothing' is computed nowhere"),
    "missing output": ([gemm("x", 1, "z")], "'y' is computed nowhere"),
    "strange constant": (
        [("Constant", "", "c", {"value_string": "a"}), ("MatMul", "x c", "y")],
        r"Constant \(node 'node0'\) without numbers",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_graphs_are_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    steps, reason = REFUSED[name]
    constants = {
        **CONSTANTS,
        "three": np.array(3.0),
        "small": np.array(0.044715),
        "factor": np.array((2 / np.pi) ** 0.5),
        "hundred": np.array(100.0),
        "S": RNG.standard_normal((4, 4)),
        "blocks": np.array([-1, 2, 2]),
    }
    path = write(tmp_path / "net.onnx", [tuple(map(_copied, step)) for step in steps], constants)
    with pytest.raises(InvalidInput, match=reason) as told:
        load(path)
    assert "net.onnx" in str(told.value)


def test_several_inputs_or_outputs_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx", activated(("Tanh", "z", "h")), outputs=("y", "z"))
    with pytest.raises(InvalidInput, match=r"inputs 'x' and the outputs 'y', 'z', not one of each"):
        load(path)
    write(path, activated(("Tanh", "z", "h")), inputs=("x", "other"))
    with pytest.raises(InvalidInput, match=r"inputs 'x', 'other' and"):
        load(path)


def test_external_data_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx", activated(("Tanh", "z", "h")))
    model = onnx.load(path)
    set_external_data(model.graph.initializer[0], location="weights.bin")
    model.graph.initializer[0].ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidInput, match=r"keeps the tensor 'W1' in another file.*onnx\.save_model"):
        load(path)


def test_damaged_tensors_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "net.onnx", activated(("Tanh", "z", "h")))
    model = onnx.load(path)
    model.graph.initializer[0].raw_data = b"short"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidInput, match=r"network file.*damaged: the tensor 'W1'"):
        load(path)


def test_every_truncation_is_refused_or_complete(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    net = random_network([2, 3, 1], seed=1062)
    net.save(path)
    content = path.read_bytes()
    complete = []
    for size in range(len(content)):
        path.write_bytes(content[:size])
        try:
            complete.append(load(path))
        except InvalidInput as told:
            if not {"network file", "chain of layers"}.intersection(_phrases(told)):
                pytest.fail(f"{size} bytes: {told}")
    assert all(found == net for found in complete)  # where only notes for people were cut off
    assert len(complete) <= 5


def _phrases(told: InvalidInput) -> set[str]:
    return {phrase for phrase in ("network file", "chain of layers") if phrase in str(told)}
