"""Scikit-learn: numbers are asked for, never labels; two probabilities are one output."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import unweave
from planted_targets import sklearn_regressor
from unweave import InvalidInput, Network, TargetError
from unweave.targets import as_queries

RNG = np.random.default_rng(1000)
ROWS = RNG.standard_normal((60, 6))
CLASSES = (ROWS[:, 0] > 0).astype(int) + (ROWS[:, 1] > 0.5)
SCORES = unweave.random_network([6, 4, 1], "tanh", seed=1001, outer="normal")


def classifier(labels) -> MLPClassifier:
    model = MLPClassifier(
        hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", max_iter=2, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(ROWS, labels)


def binary() -> MLPClassifier:
    model = classifier(ROWS[:, 0] > 0)
    model.coefs_, model.intercepts_ = list(SCORES.weights), list(SCORES.biases)
    return model


@pytest.mark.parametrize("ask", [lambda model: model, lambda model: model.predict_proba])
def test_two_probabilities_are_one_sigmoid_output(ask):
    queries = as_queries(ask(binary()))
    answers = queries(ROWS)
    assert answers.shape == (60, 1)
    np.testing.assert_allclose(answers, 1 / (1 + np.exp(-SCORES(ROWS))), rtol=1e-12)


def test_a_binary_classifier_is_recovered():
    result = unweave.recover(binary())
    assert result.status is unweave.Status.RECOVERED, result.message
    truth = Network(SCORES.weights, SCORES.biases, ["tanh", "sigmoid"])
    # The inverse of the sigmoid magnifies rounding; the scores reach 3, where its slope is 1 / 20.
    assert unweave.compare(truth, result.network).parameter_error < 1e-8


def test_three_probabilities_are_three_outputs():
    model = classifier(CLASSES)
    np.testing.assert_array_equal(as_queries(model)(ROWS), model.predict_proba(ROWS))


def test_two_labels_at_once_stay_two_outputs():
    model = classifier(np.stack([ROWS[:, 0] > 0, ROWS[:, 1] > 0], axis=1))
    answers = as_queries(model)(ROWS)
    assert answers.shape == (60, 2)
    np.testing.assert_array_equal(answers, model.predict_proba(ROWS))


def test_a_bound_method_is_asked_itself():
    model = LogisticRegression().fit(ROWS, ROWS[:, 0] > 0)
    queries = as_queries(model.decision_function)
    assert queries.n_inputs == 6
    np.testing.assert_array_equal(queries(ROWS)[:, 0], model.decision_function(ROWS))
    scaler = StandardScaler().fit(ROWS)
    np.testing.assert_array_equal(as_queries(scaler.transform)(ROWS), scaler.transform(ROWS))


def test_scores_where_there_are_no_probabilities():
    model = RidgeClassifier().fit(ROWS, CLASSES)
    np.testing.assert_array_equal(as_queries(model)(ROWS), model.decision_function(ROWS))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: binary().predict,
        lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, CLASSES).predict,
        lambda: KMeans(2, n_init=1).fit(ROWS).predict,
    ],
    ids=["classifier", "pipeline", "clusterer"],
)
def test_labels_are_refused_because_they_only_hold_the_boundary(ask):
    with pytest.raises(InvalidInput, match=r"labels carry the decision boundary only.*predict_proba"):
        as_queries(ask())


def test_other_estimators_need_the_method_that_is_meant():
    with pytest.raises(InvalidInput, match=r"Got StandardScaler instead. Pass the method"):
        as_queries(StandardScaler().fit(ROWS))


def test_not_fitted():
    with pytest.raises(InvalidInput, match="or fit or build the model first"):
        as_queries(LogisticRegression())
    with pytest.raises(TargetError, match="not fitted"):
        as_queries(LogisticRegression(), input_dim=6)(ROWS)


def test_columns_keep_their_names():
    table = pd.DataFrame(ROWS, columns=list("abcdef"))
    first = make_column_transformer((StandardScaler(), ["a", "c"]), (FunctionTransformer(), ["f"]))
    model = make_pipeline(first, LogisticRegression()).fit(table, CLASSES)
    queries = as_queries(model)
    assert queries.n_inputs == 6
    np.testing.assert_array_equal(queries(ROWS), model.predict_proba(table))


def test_several_targets_at_once():
    model = DecisionTreeClassifier().fit(ROWS, np.stack([CLASSES, CLASSES], axis=1))
    with pytest.raises(TargetError, match=r"must return one array. Got a list of 2 instead"):
        as_queries(model)(ROWS)


def test_parameters_are_not_read():
    model = sklearn_regressor()

    class Answers(type(model)):  # type: ignore[misc]
        def predict(self, x):
            return model.predict(x)

    empty = Answers()
    empty.n_features_in_ = 6
    assert unweave.recover(empty, hidden=[4], activation="tanh").status is unweave.Status.RECOVERED
