"""Rows into JSON, answers out of it: exact, from any place, with every defect named."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unweave.targets.adapters.http_messages import (
    UnreadableAnswer,
    excerpt,
    read_answers,
    request_body,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(arrays(np.float64, (3, 2), elements=FINITE))
def test_numbers_cross_exactly(rows):
    back = np.array(json.loads(request_body({"instances": "$rows"}, rows))["instances"])
    np.testing.assert_array_equal(back.view(np.uint64), rows.view(np.uint64))
    answers = read_answers(json.dumps({"predictions": rows.tolist()}).encode(), "predictions", 3)
    np.testing.assert_array_equal(answers.view(np.uint64), rows.view(np.uint64))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("$rows", [[1.0, 2.0], [3.0, 4.0]]),
        ({"data": ["$rows"], "v": 2}, {"data": [[[1.0, 2.0], [3.0, 4.0]]], "v": 2}),
        (
            {"shape": ["$n_rows", "$n_inputs"], "data": "$flat"},
            {"shape": [2, 2], "data": [1.0, 2.0, 3.0, 4.0]},
        ),
        ({"x": "$row"}, {"x": [1.0, 2.0]}),
    ],
)
def test_templates(template, expected):
    assert json.loads(request_body(template, np.array([[1.0, 2.0], [3.0, 4.0]]))) == expected


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        ({"predictions": [1, 2.5]}, "predictions", [[1], [2.5]]),
        ({"predictions": [[1, 2], [3, 4]]}, "predictions", [[1, 2], [3, 4]]),
        ([[1], [2]], "", [[1], [2]]),
        ({"data": [{"values": [1, 2]}]}, "data.0.values", [[1], [2]]),
        ({"out": [{"p": {"score": 1}}, {"p": {"score": 2}}]}, "out.*.p.score", [[1], [2]]),
        ({"out": [{"p": [1, 2]}, {"p": [3, 4]}]}, "out.*.p", [[1, 2], [3, 4]]),
        ({"a": [10**30, 1]}, "a", [[1e30], [1]]),
    ],
)
def test_places(body, path, expected):
    np.testing.assert_array_equal(read_answers(json.dumps(body).encode(), path, 2), expected)


def test_flat_answers_need_the_number_of_outputs():
    body = b'{"outputs": [{"data": [1, 2, 3, 4, 5, 6]}]}'
    np.testing.assert_array_equal(
        read_answers(body, "outputs.0.data", 3, n_outputs=2), [[1, 2], [3, 4], [5, 6]]
    )
    with pytest.raises(UnreadableAnswer, match="3 answers"):
        read_answers(body, "outputs.0.data", 3)


@pytest.mark.parametrize("body", [b'{"y": 1.5}', b'{"y": [1.5]}', b'{"y": [[1.5]]}'])
def test_one_row(body):
    assert read_answers(body, "y", 1, one_row=True).tolist() == [[1.5]]


def test_one_row_with_several_outputs():
    assert read_answers(b'{"y": [1, 2, 3]}', "y", 1, one_row=True).tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "null", "1" + "0" * 400])
def test_what_is_not_finite_is_left_to_the_ledger(text):
    answers = read_answers(f'{{"predictions": [[0.5], [{text}]]}}'.encode(), "predictions", 2)
    assert answers[0, 0] == 0.5
    assert not np.isfinite(answers[1, 0])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty response"),
        (b"  <!DOCTYPE html><html>", "HTML instead, which begins '<!DOCTYPE html><html>'"),
        (b'{"predictions": [[0.5], [0.', "ends after 27 bytes in the middle"),
        (b'{"predictions": [[0.5], [0.2', "in the middle"),
        (b'{"predictio', "in the middle"),
        (b"oops", "text that is none"),
        (b"{\xff}", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"error": 1}', "'predictions' at the top of its JSON. Got only 'error'"),
        (b"[1, 2]", "entry 'predictions'"),
        (b"3", "Got a number"),
        (b'{"predictions": [[0.5]]}', r"2 answers of equal length, one answer per row. Got shape \(1, 1\)"),
        (b'{"predictions": [[1], [2, 3]]}', "lists of different lengths"),
        (b'{"predictions": [[[1]], [[2]]]}', r"Got shape \(2, 1, 1\)"),
        (b'{"predictions": [[], []]}', "Got shape"),
        (b'{"predictions": []}', "Got shape"),
        (b'{"predictions": ["a", "b"]}', "numbers. Got the text 'a'"),
        (b'{"predictions": [[1, "b"], [1, 2]]}', "numbers. Got the text 'b'"),
        (b'{"predictions": [true, false]}', "numbers. Got true"),
        (b'{"predictions": [{"y": 1}, {"y": 2}]}', "numbers. Got an object"),
        (b'{"predictions": "0.5"}', "numbers. Got the text '0.5'"),
    ],
)
def test_defects_are_named(body, message):
    with pytest.raises(UnreadableAnswer, match=message):
        read_answers(body, "predictions", 2)


def test_number_of_outputs_must_stay():
    with pytest.raises(UnreadableAnswer, match=r"3 numbers per answer.* Got 2 instead"):
        read_answers(b'{"predictions": [[1, 2]]}', "predictions", 1, n_outputs=3)


@pytest.mark.parametrize("path", ["a.*.b", "a.7", "a.x", "c"])
def test_wrong_paths_say_where(path):
    with pytest.raises(UnreadableAnswer, match="answers"):
        read_answers(b'{"a": [1, 2], "b": {}}', path, 2)


def test_excerpt_is_one_short_line():
    text = excerpt(b"<p>\n\n\x00" + b"x" * 500)
    assert text.startswith("'<p> ?x")
    assert len(text) == 82
