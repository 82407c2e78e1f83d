"""Boolean functions by Fourier terms: exact tables, few gates."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest

from unweave.construct import (
    boolean_net,
    fourier_coefficients,
    fourier_net,
    min_threshold_gates,
    size,
    vertex_net,
)
from unweave.errors import InvalidInput


def signs(n):
    return np.array(list(product((-1, 1), repeat=n)))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_coefficients_are_correlations(n):
    table = np.random.default_rng(1000).standard_normal(2**n)
    found = fourier_coefficients(table)
    for r in range(n + 1):
        for chosen in combinations(range(n), r):
            direct = np.mean(table * np.prod(signs(n)[:, list(chosen)], axis=1))
            assert found.get(chosen, 0.0) == pytest.approx(direct, abs=1e-14)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_any_table(n):
    rng = np.random.default_rng(1000 + n)
    table = rng.standard_normal(2**n)
    np.testing.assert_allclose(fourier_net(table)(signs(n))[:, 0], table, atol=1e-12)
    exact = [Fraction(int(v), 7) for v in rng.integers(-5, 5, 2**n)]
    net = fourier_net(exact)
    assert net(signs(n))[:, 0].tolist() == exact
    assert size(net) == sum(len(chosen) for chosen in fourier_coefficients(exact))
    assert size(boolean_net(exact)) == min(size(net), size(vertex_net(exact)))


def test_parity_takes_as_many_gates_as_bits():
    values = [prod(row) for row in signs(10).tolist()]
    net = boolean_net(values)
    assert size(net) == 10
    assert net(signs(10))[:, 0].tolist() == values


def test_constants_and_what_is_no_table():
    assert fourier_net([2.0, 2.0, 2.0, 2.0]).hidden == ()
    assert fourier_net([2.0] * 4)([[1, -1]])[0, 0] == 2.0
    with pytest.raises(InvalidInput):
        fourier_net([1.0, 2.0, 3.0])


def test_a_linear_function_of_many_values_needs_many_threshold_gates():
    n = 6
    values = [sum(2**i * (1 + x) // 2 for i, x in enumerate(row)) for row in signs(n).tolist()]
    assert min_threshold_gates(values) == n
    assert min_threshold_gates([3, 3, 3]) == 0
    assert min_threshold_gates([0, 1, 2]) == 2
