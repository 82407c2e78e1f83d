"""Sums of trees in files: .npz and .json, exact, .py source, and .onnx, whose operator answers in float32."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from unweave.errors import InvalidInput, UnweaveError
from unweave.files.atomic import write_file
from unweave.networks.trees import FORMAT, VERSION, TreeEnsemble

_OPSET = {"": 15, "ai.onnx.ml": 3}
_OPERATORS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "softmax": "Softmax"}


def save_trees(trees: TreeEnsemble, path: Path, dtype: str = "float64") -> None:
    """Write ``trees`` to ``path`` in the format its ending names, whole or not at all."""
    writers = {".npz": _npz, ".json": lambda t: t.to_json().encode(), ".py": lambda t: t.to_python().encode()}
    writer = {**writers, ".onnx": _onnx}.get(path.suffix.lower())
    if writer is None:
        raise InvalidInput(
            f"path must end in .npz, .json, .py or .onnx for a sum of trees. Got {str(path)!r} instead."
        )
    if dtype != "float64" and path.suffix.lower() != ".onnx":
        raise InvalidInput(
            f"dtype must be float64 for a sum of trees: rounded thresholds would move steps. "
            f"Got {dtype!r} instead."
        )
    write_file(path, writer(trees))


def trees_from(path: Path, content: dict[str, Any]) -> TreeEnsemble | None:
    """Return the trees that a file's ``content`` describes; None if it is of another kind."""
    if str(content.get("format")) != FORMAT:
        return None
    if int(content.get("version", 0)) != VERSION:
        raise InvalidInput(
            f"version of {str(path)!r} must be {VERSION}. Got {content.get('version')} instead."
        )
    try:
        return TreeEnsemble.from_arrays(content)
    except InvalidInput as error:
        raise InvalidInput(f"{str(path)!r} does not hold a usable sum of trees: {error}") from error


def _npz(trees: TreeEnsemble) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **trees.arrays())
    return buffer.getvalue()


def _onnx(trees: TreeEnsemble) -> bytes:
    """Return a model with one TreeEnsembleRegressor: float64 inputs and thresholds, float32 answers."""
    try:
        from onnx import TensorProto, helper
    except ModuleNotFoundError as error:
        raise UnweaveError(
            "onnx must be installed for .onnx files. Got no such package instead. Install it: "
            "pip install 'unweave[onnx]'."
        ) from error
    tables, nodes = trees.arrays(), len(trees.feature)
    tree = np.searchsorted(np.sort(trees.roots), np.arange(nodes), "right") - 1
    if not (np.diff(trees.roots) > 0).all():
        raise InvalidInput("trees must be stored one after the other for .onnx files.")
    inner, leaves = trees.feature >= 0, np.flatnonzero(trees.feature < 0)
    start = trees.roots[tree]
    outputs = trees.n_outputs

    def doubles(name: str, values: Any) -> Any:
        return helper.make_tensor(
            name, TensorProto.DOUBLE, [len(values)], np.asarray(values, dtype=np.float64)
        )

    thresholds = np.where(inner, trees.threshold, 0.0)
    ensemble = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["sum"],
        domain="ai.onnx.ml",
        n_targets=outputs,
        aggregate_function="SUM",
        nodes_treeids=tree.tolist(),
        nodes_nodeids=(np.arange(nodes) - start).tolist(),
        nodes_featureids=np.where(inner, trees.feature, 0).tolist(),
        nodes_modes=["BRANCH_LEQ" if each else "LEAF" for each in inner],
        nodes_truenodeids=np.where(inner, tables["left"] - start, 0).tolist(),
        nodes_falsenodeids=np.where(inner, tables["right"] - start, 0).tolist(),
        nodes_values_as_tensor=doubles("thresholds", thresholds),
        target_treeids=np.repeat(tree[leaves], outputs).tolist(),
        target_nodeids=np.repeat((np.arange(nodes) - start)[leaves], outputs).tolist(),
        target_ids=np.tile(np.arange(outputs), len(leaves)).tolist(),
        target_weights_as_tensor=doubles("leaves", trees.value[leaves].reshape(-1)),
    )
    steps = [ensemble]
    if trees.output != "identity":
        steps.append(helper.make_node(_OPERATORS[trees.output], ["sum"], ["y"]))
    answers = "sum" if trees.output == "identity" else "y"
    graph = helper.make_graph(
        steps,
        "unweave trees",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["rows", trees.n_inputs])],
        [helper.make_tensor_value_info(answers, TensorProto.FLOAT, ["rows", outputs])],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSET.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    content: bytes = model.SerializeToString()
    return content
