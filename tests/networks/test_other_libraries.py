"""Networks read from scikit-learn and keras models answer as the models do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from unweave import InvalidInput, Network

RNG = np.random.default_rng(1000)
X = RNG.standard_normal((80, 4)) * [1.0, 10.0, 0.1, 3.0] + [0.0, 5.0, 0.0, -2.0]
Y = np.tanh(X[:, 0]) + X[:, 2]
CLASSES = (X[:, 1] > 5).astype(int) + (X[:, 3] > -2)


def fitted(model, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


@pytest.fixture(scope="module")
def models():
    from sklearn import linear_model as linear
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    small = {"max_iter": 5, "random_state": 1000}
    mlp = {"hidden_layer_sizes": (5, 3), **small}
    return {
        "regressor": fitted(MLPRegressor(activation="tanh", **mlp)),
        "relu": fitted(MLPRegressor(activation="relu", **mlp)),
        "two classes": fitted(MLPClassifier(activation="logistic", **mlp), CLASSES > 0),
        "three classes": fitted(MLPClassifier(**mlp), CLASSES),
        "ridge": fitted(linear.Ridge()),
        "two outputs": fitted(linear.LinearRegression(), np.stack([Y, X[:, 1]], axis=1)),
        "logistic": fitted(linear.LogisticRegression(max_iter=20), CLASSES > 0),
        "multinomial": fitted(linear.LogisticRegression(max_iter=20), CLASSES),
        "standard": fitted(make_pipeline(StandardScaler(), MLPRegressor(**mlp))),
        "two scalers": fitted(make_pipeline(MinMaxScaler((-1, 2)), RobustScaler(), MLPRegressor(**mlp))),
        "no mean": fitted(make_pipeline(StandardScaler(with_mean=False), MaxAbsScaler(), linear.Ridge())),
    }


NAMES = (
    "regressor",
    "relu",
    "two classes",
    "three classes",
    "ridge",
    "two outputs",
    "logistic",
    "multinomial",
)


@pytest.mark.parametrize("name", [*NAMES, "standard", "two scalers", "no mean"])
def test_a_fitted_model(models, name):
    model = models[name]
    network = Network.from_sklearn(model)
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(X)
        expected = expected[:, 1:] if expected.shape[1] == 2 else expected
    else:
        expected = model.predict(X).reshape(len(X), -1)
    np.testing.assert_allclose(network(X), expected, rtol=1e-10, atol=1e-12)
    assert np.array_equal(network.predict(X), network(X))


def test_models_of_other_kinds_are_named():
    from sklearn import tree
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    with pytest.raises(InvalidInput, match=r"Got DecisionTreeRegressor instead.*unweave\.recover"):
        Network.from_sklearn(fitted(tree.DecisionTreeRegressor()))
    with pytest.raises(InvalidInput, match="Got PolynomialFeatures instead"):
        Network.from_sklearn(fitted(make_pipeline(PolynomialFeatures(), Ridge())))
    with pytest.raises(InvalidInput, match="Fit it first"):
        Network.from_sklearn(Ridge())


class Layer:
    """Stands for a keras layer: what is read of one."""

    def __init__(self, kind: str, *weights: np.ndarray, activation: str = "linear", **more: object) -> None:
        self.__class__ = type(kind, (Layer,), {})
        self.name, self._weights = kind.lower(), list(weights)
        self.activation = type("Function", (), {"__name__": activation})()
        vars(self).update(more)

    def get_weights(self) -> list[np.ndarray]:
        return self._weights


class Model:
    def __init__(self, *layers: Layer) -> None:
        self.layers = list(layers)

    def get_config(self) -> None:
        return None


def test_a_keras_chain():
    first, second = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 2))
    bias = RNG.standard_normal(3)
    model = Model(
        Layer("InputLayer"),
        Layer("Dense", first, bias, activation="tanh"),
        Layer("Dropout"),
        Layer("Dense", second),
        Layer("Softmax"),
    )
    network = Network.from_keras(model)
    assert network == Network([first, second], [bias, np.zeros(2)], ["tanh", "softmax"])


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Layer("BatchNormalization"), "of kind BatchNormalization"),
        (Layer("LeakyReLU", negative_slope=0.3), "of kind LeakyReLU"),
        (Layer("Dense"), "must be built"),
    ],
)
def test_other_keras_layers_are_named(layer, message):
    with pytest.raises(InvalidInput, match=message):
        Network.from_keras(Model(Layer("Dense", np.eye(3), np.zeros(3)), layer))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_keras_model_itself():
    import os

    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(3, "tanh"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(2, "softmax"),
        ]
    )
    network = Network.from_keras(model)
    assert network.activations == ("tanh", "softmax")
    expected = np.asarray(model.predict(X, verbose=0))
    np.testing.assert_allclose(network(X), expected, rtol=1e-4, atol=1e-5)
    inputs = keras.Input((4,))
    twice = keras.layers.Dense(4)
    branched = keras.Model(inputs, keras.layers.Add()([twice(inputs), inputs]))
    with pytest.raises(InvalidInput, match="chain of layers"):
        Network.from_keras(branched)
