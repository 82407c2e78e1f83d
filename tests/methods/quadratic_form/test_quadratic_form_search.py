"""Quadratic polynomials behind links: models on polynomial features, and quadratic units by queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax

import unweave
from unweave import Network, Status
from unweave.probing.look import look
from unweave.targets import as_queries

INPUTS = 5


def polynomial(outputs: int, seed: int = 1000) -> Any:
    """Return x -> x^T M_k x + s_k . x + c_k by its own formula."""
    rng = np.random.default_rng(seed)
    forms = rng.standard_normal((outputs, INPUTS, INPUTS)) / 4
    slopes, offsets = rng.standard_normal((INPUTS, outputs)) / 2, rng.standard_normal(outputs)

    def value(x: np.ndarray) -> np.ndarray:
        return np.einsum("ni,kij,nj->nk", x, forms, x) + x @ slopes + offsets

    return value


LINKS = {
    "identity": (1, lambda z: z),
    "sigmoid": (1, expit),
    "softmax": (3, lambda z: softmax(z, axis=1)),
    "exp": (1, lambda z: np.exp(z / 4)),
}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
def test_polynomials_behind_links(link: str, single: bool) -> None:
    outputs, apply = LINKS[link]
    inner = polynomial(outputs)

    def target(x: np.ndarray) -> np.ndarray:
        answers = np.asarray(apply(inner(x)))
        return answers.astype(np.float32) if single else answers

    result = unweave.recover(target, input_dim=INPUTS, seed=1001)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "only the quadratic polynomial is determined" in result.message
    assert "a quadratic polynomial" in " ".join(result.notes)
    x = np.random.default_rng(1002).standard_normal((200, INPUTS))
    wanted = np.asarray(apply(inner(x)))
    bound = 1e-5 if single else 1e-12
    np.testing.assert_allclose(result.network(x), wanted, rtol=bound, atol=bound * np.abs(wanted).max())
    rows = result.queries - result.probing_queries - result.verification_queries
    assert rows <= 3 * (INPUTS + 1) * (INPUTS + 2) / 2 + 20


def test_quadratic_units_told() -> None:
    net = unweave.random_network([4, 2, 1], activation="quadratic", seed=1003)
    result = unweave.recover(net, hidden=[2], activation="quadratic", seed=1003)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert result.network.hidden == (2,)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_only_parabolas_are_seen(degree: int) -> None:
    weights = np.random.default_rng(1004).standard_normal(INPUTS)

    def target(x: np.ndarray) -> np.ndarray:
        return np.asarray(x @ weights) ** degree

    findings = look(as_queries(target, input_dim=INPUTS), rng=np.random.default_rng(1005))
    assert findings.parabolic_links == (("identity",) if degree == 2 else ())


@pytest.mark.parametrize("activation", ["tanh", "softplus", "relu"])
def test_other_units_are_not_taken_for_parabolas(activation: str) -> None:
    net = unweave.random_network([INPUTS, 3, 1], activation=activation, seed=1006)
    findings = look(as_queries(net), rng=np.random.default_rng(1007))
    assert findings.parabolic_links == ()


def test_a_pipeline_on_polynomial_features() -> None:
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    x, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=1000)).fit(
        x, y
    )
    result = unweave.recover(model.predict_proba, input_dim=4, examples=x, seed=1008)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    np.testing.assert_allclose(result.network(x), model.predict_proba(x), atol=1e-12)


def test_a_term_beside_the_polynomial_is_seen() -> None:
    inner = polynomial(1)

    def target(x: np.ndarray) -> np.ndarray:
        return np.asarray(inner(x)) + 1e-6 * np.tanh(x[:, :1])

    result = unweave.recover(target, input_dim=INPUTS, seed=1009, deadline=20, method="quadratic_form")
    assert result.status not in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)
    assert isinstance(result.network, Network | None)
