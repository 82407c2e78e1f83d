"""Whole numbers, booleans and categories: only admissible rows are asked, and columns come back by name."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import unweave
from unweave import InvalidInput, Status
from unweave.networks.columns import columns_of
from unweave.networks.mixed import MixedNetwork

CITIES = ("oslo", "paris", "rome")


def frame(seed: int, n: int = 300):
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": 1e4 * rng.standard_normal(n),
            "city": rng.choice(CITIES, n),
            **{f"score{k}": rng.standard_normal(n) for k in range(4)},
            "member": rng.random(n) < 0.4,
        }
    )


class Asked:
    """A target that takes frames, and refuses rows that no user could have."""

    def __init__(self, units: int, output, seed: int, activation=np.tanh) -> None:
        rng = np.random.default_rng(seed)
        self.weights, self.bias = rng.standard_normal((10, units)), rng.standard_normal(units)
        self.outer, self.output, self.activation = rng.standard_normal(units), output, activation
        self.rows = 0

    def __call__(self, rows):
        assert list(rows.columns) == ["age", "income", "city", *(f"score{k}" for k in range(4)), "member"]
        assert rows["age"].dtype.kind == "i"
        assert rows["member"].dtype.kind == "b"
        assert set(rows["city"]) <= set(CITIES)
        self.rows += len(rows)
        hot = [(rows["city"] == city).to_numpy(dtype=float) for city in CITIES]
        scores = [rows[f"score{k}"].to_numpy() for k in range(4)]
        age, income = (rows["age"].to_numpy() - 45) / 20, rows["income"].to_numpy() / 1e4
        x = np.stack([age, income, *hot, *scores, rows["member"].to_numpy(dtype=float)], axis=1)
        return self.output(self.activation(0.5 * (x @ self.weights) + self.bias) @ self.outer)


def logistic(z):
    return 1 / (1 + np.exp(-z))


def affine(seed: int, output) -> Asked:
    target = Asked(1, output, seed, activation=lambda z: z)
    target.outer = np.ones(1)
    return target


@pytest.mark.parametrize("output", [lambda z: z, logistic])
def test_a_linear_model_on_mixed_columns(output, tmp_path):
    target, rows = affine(1000, output), frame(1001)
    result = unweave.recover(target, examples=rows)
    assert result.status is Status.RECOVERED, result.message
    assert result.queries == target.rows
    fresh = frame(1002)
    np.testing.assert_allclose(result.network.predict(fresh), target(fresh), atol=1e-12)
    assert result.network.columns.inputs[2:5] == [f"city={city}" for city in CITIES]
    assert any("city (3 levels)" in note for note in result.notes)
    result.save(tmp_path / "run.npz")
    back = unweave.Recovery.load(tmp_path / "run.npz").network
    assert isinstance(back, MixedNetwork)
    np.testing.assert_array_equal(back(fresh), result.network(fresh))
    result.network.save(tmp_path / "net.npz")
    assert unweave.load(tmp_path / "net.npz") == result.network
    result.save_report(tmp_path / "report.html")
    assert "city (3 levels)" in (tmp_path / "report.html").read_text()


def test_a_network_on_mixed_columns():
    target, rows = Asked(4, lambda z: z, 1003), frame(1004)
    result = unweave.recover(target, examples=rows)
    assert result.status is Status.RECOVERED, result.message
    assert result.network.network.hidden == (4,)
    fresh = frame(1005)
    np.testing.assert_allclose(result.network.predict(fresh), target(fresh), atol=1e-10)


def test_columns_declared_for_an_array():
    """No frame: rows are arrays of objects, and what is no plain number is declared."""
    rng = np.random.default_rng(1006)
    x = np.empty((100, 4), dtype=object)
    x[:, 0], x[:, 1] = rng.standard_normal(100), rng.standard_normal(100)
    x[:, 2], x[:, 3] = rng.choice(["a", "b"], 100), rng.integers(0, 9, 100)

    def target(rows):
        assert rows.dtype == object
        assert all(value in ("a", "b") for value in rows[:, 2])
        assert all(float(value).is_integer() for value in rows[:, 3])
        first, second, count = (rows[:, k].astype(float) for k in (0, 1, 3))
        return 2 * first - second + 0.25 * count + np.where(rows[:, 2] == "a", 1.0, -3.0)

    result = unweave.recover(target, examples=x, inputs=["number", "number", ["a", "b"], "whole"])
    assert result.status is Status.RECOVERED, result.message
    np.testing.assert_allclose(result.network.predict(x), target(x), atol=1e-12)


def test_whole_numbers_alone_give_a_plain_network():
    rows = frame(1007)[["age", "score0", "score1", "member"]]

    def target(rows):
        assert rows["age"].dtype.kind == "i"
        return 0.1 * rows["age"] - rows["score0"] + 3 * rows["score1"] + 2.0 * rows["member"]

    result = unweave.recover(target, examples=rows)
    assert result.status is Status.RECOVERED, result.message
    assert isinstance(result.network, unweave.Network)
    np.testing.assert_allclose(result.network.weights[0][:, 0], [0.1, -1, 3, 2], atol=1e-10)


def test_whole_numbers_that_are_names_become_levels():
    rng = np.random.default_rng(1008)
    shop, sales = rng.integers(0, 4, 200), rng.standard_normal((200, 2))
    rows = pandas.DataFrame({"shop": shop, "a": sales[:, 0], "b": sales[:, 1]})
    worth = np.array([1.0, -2.0, 7.0, 0.5])

    def target(rows):
        return rows["a"].to_numpy() - rows["b"].to_numpy() + worth[rows["shop"].to_numpy()]

    result = unweave.recover(target, examples=rows)
    assert result.status is Status.RECOVERED, result.message
    assert result.network.columns.inputs[:2] == ["shop=0", "shop=1"]
    np.testing.assert_allclose(result.network.predict(rows), target(rows), atol=1e-12)


def test_levels_that_interact_are_no_recovery():
    """A category that multiplies is no sum of first-layer terms: the judge sees it."""
    rows = frame(1009)

    def target(rows):
        slope = np.where(rows["city"] == "rome", 2.0, 1.0)
        return slope * rows["score0"].to_numpy() + rows["score1"].to_numpy()

    result = unweave.recover(target, examples=rows)
    assert not result.status.is_recovered
    assert "city" in result.message


def test_frames_of_numbers_are_asked_as_ever():
    rows = frame(1010)[["income", "score0"]]
    result = unweave.recover(lambda x: x[:, 0] - 2 * x[:, 1], input_dim=2, examples=rows)
    assert result.status is Status.RECOVERED
    assert isinstance(result.network, unweave.Network)


@pytest.mark.parametrize(
    ("inputs", "examples", "said"),
    [
        (None, [["a", 1.0], [None, 2.0]], "missing"),
        (["colour", "number"], [["a", 1.0], ["b", 2.0]], "must hold number"),
        (["category"], [["a", 1.0], ["b", 2.0]], "2 entries"),
        (["whole", "number"], [[0.5, 1.0], [1.0, 2.0]], "whole numbers"),
        ([["a"], "number"], [["a", 1.0], ["b", 2.0]], "one of its 1 levels"),
    ],
)
def test_columns_that_make_no_sense_are_refused_in_words(inputs, examples, said):
    table = np.array(examples, dtype=object)
    with pytest.raises(InvalidInput, match=said):
        unweave.recover(lambda rows: np.zeros(len(rows)), examples=table, inputs=inputs)


def test_plain_arrays_have_no_columns():
    assert columns_of(None, np.zeros((3, 2))) is None
    assert columns_of(None, None) is None


def test_trees_on_mixed_columns(tmp_path):
    rows = frame(1012)

    def target(rows):
        assert rows["age"].dtype.kind == "i"
        assert set(rows["city"]) <= set(CITIES)
        old, score = rows["age"].to_numpy() > 40, rows["score0"].to_numpy() > 0.2
        first = np.where(old, np.where(score, 1.0, 2.5), 4.0)
        return first + np.where(rows["city"] == "paris", 0.3, np.where(rows["member"], -0.2, 0.0))

    result = unweave.recover(target, examples=rows)
    assert result.status is Status.RECOVERED, result.message
    fresh = frame(1013)
    np.testing.assert_allclose(result.network.predict(fresh), target(fresh), atol=1e-12)
    result.network.save(tmp_path / "trees.npz")
    assert unweave.load(tmp_path / "trees.npz") == result.network


def test_trees_on_whole_numbers_keep_names():
    rows = frame(1014)[["age", "member"]]
    target = lambda rows: np.where(rows["age"] > 50, 3.0, np.where(rows["member"], 1.0, 0.0))  # noqa: E731
    result = unweave.recover(target, examples=rows)
    assert result.status is Status.RECOVERED, result.message
    assert result.network.input_names == ("age", "member")
    np.testing.assert_array_equal(result.network.predict(rows.astype(float)), target(rows))


def test_what_free_columns_leave_open_stays_open():
    """A skip leaves the signs of ReLU units open; a boolean column decides none of them."""
    rng = np.random.default_rng(1000)
    inner, bias = rng.standard_normal((7, 7)), 0.3 * rng.standard_normal(7)
    outer, skip = rng.standard_normal(7), rng.standard_normal(6)

    def target(rows):
        x = rows.to_numpy(dtype=float)
        assert set(np.unique(x[:, 6])) <= {0.0, 1.0}
        return np.maximum(x @ inner + bias, 0) @ outer + x[:, :6] @ skip

    examples = pandas.DataFrame(rng.standard_normal((200, 6)), columns=list("abcdef"))
    examples["member"] = rng.random(200) < 0.5
    result = unweave.recover(target, examples=examples)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "signs" in result.message
    np.testing.assert_allclose(
        result.network(examples.to_numpy(dtype=float))[:, 0], target(examples), atol=1e-9
    )
