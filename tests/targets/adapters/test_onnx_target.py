"""ONNX graphs: which input, which output, in which shape; and files that are no graph."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import unweave
from planted_targets import NET, onnx_file
from unweave import InvalidInput
from unweave.targets import as_queries
from unweave.targets.adapters.onnx_target import OnnxTarget

ROWS = np.random.default_rng(1000).standard_normal((20, 6))
FLOAT, DOUBLE, INT = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64


def graph(path, nodes, inputs, outputs, domains=(("", 17),)):
    """Write a graph; inputs and outputs are (name, type, shape), a type None is left to the operator."""
    values = [
        [
            onnx.ValueInfoProto(name=name)
            if kind is None
            else helper.make_tensor_value_info(name, kind, shape)
            for name, kind, shape in side
        ]
        for side in (inputs, outputs)
    ]
    opsets = [helper.make_opsetid(*domain) for domain in domains]
    model = helper.make_model(helper.make_graph(nodes, "graph", *values), opset_imports=opsets, ir_version=8)
    onnx.save(model, path)
    return path


def linear_classifier(path, zipmap, binary=True):
    """What converters write for a logistic regression: labels, and probabilities as array or as maps."""
    labels = [0, 1] if binary else [0, 1, 2]
    slopes = np.linspace(-1, 1, 6 * len(labels))
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "probabilities"],
            domain="ai.onnx.ml",
            coefficients=slopes,
            intercepts=np.zeros(len(labels)),
            classlabels_ints=labels,
            post_transform="SOFTMAX",
        )
    ]
    outputs = [("label", INT, ["n"]), ("probabilities", FLOAT, ["n", len(labels)])]
    if zipmap:
        nodes.append(
            helper.make_node(
                "ZipMap", ["probabilities"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=labels
            )
        )
        outputs[1] = ("maps", None, None)
    graph(path, nodes, [("x", FLOAT, ["n", 6])], outputs, (("", 17), ("ai.onnx.ml", 1)))
    scores = ROWS @ slopes.reshape(len(labels), 6).T
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return path, shares[:, 1:] if binary else shares


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("zipmap", [True, False])
def test_converted_classifiers_answer_probabilities(tmp_path, zipmap, binary):
    path, shares = linear_classifier(tmp_path / "classifier.onnx", zipmap, binary)
    np.testing.assert_allclose(as_queries(path)(ROWS), shares, rtol=1e-5)


def test_width_that_the_graph_leaves_open(tmp_path):
    node = helper.make_node("Tanh", ["x"], ["y"])
    for name, shape in (("two", ["n", "d"]), ("three", ["n", 1, "d"])):
        outputs = [("y", DOUBLE, None)]
        path = graph(tmp_path / f"{name}.onnx", [node], [("x", DOUBLE, shape)], outputs)
        with pytest.raises(InvalidInput, match="input_dim must be given"):
            as_queries(path)
        np.testing.assert_allclose(as_queries(path, input_dim=6)(ROWS), np.tanh(ROWS), rtol=1e-14)
    path = graph(tmp_path / "open.onnx", [node], [("x", DOUBLE, ["n", "a", "b"])], [("y", DOUBLE, None)])
    with pytest.raises(
        InvalidInput, match=r"no more than one size of a row open. Got shape \['n', 'a', 'b'\]"
    ):
        as_queries(path, input_dim=6)


def test_several_inputs_are_named(tmp_path):
    node = helper.make_node("Add", ["age", "height"], ["y"])
    inputs = [("age", FLOAT, ["n", 1]), ("height", FLOAT, ["n", 1])]
    path = graph(tmp_path / "two.onnx", [node], inputs, [("y", FLOAT, ["n", 1])])
    with pytest.raises(InvalidInput, match=r"one input. Got 2 instead \(age \['n', 1\], height \['n', 1\]\)"):
        as_queries(path)


def test_several_outputs_are_named_and_one_can_be_chosen(tmp_path):
    nodes = [helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("Neg", ["x"], ["b"])]
    outputs = [("a", DOUBLE, ["n", 6]), ("b", DOUBLE, ["n", 6])]
    path = graph(tmp_path / "two.onnx", nodes, [("x", DOUBLE, ["n", 6])], outputs)
    with pytest.raises(InvalidInput, match=r"Got 2 instead \(a tensor\(double\), b tensor\(double\)\)"):
        as_queries(path)
    np.testing.assert_array_equal(as_queries(OnnxTarget(path, output="b"))(ROWS), -ROWS)
    with pytest.raises(InvalidInput, match="output must be an output of"):
        OnnxTarget(path, output="c")


def test_labels_alone_are_refused(tmp_path):
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=1)
    path = graph(tmp_path / "labels.onnx", [node], [("x", FLOAT, ["n", 6])], [("y", INT, ["n", 1])])
    with pytest.raises(InvalidInput, match="labels carry the decision boundary only"):
        as_queries(path)


def test_whole_numbers_as_inputs_are_refused(tmp_path):
    node = helper.make_node("Cast", ["x"], ["y"], to=FLOAT)
    path = graph(tmp_path / "whole.onnx", [node], [("x", INT, ["n", 6])], [("y", FLOAT, ["n", 6])])
    with pytest.raises(InvalidInput, match=r"Got tensor\(int64\) instead"):
        as_queries(path)


def test_an_unknown_operator_is_named(tmp_path):
    node = helper.make_node("Untangle", ["x"], ["y"])
    path = graph(tmp_path / "odd.onnx", [node], [("x", FLOAT, ["n", 6])], [("y", FLOAT, ["n", 6])])
    with pytest.raises(InvalidInput, match=r"that onnxruntime can run.*Untangle"):
        as_queries(path)


@pytest.mark.parametrize("content", [b"no graph at all", b"\x00" * 100, b"{}", None], ids=repr)
def test_files_that_are_no_graph(tmp_path, content, capfd):
    path = tmp_path / "broken.onnx"
    whole = onnx_file(tmp_path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(InvalidInput, match="must be an ONNX file that onnxruntime can run"):
        as_queries(path)
    assert capfd.readouterr().out == ""


def test_without_onnxruntime_the_extra_is_named(tmp_path, monkeypatch):
    path = onnx_file(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InvalidInput, match=r"onnxruntime must be installed.*pip install 'unweave\[onnx\]'"):
        as_queries(path)


def test_an_opened_session(tmp_path):
    session = onnxruntime.InferenceSession(str(onnx_file(tmp_path)), providers=["CPUExecutionProvider"])
    queries = as_queries(session)
    assert queries.n_inputs == 6
    np.testing.assert_allclose(queries(ROWS), NET(ROWS), rtol=0, atol=1e-14)


def test_networks_that_unweave_wrote(tmp_path):
    path = tmp_path / "net.onnx"
    NET.save(path)
    np.testing.assert_allclose(as_queries(path)(ROWS), NET(ROWS), rtol=0, atol=1e-14)
    assert unweave.recover(path, hidden=[4], activation="tanh").status is unweave.Status.RECOVERED
