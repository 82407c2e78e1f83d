"""Steps of maximum likelihood are those of its generalised Gauss-Newton matrix, and find its minimum."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.tables.likelihood_fit import LikelihoodFit, log_losses
from unweave.tables.penalised_fit import Setting, Table, fit_table


def problem(classes: int, seed: int = 1000) -> tuple[LikelihoodFit, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = 1 if classes == 2 else classes - 1
    output = get_activation("sigmoid") if classes == 2 else None
    model = NetworkParameters(
        (get_activation("tanh"), output),
        (rng.standard_normal((3, 4)), rng.standard_normal((4, columns))),
        (rng.standard_normal(4), rng.standard_normal(columns)),
        rng.standard_normal((3, columns)),
    )
    x, labels = rng.standard_normal((30, 3)), rng.integers(0, classes, 30)
    y = labels[:, None].astype(float) if classes == 2 else np.eye(classes)[labels]
    return LikelihoodFit(model, x, y, np.sqrt(rng.uniform(0.5, 2, 30))), model.to_vector()


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_gradient_is_that_of_the_deviance(classes: int) -> None:
    fit, vector = problem(classes)
    gradient = fit.linearise(vector).adjoint(fit.residual(vector))
    step = 1e-6
    for place in range(0, len(vector), 3):
        moved = np.zeros_like(vector)
        moved[place] = step
        slope = (fit.size_squared(vector + moved) - fit.size_squared(vector - moved)) / (2 * step)
        # The deviance is twice minus the log likelihood; differences of step h are good to h^2 and eps / h.
        assert -slope / 2 == pytest.approx(gradient[place], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_matrix_is_that_of_the_logits(classes: int) -> None:
    fit, vector = problem(classes)
    model = fit.template.from_vector(vector)
    p = model.values(fit.points)
    dense = fit.linearise(vector).dense()
    last = model.shapes[-1][1]
    bias = dense[:, -last:]  # columns of the last biases: the derivative by the logits themselves
    expected = np.zeros((last, last))
    for row, weight in zip(p, fit.weights**2, strict=True):
        inner = np.diag(row) - np.outer(row, row) if classes > 2 else np.array([[row[0] * (1 - row[0])]])
        expected += weight * inner[:last, :last]
    np.testing.assert_allclose(bias.T @ bias, expected, rtol=1e-12, atol=1e-14)


def test_logistic_regression_is_scikit_learns() -> None:
    from sklearn import linear_model as linear

    rng = np.random.default_rng(1000)
    x = rng.standard_normal((200, 4))
    labels = np.argmax(x @ rng.standard_normal((4, 3)) + rng.gumbel(size=(200, 3)), axis=1)
    ridge = 0.01
    two = labels < 2
    table = Table(x[two], labels[two, None].astype(float), np.ones(int(two.sum())), "classes")
    model = fit_table(table, Setting(skip_ridge=ridge), rng)
    # Ours minimises 2 loss / n + ridge |w|^2, scikit-learn's C loss + |w|^2 / 2.
    theirs = linear.LogisticRegression(C=1 / (ridge * two.sum()), tol=1e-10, max_iter=1000)
    theirs.fit(x[two], labels[two])
    np.testing.assert_allclose(model.weights[0].T, theirs.coef_, rtol=0, atol=2e-3)


def test_losses_of_certain_answers() -> None:
    np.testing.assert_allclose(
        log_losses(np.array([[1.0], [0.0]]), np.array([[0.25], [0.25]])), -np.log([0.25, 0.75])
    )
    assert np.isfinite(log_losses(np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]]))).all()
