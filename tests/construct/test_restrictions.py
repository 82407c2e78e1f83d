"""Random restrictions: what is left is the same function, and few gates survive."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import unweave
from unweave.construct import andreev
from unweave.construct.restrictions import (
    agreement_probability,
    andreev_restriction,
    equal_parts,
    kept_share,
    random_restriction,
    removable,
    restricted,
)


def bits(n):
    return np.array(list(product((0, 1), repeat=n)))


@pytest.mark.parametrize("skip", [None, np.arange(12.0)[:, None] - 4])
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_what_is_left_is_the_same_function(seed, skip):
    rng = np.random.default_rng(seed)
    weights, biases = rng.standard_normal((12, 9)), 2 * rng.standard_normal(9)
    network = unweave.Network(
        [weights, rng.standard_normal((9, 1))], [biases, [0.3]], ["relu", "identity"], skip
    )
    restriction = random_restriction(equal_parts(12, 3), 12, rng)
    left = restricted(network, restriction)
    assert left.n_inputs == 3
    np.testing.assert_allclose(left(bits(3)), network(restriction.rows(bits(3))), atol=1e-12)
    # A gate is removable if and only if all values on the free inputs have one sign.
    before = restriction.rows(bits(3)) @ weights + biases
    one_sided = (before >= 0).all(axis=0) | (before <= 0).all(axis=0)
    np.testing.assert_array_equal(removable(weights, biases, restriction), one_sided)
    assert sum(left.hidden) == np.sum(~one_sided)


def test_the_share_of_gates_kept_falls_like_the_root():
    shares = [kept_share(np.ones((n, 1)), [-n / 2], equal_parts(n, 4), 4000)[0] for n in (64, 256, 1024)]
    # Majority: the fixed inputs must be balanced to within the free ones, a central binomial probability.
    for n, share in zip((64, 256, 1024), shares, strict=True):
        assert 0 < share <= 4 / np.sqrt(n)
    assert shares[0] / shares[2] == pytest.approx(4.0, rel=0.25)


def test_andreev_becomes_its_table():
    rng = np.random.default_rng(1000)
    n = 32
    table = rng.integers(0, 2, 16)
    restriction = andreev_restriction(n, table, rng)
    left = andreev(restriction.rows(bits(4)).astype(int))
    # Bits that are fixed only flip the address: the values are those of the table in another order.
    flips = andreev(restriction.rows(np.zeros((1, 4))).astype(int))[0]
    assert sorted(left) == sorted(table)
    assert flips in table
    addresses = [k for k in range(16) if all(left[j] == table[j ^ k] for j in range(16))]
    assert addresses


def test_probability_of_agreement_is_below_its_bound():
    for n, epsilon in ((3, 0.25), (5, 0.1), (8, 0.05)):
        tail, bound = agreement_probability(n, epsilon)
        assert 0 < tail <= bound
    draws = np.random.default_rng(1000).integers(0, 2, (20_000, 8)).sum(axis=1)
    assert agreement_probability(3, 0.25)[0] == pytest.approx(np.mean(draws >= 6), abs=0.01)


def test_refused():
    with pytest.raises(unweave.UnweaveError, match="divide"):
        equal_parts(10, 3)
    with pytest.raises(unweave.UnweaveError, match="one hidden layer"):
        restricted(
            unweave.random_network([4, 2, 2, 1], "relu"),
            random_restriction(equal_parts(4, 2), 4, np.random.default_rng(0)),
        )
    with pytest.raises(unweave.UnweaveError, match="bits"):
        andreev_restriction(32, [0, 1], np.random.default_rng(0))
