"""Sign ranks: the function by its definition, and ranks of restricted circuits at any depth."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import unweave
from unweave.construct.sign_rank import (
    chattopadhyay_mande,
    communication_matrix,
    forster_bound,
    odd_max_bit,
    orders_alike,
    restricted_rank_bound,
)


def signs(n):
    return np.array(list(product((-1, 1), repeat=n)))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_odd_max_bit_is_the_threshold_gate_of_the_definition(n):
    rows = signs(n)
    place = np.arange(1, n + 1)
    total = (1 + rows) @ ((-1.0) ** (place + 1) * 2.0**place)
    np.testing.assert_array_equal(odd_max_bit(rows), np.where(total >= 0.5, -1, 1))


def test_the_function_by_hand():
    x = np.array([[1, 1, 1, 1]])
    # XOR differs in the second block only: its place, 2, is even.
    assert chattopadhyay_mande(x, [[1, 1, -1, 1]], blocks=2)[0] == 1
    assert chattopadhyay_mande(x, [[-1, 1, 1, 1]], blocks=2)[0] == -1
    assert chattopadhyay_mande(x, [[-1, 1, 1, -1]], blocks=2)[0] == 1
    assert chattopadhyay_mande(x, x, blocks=2)[0] == 1


@pytest.mark.parametrize("seed", range(1000, 1008))
@pytest.mark.parametrize("widths", [(3,), (3, 5), (2, 6, 6)], ids=str)
def test_restricted_circuits_have_a_low_rank_at_any_depth(widths, seed):
    rng = np.random.default_rng(seed)
    m, largest = 5, 4
    # Weights of one order: multiples of one vector, which sorts the cube, are all alike.
    base = np.array([[1], [1], [2], [0], [1]])[rng.permutation(m)], np.array([[2], [1], [0], [1], [1]])
    inner = np.vstack([part * rng.integers(0, 3, (1, widths[0])) for part in base])
    assert orders_alike(inner[:m])
    assert orders_alike(inner[m:])
    layers = [2 * m, *widths, 1]
    deeper = [rng.standard_normal((a, b)) for a, b in pairwise(layers[1:])]
    biases = [rng.integers(-3, 4, widths[0]), *(rng.standard_normal(b) for b in layers[2:])]
    network = unweave.Network([inner, *deeper], biases, ["relu"] * len(widths) + ["identity"])
    rank = np.linalg.matrix_rank(communication_matrix(network, m), tol=1e-9)
    assert rank <= restricted_rank_bound(widths[0], m, largest)


def test_unordered_circuits_reach_a_higher_rank():
    rng = np.random.default_rng(1000)
    m, width = 6, 40
    inner = rng.integers(-1, 2, (2 * m, width)).astype(float)
    network = unweave.Network(
        [inner, rng.standard_normal((width, 1))], [np.zeros(width), [0.0]], ["relu", "identity"]
    )
    assert not orders_alike(inner[:m])
    assert np.linalg.matrix_rank(communication_matrix(network, m)) == 2**m > restricted_rank_bound(2, m, 1)


def test_lower_bound_and_rank_bracket_the_sign_rank():
    matrix = communication_matrix(lambda x, y: chattopadhyay_mande(x, y, blocks=3), 6)
    assert set(np.unique(matrix)) == {-1.0, 1.0}
    assert 1 <= forster_bound(matrix) <= np.linalg.matrix_rank(matrix)
    equal = communication_matrix(lambda x, y: np.ones(len(x)), 3)
    assert forster_bound(equal) == pytest.approx(1.0)


def test_refused():
    with pytest.raises(unweave.UnweaveError, match="blocks"):
        chattopadhyay_mande([[1, 1, 1]], [[1, 1, 1]], blocks=2)
    with pytest.raises(unweave.UnweaveError, match="-1 and 1"):
        odd_max_bit([[0, 1]])
    with pytest.raises(unweave.UnweaveError, match="m must be"):
        communication_matrix(lambda x, y: x[:, 0], 13)
