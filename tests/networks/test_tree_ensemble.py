"""A sum of trees is a value: it answers, is saved exactly, and writes itself as source."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import InvalidInput, TreeEnsemble


def ensemble(output: str = "identity", names=None) -> TreeEnsemble:
    """Return a tree of three leaves and a stump, two outputs."""
    return TreeEnsemble(
        feature=[0, -1, 1, -1, -1, 1, -1, -1],
        threshold=[0.5, 0, -1.0, 0, 0, 0.1, 0, 0],
        left=[1, -1, 3, -1, -1, 6, -1, -1],
        right=[2, -1, 4, -1, -1, 7, -1, -1],
        value=[[0, 0], [1, 2], [0, 0], [0.3, 4], [5, -6], [0, 0], [0, 0], [0.25, -1]],
        roots=[0, 5],
        n_inputs=2,
        output=output,
        input_names=names,
    )


ROWS = np.array([[0.5, 0.0], [0.6, -1.0], [0.6, 0.1], [0.6, 0.2]])
SUMS = np.array([[1.0, 2.0], [0.3, 4.0], [5.0, -6.0], [5.25, -7.0]])


def test_answers():
    trees = ensemble()
    np.testing.assert_array_equal(trees(ROWS), SUMS)
    np.testing.assert_array_equal(trees(ROWS[0]), SUMS[0])
    np.testing.assert_array_equal(trees.predict(ROWS), SUMS)
    assert (trees.n_inputs, trees.n_outputs, trees.n_trees, trees.n_leaves, trees.depth) == (2, 2, 2, 5, 2)
    assert trees.n_parameters == 3 + 8
    assert "sum of 2 trees" in repr(trees)


@pytest.mark.parametrize("output", ["identity", "softmax"])
@pytest.mark.parametrize("ending", ["npz", "json"])
def test_saved_and_read_back(tmp_path, ending, output):
    trees = ensemble(output, names=["age", "bmi"])
    trees.save(tmp_path / f"trees.{ending}")
    back = unweave.load(tmp_path / f"trees.{ending}")
    assert back == trees
    assert back.input_names == ("age", "bmi")


@pytest.mark.parametrize("output", ["identity", "sigmoid", "softmax"])
def test_source_answers_alike(output):
    trees = ensemble(output)
    room: dict = {}
    exec(trees.to_python("answer"), room)
    np.testing.assert_allclose([room["answer"](row) for row in ROWS], trees(ROWS), rtol=1e-15)


@pytest.mark.parametrize("output", ["identity", "sigmoid"])
def test_onnx_answers_alike(tmp_path, output):
    import onnxruntime as runtime

    trees = ensemble(output)
    trees.save(tmp_path / "trees.onnx")
    session = runtime.InferenceSession(tmp_path / "trees.onnx")
    np.testing.assert_allclose(
        session.run(None, {"x": ROWS})[0], trees(ROWS), rtol=1e-6, atol=1e-7
    )  # float32


def test_what_is_no_tree_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="before its children"):
        TreeEnsemble([0, -1, -1], [0.0, 0, 0], [0, -1, -1], [2, -1, -1], [[0.0]] * 3, [0], 1)
    with pytest.raises(InvalidInput, match="input that exists"):
        TreeEnsemble([3, -1, -1], [0.0, 0, 0], [1, -1, -1], [2, -1, -1], [[0.0]] * 3, [0], 1)
    with pytest.raises(InvalidInput, match="finite"):
        TreeEnsemble([-1], [0.0], [-1], [-1], [[np.nan]], [0], 1)
    with pytest.raises(InvalidInput, match="shape"):
        ensemble()(np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="end in"):
        ensemble().save(tmp_path / "trees.safetensors")


def test_a_result_with_trees_is_saved_told_and_reported(tmp_path):
    result = unweave.recover(lambda x: (x[:, 0] > 0.3) * 2.0 + (x[:, 1] > -0.5), input_dim=2)
    assert result.status is unweave.Status.RECOVERED, result.message
    result.save(tmp_path / "run.npz")
    back = unweave.Recovery.load(tmp_path / "run.npz")
    assert back.network == result.network
    told = result.to_dict()
    assert (told["kind"], told["hidden"]) == ("TreeEnsemble", None)
    assert "tree" in told["architecture"]
    result.save_report(tmp_path / "report.html")
    assert "trees" in (tmp_path / "report.html").read_text()
