"""The landscape on samples: bounds from a loss, barriers of any law."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.quadratic import (
    InputMoments,
    empirical_barrier,
    empirical_risk,
    loss_certificate,
    population_barrier,
    population_risk,
    sample_barrier,
    stationary_certificate,
)

LAWS = {
    "normal": (lambda rng, shape: rng.standard_normal(shape), InputMoments()),
    "uniform": (lambda rng, shape: rng.uniform(-1, 1, shape) * np.sqrt(3), InputMoments(1.0, 1.8)),
    "laplace": (lambda rng, shape: rng.laplace(size=shape) / np.sqrt(2), InputMoments(1.0, 6.0)),
}


def planted(d, rng):
    truth = rng.standard_normal((d, d + 2))
    return truth, truth @ truth.T


@pytest.mark.parametrize("law", LAWS)
def test_a_loss_bounds_distance_and_risk(law):
    draw, moments = LAWS[law]
    for seed in range(1000, 1005):
        rng = np.random.default_rng(seed)
        truth, matrix = planted(4, rng)
        x = draw(rng, (60, 4))
        y = np.einsum("ni,ij,nj->n", x, matrix, x)
        for size in (1e-6, 1e-2, 1.0):
            other = truth + size * rng.standard_normal(truth.shape)
            difference = other @ other.T - matrix
            found = loss_certificate(x, empirical_risk(x, y, other), moments)
            assert np.linalg.norm(difference) <= found.distance_bound
            assert population_risk(difference, moments) <= found.risk_bound


@pytest.mark.parametrize("law", LAWS)
def test_barriers_hold_and_are_sharper_than_the_certain_one(law):
    draw, _ = LAWS[law]
    rng = np.random.default_rng(1000)
    _, matrix = planted(3, rng)
    x = draw(rng, (200, 3))
    y = np.einsum("ni,ij,nj->n", x, matrix, x)
    found = sample_barrier(x, matrix)
    assert found.loss >= empirical_barrier(x, matrix)
    np.testing.assert_allclose(found.matrix @ found.direction, 0, atol=1e-9)
    if found.attained:
        values, vectors = np.linalg.eigh(found.matrix)
        root = vectors * np.sqrt(np.maximum(values, 0))
        assert empirical_risk(x, y, root) == pytest.approx(found.loss, rel=1e-6)
    # No matrix of lower rank that descent finds on its own is below it.
    for _ in range(20):
        lower = rng.standard_normal((3, 2))
        for _ in range(400):
            residual = np.sum((x @ lower) ** 2, axis=1) - y
            lower = lower - 2e-3 / len(x) * 4 * (x * residual[:, None]).T @ (x @ lower) / 10
        assert empirical_risk(x, y, lower) >= found.loss * (1 - 1e-9)


def test_many_gaussian_samples_have_the_barrier_of_the_population():
    rng = np.random.default_rng(1000)
    _, matrix = planted(3, rng)
    found = sample_barrier(rng.standard_normal((40_000, 3)), matrix, starts=4)
    assert found.loss == pytest.approx(population_barrier(matrix), rel=0.05)


def test_few_samples_bound_the_loss_but_not_the_distance():
    rng = np.random.default_rng(1000)
    truth, matrix = planted(4, rng)
    x = rng.standard_normal((6, 4))
    y = np.einsum("ni,ij,nj->n", x, matrix, x)
    near = truth + 1e-4 * rng.standard_normal(truth.shape)
    found = stationary_certificate(x, y, near)
    assert found.distance_bound == np.inf
    assert empirical_risk(x, y, near) <= found.risk_bound < np.inf


def test_refused():
    with pytest.raises(unweave.UnweaveError, match="loss"):
        loss_certificate(np.ones((3, 2)), -1.0)
    with pytest.raises(unweave.UnweaveError, match="two columns"):
        sample_barrier(np.ones((3, 1)), np.ones((1, 1)))
