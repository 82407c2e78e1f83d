"""Networks as ONNX models: one Gemm per layer, then its activation; written without torch.

The graph maps ``input`` (n, n_inputs) to ``output`` (n, n_outputs) for any number n of rows:
h = act(Gemm(h, weight_i, bias_i)) with weights as here, (n_in, n_out), and for a skip
output = act(Gemm(h, weight, bias) + MatMul(input, skip)).
"""

from __future__ import annotations

import json

from onnx import ModelProto, TensorProto, checker, helper

from unweave.errors import InvalidInput
from unweave.files.contents import FORMAT, VERSION
from unweave.files.onnx_formulas import GraphBuilder, add_activation
from unweave.networks.network import Network

OPERATOR_SET, IR_VERSION = 13, 8
"""Old enough for every runtime of the last years; nothing newer is needed."""

MOST_PARAMETER_BYTES = 2**31 - 2**20
"""A protocol buffer holds 2 GiB, and the graph needs a little beside the parameters."""

INPUT, OUTPUT, ROWS = "input", "output", "n"


def encode_onnx(network: Network, dtype: str, most_bytes: int = MOST_PARAMETER_BYTES) -> bytes:
    """Return the bytes of an .onnx file; ``network`` is already rounded to ``dtype``.

    Parameters that take more than ``most_bytes`` are refused.
    """
    _check_size(network, dtype, most_bytes)
    graph = GraphBuilder(dtype)
    value = INPUT
    layers = zip(network.weights, network.biases, network.activations, strict=True)
    for i, (weight, bias, name) in enumerate(layers):
        parameters = (graph.parameter(f"weight_{i}", weight), graph.parameter(f"bias_{i}", bias))
        value = graph.add("Gemm", value, *parameters)
        if network.skip is not None and i == len(network.weights) - 1:
            value = graph.add("Add", value, graph.add("MatMul", INPUT, graph.parameter("skip", network.skip)))
        value = add_activation(graph, name, value)
    graph.nodes[-1].output[0] = OUTPUT  # the result is always the last node's, and nothing else reads it
    content: bytes = _model(graph, network).SerializeToString(deterministic=True)
    return content


def _model(graph: GraphBuilder, network: Network) -> ModelProto:
    kind = TensorProto.DOUBLE if graph.dtype == "float64" else TensorProto.FLOAT
    described = helper.make_graph(
        graph.nodes,
        "network",
        [helper.make_tensor_value_info(INPUT, kind, [ROWS, network.n_inputs])],
        [helper.make_tensor_value_info(OUTPUT, kind, [ROWS, network.n_outputs])],
        graph.initializers,
    )
    versions = {"opset_imports": [helper.make_opsetid("", OPERATOR_SET)], "ir_version": IR_VERSION}
    model = helper.make_model(described, producer_name="unweave", **versions)
    # For people and other tools; the graph alone says what the network is.
    header = {"format": FORMAT, "version": str(VERSION), "activations": json.dumps(network.activations)}
    helper.set_model_props(model, header)
    checker.check_model(model)
    return model


def _check_size(network: Network, dtype: str, most_bytes: int) -> None:
    size = network.n_parameters * (8 if dtype == "float64" else 4)
    if size > most_bytes:
        raise InvalidInput(
            f"parameters must take at most {most_bytes:,} bytes in an .onnx file. Got {size:,} instead. "
            f"Save the network as .safetensors."
        )
