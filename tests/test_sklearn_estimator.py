"""The estimators pass scikit-learn's own checks, recover exact data, and are worth using on real tables."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import unweave

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from sklearn import datasets
    from sklearn.base import clone
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.estimator_checks import parametrize_with_checks

    from unweave.sklearn import NetworkClassifier, NetworkRegressor


@parametrize_with_checks([NetworkRegressor(folds=2, members=1), NetworkClassifier(folds=2, members=1)])
def test_conformance(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def exact(seed, outputs=1):
    net = unweave.random_network([5, 4, outputs], activation="relu", seed=seed, outer="signed", bias=1)
    x = np.random.default_rng(seed + 77).standard_normal((800, 5))
    return net, x, net(x)


def test_exact_data_in_a_pipeline():
    net, x, y = exact(1000)
    x = 3 + 100 * x  # the scaler takes this back up to the sample's own mean and deviation
    y = net((x - 3) / 100)[:, 0]
    model = make_pipeline(StandardScaler(), NetworkRegressor(hidden=4)).fit(x[:700], y[:700])
    assert model[-1].recovery_.status is unweave.Status.RECOVERED
    assert model[-1].network_.hidden == (4,)
    np.testing.assert_allclose(model.predict(x[700:]), y[700:], rtol=0, atol=1e-11)
    assert model.score(x[700:], y[700:]) == pytest.approx(1)


def test_several_outputs_and_clones():
    _, x, y = exact(1001, outputs=3)
    model = NetworkRegressor().fit(x, y)
    np.testing.assert_allclose(model.predict(x), y, rtol=0, atol=1e-11)
    again = clone(model).fit(x, y)
    assert again.network_ == model.network_


def test_pure_noise_gives_a_usable_model():
    rng = np.random.default_rng(1000)
    x, y = rng.standard_normal((80, 6)), rng.standard_normal(80)
    model = NetworkRegressor().fit(x, y)
    assert model.recovery_.status in (unweave.Status.FAILED, unweave.Status.APPROXIMATE)
    assert np.isfinite(model.predict(x)).all()


def table(name):
    data = getattr(datasets, f"load_{name}")
    x, y = data(return_X_y=True)
    rng = np.random.default_rng(1000)
    order = rng.permutation(len(x))
    cut = 2 * len(x) // 3
    return x, y, order[:cut], order[cut:]


@pytest.mark.parametrize("name", ["diabetes", "wine"])
def test_a_real_table_is_no_worse_than_ridge_regression(name):
    x, y, fitted, held = table(name)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))).fit(x[fitted], y[fitted])
    ours = NetworkRegressor(folds=3, members=2).fit(x[fitted], y[fitted])
    errors = [(model.predict(x[held]) - y[held]) ** 2 for model in (ours, ridge)]
    doubt = errors[1].std(ddof=1) / np.sqrt(len(held))
    assert errors[0].mean() <= errors[1].mean() + doubt


def test_answers_of_few_values_are_not_searched_for_an_exact_network():
    x, y, fitted, _ = table("iris")
    model = NetworkRegressor(folds=2, members=1).fit(x[fitted], y[fitted])
    assert model.recovery_ is None
    assert model.candidates_


def test_labels_of_any_type():
    x, y, fitted, held = table("iris")
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    model = NetworkClassifier(folds=2, members=1).fit(x[fitted], names[fitted])
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    assert model.score(x[held], names[held]) > 0.9
    probabilities = model.predict_proba(x[held])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.network_(x[held]), probabilities, rtol=0, atol=1e-12)
    two = names != "setosa"
    model = NetworkClassifier(folds=2, members=1).fit(x[two], np.where(y[two] == 1, -3, 7))
    assert set(model.predict(x[two])) == {-3, 7}
    scores = model.decision_function(x[two])
    np.testing.assert_array_equal(scores > 0, model.predict(x[two]) == 7)
    np.testing.assert_allclose(model.predict_proba(x[two])[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-12)


def test_weights_move_the_boundary():
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((200, 1))
    y = x[:, 0] + rng.standard_normal(200) > 0
    even, heavy = (
        NetworkClassifier(hidden=0, folds=2).fit(x, y, sample_weight=np.where(y, weight, 1.0))
        for weight in (1.0, 9.0)
    )
    # Nine times the odds: the boundary moves to where the even one gives the second class a tenth.
    shift = heavy.decision_function([[0.0]])[0] - even.decision_function([[0.0]])[0]
    assert shift == pytest.approx(np.log(9), abs=0.5)


@pytest.mark.parametrize("estimator", [NetworkRegressor(), NetworkClassifier()])
def test_missing_values_are_refused_with_what_to_do(estimator):
    x, y, *_ = table("iris")
    x[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"(?s)does not accept missing values.*imputer"):
        estimator.fit(x, y)


def test_one_class_is_refused_with_what_to_do():
    with pytest.raises(unweave.InvalidInput, match="at least two classes"):
        NetworkClassifier().fit(np.eye(4), np.ones(4))


def test_a_deadline_keeps_the_best_so_far():
    x, y, *_ = table("breast_cancer")
    model = NetworkClassifier(deadline=0.3).fit(x, y)
    assert model.score(x, y) > 0.9
    assert len(model.candidates_) < 10
