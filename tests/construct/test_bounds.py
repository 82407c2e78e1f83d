from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from unweave.construct import bounds, hard, pieces_on_line, size
from unweave.errors import InvalidInput
from unweave.networks.random import random_network


def test_least_size_by_trying_all_widths() -> None:
    for layers, pieces in product((1, 2, 3), (1, 2, 5, 12, 27, 30)):
        tried = product(range(pieces), repeat=layers)
        least = min(sum(widths) for widths in tried if prod(w + 1 for w in widths) >= pieces)
        assert bounds.min_size(pieces, layers + 1) == least


def test_no_network_exceeds_the_bound_and_some_reach_it() -> None:
    rng = np.random.default_rng(1000)
    for seed, layers in enumerate(([1, 6, 1], [1, 4, 4, 1], [1, 3, 3, 3, 1]), 1000):
        net = random_network(layers, activation="relu", outer="normal", seed=seed)
        count = len(pieces_on_line(net, rng.standard_normal(1), [1]))
        assert count <= bounds.max_pieces(net.hidden) <= bounds.max_pieces(net.hidden, published=True)
        assert bounds.min_size(count, len(layers) - 1) <= size(net)
    assert bounds.max_pieces([6]) == 7
    assert len(pieces_on_line(random_network([1, 6, 1], activation="relu", seed=1000), [0], [1])) == 7


@pytest.mark.parametrize(("w", "k"), [(2, 3), (3, 4), (5, 2), (10, 6)])
def test_sharper_than_published_for_the_hard_family(w: int, k: int) -> None:
    pieces = hard.sawtooth_pieces([w] * k)
    for hidden in range(1, k + 1):
        published = bounds.min_size(pieces, hidden + 1, published=True)
        assert published - 1 < hidden / 2 * w ** (k / hidden) - 1 <= published + 1e-6
        assert published <= bounds.min_size(pieces, hidden + 1)
    assert bounds.min_size(pieces, k + 1) <= w * k  # which the construction takes
    assert bounds.min_size(pieces, 2) == pieces - 1


def test_huge_numbers_are_exact() -> None:
    assert bounds.min_size(2**2000, 2001) == 2000
    assert bounds.min_size(2**2000 + 1, 2001) == 2001
    assert bounds.min_size(10**400, 3, published=True) > 10**199


def test_least_depth() -> None:
    assert bounds.min_depth(1, size=0) == 1
    for pieces, gates in ((7, 6), (9, 6), (27, 9), (1000, 40)):
        layers = bounds.min_depth(pieces, size=gates)
        assert bounds.min_size(pieces, layers) <= gates
        assert layers <= 2 or bounds.min_size(pieces, layers - 1) > gates
    assert bounds.min_depth(3**5, width=2) == 6
    assert bounds.min_depth(3**5 + 1, width=2) == 7
    assert bounds.min_depth(3**5, size=10, width=2) == 6


def test_pieces_needed_to_approximate() -> None:
    assert bounds.approximation_pieces(64, 0.0) == 33
    assert bounds.approximation_pieces(64, 0.25) == 1
    # One piece is allowed at an error of 1/4, and the constant 1/2 is one.
    net = hard.even_sawtooth(2, 4, exact=False)
    x = (np.arange(4096) + 0.5) / 4096
    assert np.mean(np.abs(net(x[:, None])[:, 0] - 0.5)) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.min_size(0, 2), "pieces"),
        (lambda: bounds.min_size(2, 1), "affine"),
        (lambda: bounds.min_size(2.5, 2), "pieces"),
        (lambda: bounds.max_pieces([3, 0]), "widths"),
        (lambda: bounds.min_depth(8), "size or width must be given"),
        (lambda: bounds.min_depth(9, size=3), "at least 4"),
        (lambda: bounds.approximation_pieces(8, -1.0), "error"),
        (lambda: bounds.approximation_pieces(8, float("nan")), "error"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()
