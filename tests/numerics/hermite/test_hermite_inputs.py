"""Inputs of any Gaussian law made standard, and inputs that are not Gaussian noticed."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.numerics.hermite.gaussianity import gaussianity
from unweave.numerics.whitening import Whitening


def law(dimension, seed):
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((dimension, dimension))
    return rng.standard_normal(dimension), mixing @ mixing.T + 0.1 * np.eye(dimension)


def test_estimated_whitening_standardises_its_rows():
    mean, covariance = law(4, 1002)
    x = np.random.default_rng(1003).multivariate_normal(mean, covariance, size=1000)
    z = Whitening.estimated(x)(x)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(4), atol=1e-11)


def test_degenerate_inputs_are_refused():
    x = np.random.default_rng(1004).standard_normal((100, 3))
    with pytest.raises(InvalidInput, match="positive definite"):
        Whitening.estimated(np.column_stack([x, x[:, 0] + x[:, 1]]))
    with pytest.raises(InvalidInput, match="more rows than"):
        Whitening.estimated(x[:3])


@pytest.mark.parametrize("dimension", [2, 10, 40])
def test_gaussian_inputs_pass(dimension):
    mean, covariance = law(dimension, 1005)
    x = np.random.default_rng(1006).multivariate_normal(mean, covariance, size=5_000)
    evidence = gaussianity(x, np.random.default_rng(0))
    assert evidence.is_plausible
    assert "could be Gaussian" in str(evidence)


def test_probabilities_are_uniform_under_the_hypothesis():
    rng = np.random.default_rng(1007)
    evidence = [gaussianity(rng.standard_normal((2_000, 3)), rng) for _ in range(200)]
    for name in ("skewness_probability", "kurtosis_probability"):
        below = np.mean([getattr(entry, name) < 0.5 for entry in evidence])
        # 200 draws: a deviation of 0.15 is more than four standard deviations.
        assert below == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("kind", ["uniform", "laplace", "exponential", "binary", "student"])
def test_other_inputs_are_noticed(kind):
    rng = np.random.default_rng(1008)
    shape = (3_000, 6)
    x = {
        "uniform": lambda: rng.uniform(-1, 1, shape),
        "laplace": lambda: rng.laplace(size=shape),
        "exponential": lambda: rng.exponential(size=shape),
        "binary": lambda: rng.choice([-1.0, 1.0], shape),
        "student": lambda: rng.standard_t(6, size=shape),
    }[kind]()
    evidence = gaussianity(x, rng)
    assert not evidence.is_plausible
    assert "not Gaussian" in str(evidence)


def test_only_some_rows_are_looked_at():
    x = np.random.default_rng(1009).standard_normal((30_000, 2))
    assert gaussianity(x, np.random.default_rng(0)).rows == 20_000
