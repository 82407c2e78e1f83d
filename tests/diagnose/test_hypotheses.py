"""Hypotheses of the theorems: against brute force on small cases, and on activations known by name."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import unweave
from unweave.diagnose import (
    activation_hypotheses,
    diagnose_layers,
    hessians_needed,
    independence,
    inputs_needed,
    isometry_bracket,
    shift_basin,
    span_error_bound,
    subspace_error,
    unit_columns,
)
from unweave.networks.activations import get_activation

SMALL = np.array([-0.3, 0.0, 0.4])


def columns(d, m, seed=1000):
    return unit_columns(np.random.default_rng(seed).standard_normal((d, m)))[0]


@pytest.mark.parametrize(
    ("name", "shallow", "deep"),
    [
        ("tanh", True, True),
        ("sigmoid", True, True),
        ("erf", True, True),
        ("softplus", False, True),  # g'' is even: not monotone around 0
        ("relu", False, False),
        ("quadratic", False, False),
        ("cubic", False, False),
        ("sine", True, True),
    ],
)
def test_verdicts_by_name(name, shallow, deep):
    found = activation_hypotheses(get_activation(name), SMALL)
    assert (found.shallow, found.deep) == (shallow, deep), found


def test_shifts_beyond_the_monotone_interval_fail():
    far = activation_hypotheses(get_activation("tanh"), np.array([0.0, 1.5]))
    assert not far.monotone_second
    assert far.one_sign


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus"])
def test_kappa_is_the_largest_derivative(name):
    z = np.linspace(-6, 6, 100_001)
    expected = max(np.abs(d).max() for d in get_activation(name).jet(z, 3)[1:])
    assert activation_hypotheses(get_activation(name), SMALL).kappa == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(("d", "m"), [(4, 3), (5, 7), (3, 5)])
def test_babel_spark_and_isometry_against_all_subsets(d, m):
    w = columns(d, m)
    found = independence(w)
    gram = np.abs(w.T @ w)
    for p in range(1, m):
        brute = max(
            max(gram[list(s), j].sum() for j in range(m) if j not in s) for s in combinations(range(m), p)
        )
        assert found.babel[p] == pytest.approx(brute)
    spark = next(
        (k for k in range(1, m + 1) for s in combinations(range(m), k) if np.linalg.matrix_rank(w[:, s]) < k),
        m + 1,
    )
    assert found.spark_at_least <= spark
    for p in range(2, m + 1):
        low, high = isometry_bracket(w, p)
        exact = max(np.linalg.norm(w[:, s].T @ w[:, s] - np.eye(p), 2) for s in combinations(range(m), p))
        assert low <= exact + 1e-12
        assert exact <= high + 1e-12
        assert low >= 0.5 * exact


def test_orthonormal_weights_are_the_only_rank_ones():
    found = independence(np.eye(6)[:, :4])
    assert found.row_sum == 0.0
    assert found.only_rank_ones
    doubled = np.column_stack([np.eye(3), np.eye(3)[:, 0]])
    assert independence(doubled).spark_at_least == 2
    assert not independence(doubled).only_rank_ones
    with pytest.raises(unweave.UnweaveError, match="columns"):
        found.isometry(5)


def test_the_span_bound_holds():
    rng = np.random.default_rng(1000)
    exact = rng.standard_normal((12, 3)) @ rng.standard_normal((3, 20))
    for size in (1e-3, 1e-2):
        measured = exact + size * rng.standard_normal(exact.shape)
        bases = [np.linalg.svd(m)[0][:, :3] for m in (exact, measured)]
        smallest = np.linalg.svd(exact, compute_uv=False)[2]
        error = subspace_error(*bases)
        assert error <= span_error_bound(np.linalg.norm(measured - exact), smallest)
    assert span_error_bound(1.0, 0.0) == np.inf


def test_the_number_of_hessians_is_enough():
    w, kappa = columns(4, 3), 1.0
    tanh = get_activation("tanh")
    rng = np.random.default_rng(1000)

    def hessians(count):
        second = tanh.jet(rng.standard_normal((count, 4)) @ w + 0.3, 2)[2]
        flat = np.einsum("nk,ik,jk->nij", second, w, w).reshape(count, -1)
        return np.linalg.eigvalsh(flat.T @ flat)[-3]

    alpha = hessians(200_000) / 200_000
    needed = hessians_needed(w, kappa, alpha, failure=0.05)
    assert all(hessians(needed) >= needed * alpha / 2 for _ in range(10))
    assert inputs_needed(3, 1.0, 0.1, 0.05) > inputs_needed(3, 1.0, 0.2, 0.05)
    for call in (lambda: hessians_needed(w, 1.0, 0.0), lambda: inputs_needed(3, 1.0, 0.1, failure=1.0)):
        with pytest.raises(unweave.UnweaveError):
            call()


def test_descent_from_inside_the_basin_arrives():
    basin = shift_basin(4, 1.0, 0.5)
    curvature = 2 * 1.0 * 2.0
    for error in (0.0, 0.99 * basin.largest_error):
        distance = basin.radius  # worst case of the recursion
        for _ in range(5000):
            distance = distance - 1.0 * (0.5 * distance - curvature * distance**2 - error)
            assert distance <= basin.radius * (1 + 1e-12)
        assert distance <= basin.floor_per_error * error + 1e-9


def test_layers_of_a_deep_network():
    found = diagnose_layers(unweave.random_network([6, 5, 4, 2], seed=0))
    assert found.pyramidal
    assert found.smooth
    assert [layer.incoherence.width for layer in found.layers] == [5, 4]
    wide = diagnose_layers(unweave.random_network([3, 5, 4, 1], "relu", seed=0))
    assert not wide.pyramidal
    assert not wide.smooth
    assert wide.shown == 3
