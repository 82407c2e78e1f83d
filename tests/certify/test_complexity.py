from __future__ import annotations

from fractions import Fraction

import pytest

from unweave.certify import kink_that_ends, line_pieces
from unweave.construct import affine_network, compose, hard, max_net, pwl_to_relu, size
from unweave.errors import InvalidInput
from unweave.networks.random import random_network

HINGE = pwl_to_relu([(1, [([1, 0], 0), ([0, 1], 0), ([0, 0], 0)])], exact=True)  # max(0, x1, x2)


def test_one_hidden_layer_has_a_piece_more_than_units_on_every_line() -> None:
    net = random_network([6, 12, 2], activation="relu", outer="normal", seed=1000)
    found = line_pieces(net, 5, seed=1000)
    assert found.counts == (13,) * 5
    assert found.min_size(2) == 12 == size(net)  # the network is as small as any of its depth
    assert found.min_depth(size=12) == 2
    assert found.min_depth(width=4) == 3


def test_a_sawtooth_certifies_that_shallow_networks_must_be_large() -> None:
    net = hard.even_sawtooth(2, 8)
    found = line_pieces(net, 1)
    assert found.most == hard.sawtooth_pieces_in_all([2] * 8) == 258
    assert found.min_size(2) == 257
    assert found.min_size(9) <= size(net) == 16


def test_a_kink_that_ends_proves_two_hidden_layers() -> None:
    witness = kink_that_ends(HINGE, seed=1001)
    assert witness is not None
    assert witness.jump != witness.jump_elsewhere
    normal = [abs(v) for v in witness.normal]
    assert normal in ([0, 1], [1, 0], [1, 1])  # the rays of max(0, x1, x2)
    for point in (witness.kink, witness.elsewhere):
        assert sum(a * (p - q) for a, p, q in zip(witness.normal, point, witness.kink, strict=True)) == 0


@pytest.mark.parametrize("seed", range(1000, 1005))
def test_no_kink_of_one_hidden_layer_ends(seed: int) -> None:
    net = random_network([3, 6, 2], activation="relu", outer="normal", seed=seed)
    assert kink_that_ends(net, seed=seed) is None
    deep = random_network([3, 6, 4, 1], activation="relu", outer="normal", seed=seed)
    assert kink_that_ends(deep, seed=seed) is not None


def test_a_deep_network_of_a_shallow_function_is_not_accused() -> None:
    # |x1 + x2| through two hidden layers
    absolute = compose(max_net(2, exact=True), affine_network([[1, -1], [1, -1]], exact=True))
    deeper = compose(pwl_to_relu([(1, [([Fraction(1)], 0), ([Fraction(1)], -1)])]), absolute)
    assert len(deeper.hidden) == 2
    assert kink_that_ends(deeper, seed=1002) is None


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidInput, match="lines"):
        line_pieces(HINGE, 0)
    with pytest.raises(InvalidInput, match="scale"):
        line_pieces(HINGE, 1, scale=0.0)
    with pytest.raises(InvalidInput, match="relu"):
        line_pieces(random_network([2, 3, 1]))
