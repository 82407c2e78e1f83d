"""Keras: inference only, one input, one output, shapes of rows as the model wants them."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import pytest

from unweave import InvalidInput, TargetError
from unweave.targets import as_queries

ROWS = np.random.default_rng(1000).standard_normal((20, 6))
layers = keras.layers


def test_dropout_is_off():
    queries = as_queries(keras.Sequential([keras.Input((6,)), layers.Dropout(0.5), layers.Dense(2)]))
    np.testing.assert_array_equal(queries(ROWS, fresh=True), queries(ROWS, fresh=True))


def test_rows_are_brought_into_the_shape_of_the_input():
    start = keras.Input((2, 3))
    queries = as_queries(keras.Model(start, layers.Flatten()(start)))
    assert queries.n_inputs == 6
    np.testing.assert_array_equal(queries(ROWS), ROWS.astype(np.float32))


def test_a_model_that_is_not_built_needs_the_width():
    model = keras.Sequential([layers.Dense(3)])
    with pytest.raises(InvalidInput, match="input_dim must be given"):
        as_queries(model)
    assert as_queries(model, input_dim=6)(ROWS).shape == (20, 3)
    assert as_queries(model).n_inputs == 6  # the first question built it


def test_a_model_of_ones_own():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = layers.Dense(2)

        def call(self, x):
            return self.layer(x)

    assert as_queries(Own(), input_dim=6)(ROWS).shape == (20, 2)


def test_axes_of_length_one_are_left_out():
    start = keras.Input((6,))
    model = keras.Model(start, layers.Reshape((1, 2, 1))(layers.Dense(2)(start)))
    assert as_queries(model)(ROWS).shape == (20, 2)


def test_several_inputs_or_outputs_are_refused():
    a, b = keras.Input((2,), name="left"), keras.Input((4,), name="right")
    with pytest.raises(InvalidInput, match=r"must have one input. Got 2 instead \(left, right\)"):
        as_queries(keras.Model([a, b], layers.Concatenate()([a, b])))
    with pytest.raises(TargetError, match=r"^A keras model must have one output. Got 2 instead"):
        as_queries(keras.Model(a, [layers.Dense(1)(a), layers.Dense(1)(a)]))(ROWS[:, :2])


def test_predict_draws_no_progress_bar(capfd):
    model = keras.Sequential([keras.Input((6,)), layers.Dense(2)])
    assert as_queries(model.predict)(ROWS).shape == (20, 2)
    assert capfd.readouterr() == ("", "")
