from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from unweave.errors import InvalidInput
from unweave.numerics.hermite.passive import mixture_scores, passive_derivatives, product_scores

SHARES = np.array([0.3, 0.7])
MEANS = np.array([[1.0, -0.5, 0.0], [-0.5, 0.5, 1.0]])
COVARIANCES = np.array([np.eye(3), [[1.0, 0.3, 0.0], [0.3, 0.6, 0.1], [0.0, 0.1, 0.8]]])


def log_density(x):
    parts = [p * multivariate_normal(m, c).pdf(x) for p, m, c in zip(SHARES, MEANS, COVARIANCES, strict=True)]
    return np.log(sum(parts))


def test_scores_of_a_mixture_against_differences() -> None:
    x = np.random.default_rng(1000).standard_normal((6, 3))
    scores, jacobians = mixture_scores(x, SHARES, MEANS, COVARIANCES)
    step = 1e-4
    for a in range(3):
        e = step * np.eye(3)[a]
        slope = (log_density(x + e) - log_density(x - e)) / (2 * step)
        assert np.allclose(scores[:, a], slope, atol=1e-6)
        moved = [mixture_scores(x + s * e, SHARES, MEANS, COVARIANCES)[0] for s in (1, -1)]
        assert np.allclose(jacobians[:, a], (moved[0] - moved[1]) / (2 * step), atol=1e-6)


def test_one_component_is_a_gaussian() -> None:
    x = np.random.default_rng(1000).standard_normal((5, 3))
    scores, jacobians = mixture_scores(x, np.ones(1), np.zeros((1, 3)), np.eye(3)[None])
    assert np.allclose(scores, -x)
    assert np.allclose(jacobians, -np.eye(3))


def test_a_quadratic_under_a_mixture() -> None:
    rng = np.random.default_rng(1000)
    n = 200_000
    which = rng.choice(2, n, p=SHARES)
    x = MEANS[which] + np.einsum(
        "nab,nb->na", np.linalg.cholesky(COVARIANCES)[which], rng.standard_normal((n, 3))
    )
    a, b = np.array([[1.0, 0.5, 0.0], [0.5, -1.0, 0.2], [0.0, 0.2, 0.0]]), np.array([1.0, 0.0, -2.0])
    y = np.einsum("na,ab,nb->n", x, a, x) + x @ b + 7
    found = passive_derivatives(x, y, *mixture_scores(x, SHARES, MEANS, COVARIANCES))
    assert (np.abs(found.hessian - 2 * a) <= 5 * found.hessian_error).all()
    assert (np.abs(found.gradient - (2 * a @ (SHARES @ MEANS) + b)) <= 5 * found.gradient_error).all()
    assert found.hessian_error.max() < 0.1
    # Scores of another law give something else.
    wrong = passive_derivatives(x, y, -x, -np.eye(3))
    assert (np.abs(wrong.hessian - 2 * a) > 20 * wrong.hessian_error).any()


def test_independent_logistic_inputs() -> None:
    """p = e^-x / (1 + e^-x)^2: (log p)' = -tanh(x/2), (log p)'' = -(1 - tanh(x/2)^2)/2."""
    rng = np.random.default_rng(1000)
    x = rng.logistic(size=(200_000, 2))
    t = np.tanh(x / 2)
    scores, jacobians = product_scores(-t, -(1 - t**2) / 2)
    found = passive_derivatives(x, x[:, 0] * x[:, 1] + np.sin(x[:, 0]), scores, jacobians)
    cross, bend = found.hessian[0, 1], -np.sin(x[:, 0]).mean()
    assert abs(cross - 1) <= 5 * found.hessian_error[0, 1]
    assert abs(found.hessian[0, 0] - bend) <= 5 * found.hessian_error[0, 0]


def test_errors() -> None:
    with pytest.raises(InvalidInput, match="jacobians"):
        passive_derivatives(np.zeros((4, 2)), np.zeros(4), np.zeros((4, 2)), np.zeros((4, 2)))
