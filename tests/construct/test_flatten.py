"""Flattened networks: the same function exactly, of the depth that the theorem promises."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil, log2

import numpy as np
import pytest

import unweave
from unweave.construct import (
    as_exact,
    difference_of_maxima,
    flatten,
    hard,
    max_net,
    pwl_to_relu,
    signed_maxima,
    size,
)


def integer_network(widths, seed):
    """A ReLU network of small whole numbers: its units often meet in common lines and points."""
    rng = np.random.default_rng(seed)
    weights = [rng.integers(-2, 3, (a, b)).astype(float) for a, b in pairwise(widths)]
    biases = [rng.integers(-2, 3, b).astype(float) for b in widths[1:]]
    return as_exact(unweave.Network(weights, biases, ["relu"] * (len(widths) - 2) + ["identity"]))


def fractions(n, count, seed):
    rng = np.random.default_rng(seed)
    return [
        [Fraction(int(a), int(b)) for a, b in rng.integers(1, 30, (n, 2)) * [1, 1]] for _ in range(count)
    ] + [[-Fraction(int(a), 7) for a in rng.integers(0, 30, n)] for _ in range(count)]


@pytest.mark.parametrize("seed", [1001, 1002])
@pytest.mark.parametrize("widths", [(1, 3, 3, 1), (2, 2, 2, 2, 1), (3, 2, 2, 2, 1), (2, 3, 2, 2, 2)], ids=str)
def test_the_same_function_in_fewer_layers(widths, seed):
    network = integer_network(widths, seed)
    flat = flatten(network)
    assert flat.is_exact
    assert len(flat.hidden) <= ceil(log2(widths[0] + 1))
    rows = fractions(widths[0], 20, seed)
    assert np.array_equal(flat(rows), network(rows))


@pytest.mark.parametrize("widths", [(2, 3, 1), (3, 3, 2, 1), (4, 2, 2, 1)], ids=str)
def test_signed_maxima_are_the_same_function(widths):
    network = integer_network(widths, 1000)
    rows = fractions(widths[0], 20, 1000)
    assert np.array_equal(pwl_to_relu(signed_maxima(network))(rows), network(rows))
    assert flatten(network) is network  # as flat as any function may need


def test_floats_are_flattened_exactly_and_rounded():
    network = unweave.random_network([2, 2, 2, 2, 1], "relu", seed=1000, outer="normal")
    x = np.random.default_rng(1000).standard_normal((200, 2))
    np.testing.assert_allclose(flatten(network)(x), network(x), atol=1e-11)


@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_maxima_have_few_lines_and_add_up(seed):
    network = integer_network((2, 3, 2, 1), seed)
    terms = signed_maxima(network)
    assert all(len(lines) <= 3 for _, lines in terms)
    upper, lower = difference_of_maxima(network)
    for row in fractions(2, 10, seed):
        expected = network([row])[0, 0]
        largest = [
            max(sum(a * x for a, x in zip(line, row, strict=False)) + line[-1] for line in s)
            for s in (upper, lower)
        ]
        assert largest[0] - largest[1] == expected
        assert (
            sum(
                s * max(sum(a * x for a, x in zip(slopes, row, strict=True)) + b for slopes, b in lines)
                for s, lines in terms
            )
            == expected
        )


def test_no_line_is_idle():
    # Of max(0, x, y, (x + y) / 2, -3) three lines remain.
    network = max_net(5)
    inner = np.array([[0.0, 1.0, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.5, 0.0]])
    composed = unweave.construct.compose(network, unweave.construct.affine_network(inner, [0, 0, 0, 0, -3.0]))
    upper, lower = difference_of_maxima(composed)
    for lines in (upper, lower):
        for line in lines:
            # A row where it is the largest: the interior of its region is not empty.
            rows = np.random.default_rng(1000).uniform(-60, 60, (40_000, 2))
            values = [rows @ [float(a) for a in other[:-1]] + float(other[-1]) for other in lines]
            own = rows @ [float(a) for a in line[:-1]] + float(line[-1])
            assert np.any(own >= np.max(values, axis=0) - 1e-12)


def test_a_skip_and_identity_layers_count():
    base = integer_network((2, 2, 2, 2, 1), 1003)
    skip = as_exact(unweave.Network([[[1.0], [-2.0]]], [[0.0]], ["identity"])).weights[0]
    network = unweave.Network(base.weights, base.biases, base.activations, skip)
    rows = fractions(2, 10, 1003)
    assert np.array_equal(flatten(network)(rows), network(rows))


def test_one_input_takes_one_gate_per_piece():
    deep = hard.sawtooth([[Fraction(1, 3), Fraction(2, 3)]] * 2)
    flat = flatten(deep)
    assert len(flat.hidden) == 1
    assert size(flat) <= 10  # 9 pieces between 0 and 1, and two outside
    rows = [[Fraction(k, 41)] for k in range(-20, 60)]
    assert np.array_equal(flat(rows), deep(rows))


def test_affine_and_constant_networks():
    for widths, seed in (((2, 1), 1000), ((1, 1), 1001)):
        network = integer_network(widths, seed)
        rows = fractions(widths[0], 5, seed)
        assert np.array_equal(flatten(network)(rows), network(rows))


def test_too_many_lines_are_refused():
    with pytest.raises(unweave.UnweaveError, match="max_lines"):
        flatten(integer_network((3, 6, 6, 3, 1), 1000), max_lines=20)
    with pytest.raises(unweave.UnweaveError, match="relu"):
        flatten(unweave.random_network([2, 3, 1], "tanh", seed=0))
