"""The scikit-learn estimator passes scikit-learn's own checks and recovers exact data in a pipeline."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import unweave

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from sklearn.base import clone
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
