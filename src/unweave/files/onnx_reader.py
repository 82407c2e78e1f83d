"""Read a network from an ONNX model, if the graph is a chain of layers.

Whoever wrote it: MatMul or Gemm (transposed or not, alpha, beta), Add, activations as operators or composed
from simpler ones, a scaler of the inputs (Sub, Div, Mul or Scaler, folded into the first layer), a skip from
the inputs to the last layer, and operators that change nothing (Identity, Cast, Flatten, Reshape, Dropout).
The parameters are those of the file, float32 ones exactly as float64. Nothing is run: the nodes that the
output depends on are followed from the inputs on, each turned into what it does to the layers (`onnx_chain`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from unweave.errors import InvalidInput
from unweave.files.onnx_chain import Chain, NotAChain, Scaled, Value
from unweave.files.onnx_operators import RULES
from unweave.networks.network import Network

STANDARD_DOMAINS = ("", "ai.onnx")
CONSTANT = "Constant"


def read_onnx(path: Path) -> Network:
    """Return the network in an .onnx file; `InvalidInput` names what cannot be read."""
    model = _parsed(path)
    graph = model.graph
    inputs = [entry.name for entry in graph.input if entry.name not in {t.name for t in graph.initializer}]
    outputs = [entry.name for entry in graph.output]
    if len(inputs) != 1 or len(outputs) != 1:
        _refuse(path, f"has the inputs {_listed(inputs)} and the outputs {_listed(outputs)}, not one of each")
    nodes = _needed(graph, outputs[0])
    values: dict[str, Value] = {inputs[0]: Scaled(0)}
    values.update(_constants(path, graph, nodes))
    chain = Chain()
    for node in nodes:
        values[node.output[0]] = _followed(path, chain, node, values)
    try:
        return chain.network(path, _value(outputs[0], values))
    except NotAChain as problem:
        _refuse(path, f"cannot be read at its output: {problem}")


def _parsed(path: Path) -> ModelProto:
    try:
        content = path.read_bytes()
        model: ModelProto = ModelProto.FromString(content)
    except Exception as error:  # DecodeError of protobuf, which is not ours to import
        _no_model(path, f"not readable as an ONNX model ({error})", error)
    if not content:
        _no_model(path, "empty")
    if not (model.ir_version and model.opset_import and model.graph.output):
        _no_model(path, "not a complete ONNX model: it has no version, operator set or output")
    return model


def _needed(graph: GraphProto, output: str) -> list[NodeProto]:
    """Return the nodes that ``output`` depends on, in the order of the graph, in which inputs come first."""
    wanted, nodes = {output}, []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            nodes.append(node)
    return nodes[::-1]


def _constants(path: Path, graph: GraphProto, nodes: list[NodeProto]) -> dict[str, Any]:
    wanted = {graph.output[0].name}.union(*(node.input for node in nodes))
    return {
        tensor.name: _array(path, tensor.name, tensor)
        for tensor in graph.initializer
        if tensor.name in wanted
    }


def _array(path: Path, name: str, tensor: TensorProto) -> Any:
    if uses_external_data(tensor):
        advice = "Load it with its data and write it as one file: onnx.save_model(onnx.load(path), new_path)."
        _refuse(path, f"keeps the tensor {name!r} in another file", advice)
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        _no_model(path, f"damaged: the tensor {name!r} cannot be read ({error})", error)


def _followed(path: Path, chain: Chain, node: NodeProto, values: dict[str, Value]) -> Value:
    """Return the value of the node's first output."""
    operator = node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}.{node.op_type}"
    label = f"{operator} (node {node.name or node.output[0]!r})"
    if operator == CONSTANT:
        return _constant(path, label, node)
    if operator not in RULES:
        known = ", ".join(sorted([*RULES, CONSTANT]))
        _refuse(path, f"uses the operator {label}", f"Supported are {known}.")
    try:
        given = [_value(name, values) for name in node.input]
        return RULES[operator](chain, given, _attributes(node))
    except NotAChain as problem:
        _refuse(path, f"cannot be read at {label}: {problem}")
    except (ValueError, TypeError, IndexError, KeyError) as error:
        _no_model(path, f"damaged or not a chain of layers at {label} ({error})", error)


def _value(name: str, values: dict[str, Value]) -> Value:
    if not name:
        return None  # an optional input that is left out
    if name not in values:
        raise NotAChain(
            f"the tensor {name!r} is computed nowhere before it, or by an output that is not read"
        )
    return values[name]


def _attributes(node: NodeProto) -> dict[str, Any]:
    found = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if "to" in found:
        found["to"] = helper.tensor_dtype_to_np_dtype(found["to"])
    return found


def _constant(path: Path, label: str, node: NodeProto) -> Any:
    for attribute in node.attribute:
        if attribute.name == "value":
            return _array(path, node.output[0], attribute.t)
        if attribute.name in ("value_float", "value_floats", "value_int", "value_ints"):
            return np.asarray(helper.get_attribute_value(attribute))
    _refuse(path, f"has the {label} without numbers")


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names) or "(none)"


def _refuse(path: Path, why: str, advice: str = "") -> NoReturn:
    raise InvalidInput(
        f"path must be an ONNX model that is a chain of layers. Got {str(path)!r} instead, which {why}. "
        f"{advice or 'Ask it for answers instead: unweave.recover(path).'}"
    )


def _no_model(path: Path, found: str, cause: Exception | None = None) -> NoReturn:
    raise InvalidInput(
        f"path must be a network file. Got {str(path)!r} instead, which is {found}. "
        f"Write networks with Network.save or an ONNX exporter."
    ) from cause
