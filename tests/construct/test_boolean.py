from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from unweave.construct import AndreevLayout, andreev, andreev_net, ltf_gate, parity_net, size, vertex_net
from unweave.errors import InvalidInput


def signs(n: int) -> np.ndarray:
    return np.array(list(product((-1, 1), repeat=n)))


def bits(n: int) -> np.ndarray:
    return np.array(list(product((0, 1), repeat=n)))


@pytest.mark.parametrize("n", [1, 3, 8])
def test_any_table(n: int) -> None:
    table = np.random.default_rng(1000 + n).standard_normal(2**n)
    net = vertex_net(table)
    assert size(net) == 2**n
    assert np.array_equal(net(signs(n))[:, 0], table)  # one gate is active at a vertex, with value one
    exact = vertex_net([Fraction(i, 7) for i in range(2**n)])
    assert size(exact) == 2**n - 1  # zero needs no gate
    assert exact(signs(n))[:, 0].tolist() == [Fraction(i, 7) for i in range(2**n)]


@pytest.mark.parametrize("domain", ["signs", "bits"])
@pytest.mark.parametrize("seed", range(1000, 1010))
def test_threshold_functions(seed: int, domain: str) -> None:
    rng = np.random.default_rng(seed)
    n = 7
    weights, bias = rng.integers(-5, 6, n), int(rng.integers(-5, 6))
    points = signs(n) if domain == "signs" else bits(n)
    z = points @ weights + bias
    net = ltf_gate(weights, bias, domain)
    assert size(net) == (2 if (z < 0).any() else 0)
    assert np.array_equal(net(points)[:, 0], np.where(z >= 0, 1.0, -1.0))


def test_threshold_of_floats_sees_sums_that_rounding_hides() -> None:
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in floats, but the rational numbers that they are sum to 2.8e-17 > 0.
    net = ltf_gate([0.1, 0.2], -0.3, exact=True)
    assert net([[1, 1]])[0, 0] == 1
    assert Fraction(0.1) + Fraction(0.2) - Fraction(0.3) > 0
    constant = ltf_gate([1, 1], 3)
    assert constant.hidden == ()
    assert constant([[-1, -1]])[0, 0] == 1


def test_many_sums_fall_back_to_their_grid() -> None:
    weights = [Fraction(2**i, 3) for i in range(6)]
    net = ltf_gate(weights, Fraction(1, 5), max_sums=10)
    z = signs(6) @ np.array(weights) + Fraction(1, 5)
    assert net(signs(6))[:, 0].tolist() == [1 if value >= 0 else -1 for value in z]


@pytest.mark.parametrize("k", [1, 2, 3, 6, 10])
def test_parity_with_k_gates(k: int) -> None:
    net = parity_net(k)
    assert size(net) == k
    assert np.array_equal(net(bits(k))[:, 0], bits(k).sum(axis=1) % 2)
    assert parity_net(k, exact=True)([[1] * k])[0, 0] == k % 2


@pytest.mark.parametrize("n", [4, 5, 8, 16, 33])
def test_andreev_network(n: int) -> None:
    layout = AndreevLayout.of(n)
    assert layout.used <= n
    x = np.random.default_rng(1000 + n).integers(0, 2, (300, n))
    net = andreev_net(n)
    assert np.array_equal(net(x)[:, 0], andreev(x))
    assert size(net) == 2 * 2**layout.rows + layout.rows * layout.columns <= 3 * n / 2
    exact = andreev_net(n, exact=True)
    assert exact(x[:5])[:, 0].tolist() == andreev(x[:5]).tolist()


def test_andreev_by_hand() -> None:
    # n = 8: table of 4 bits, two rows of two; parities (1, 0) give address 2.
    assert andreev([[0, 0, 1, 0, 1, 0, 1, 1]]).tolist() == [1]
    assert andreev([[1, 1, 0, 1, 1, 0, 1, 1]]).tolist() == [0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vertex_net([1, 2, 3]), "2\\^n"),
        (lambda: vertex_net([1.0]), "2\\^n"),
        (lambda: vertex_net([1.0, np.nan]), "finite"),
        (lambda: ltf_gate([[1, 2]]), "vector"),
        (lambda: ltf_gate([1.0, np.inf]), "finite"),
        (lambda: ltf_gate([1.0], domain="reals"), "domain"),
        (lambda: parity_net(0), "integer"),
        (lambda: andreev_net(3), "integer"),
        (lambda: andreev([[0, 2, 1, 0]]), "entries 0 and 1"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()
