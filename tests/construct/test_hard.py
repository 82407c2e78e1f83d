from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest

from unweave.construct import (
    affine_map_at,
    arrangement_cones,
    as_float,
    bounds,
    depth,
    distinct_maps,
    hard,
    pieces_1d,
    pieces_on_line,
    size,
    zonotope_maps,
)
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.random import random_network


def random_breaks(width: int, rng: random.Random, height: int = 1) -> list[Fraction]:
    return [Fraction(height * i, 9973) for i in sorted(rng.sample(range(1, 9973), width - 1))]


@pytest.mark.parametrize(("w", "k"), [(2, 1), (2, 3), (2, 6), (3, 3), (4, 3), (5, 2), (3, 5), (10, 3)])
def test_sawtooth_has_w_to_the_k_pieces(w: int, k: int) -> None:
    rng = random.Random(1000 + 10 * w + k)
    net = hard.sawtooth([random_breaks(w, rng) for _ in range(k)])
    pieces = pieces_1d(net)
    inside = [p for p in pieces if p.left is not None and 0 <= p.left < 1]
    assert len(inside) == w**k == hard.sawtooth_pieces([w] * k)
    assert len(pieces) == hard.sawtooth_pieces_in_all([w] * k)
    assert (net.hidden, size(net), depth(net)) == ((w,) * k, w * k, k + 1)
    for piece in inside:  # each maps onto [0, 1]
        right = min(piece.right, Fraction(1)) if piece.right is not None else Fraction(1)
        ends = {piece.slopes[0] * t + piece.intercepts[0] for t in (piece.left, right)}
        assert ends == {0, 1}


def test_sawtooth_of_mixed_widths_and_height() -> None:
    rng = random.Random(1001)
    widths = [3, 2, 4]
    net = hard.sawtooth([random_breaks(w, rng, 5) for w in widths], height=5)
    pieces = pieces_1d(net)
    assert sum(p.left is not None and 0 <= p.left < 5 for p in pieces) == 24
    assert len(pieces) == hard.sawtooth_pieces_in_all(widths) == 26


def test_even_sawtooth_in_floats() -> None:
    exact, net = hard.even_sawtooth(2, 5), hard.even_sawtooth(2, 5, exact=False)
    assert as_float(exact) == net  # powers of two: nothing is rounded
    x = np.arange(33) / 32
    assert net(x[:, None])[:, 0].tolist() == [i % 2 for i in range(33)]


@pytest.mark.parametrize(
    ("n", "m", "w", "k"),
    [
        (1, 1, 2, 2),
        (2, 2, 2, 2),
        (2, 4, 2, 2),
        (2, 4, 2, 3),
        (2, 7, 3, 2),
        (3, 4, 2, 2),
        (3, 6, 2, 1),
        (4, 2, 3, 1),
    ],
)
def test_zonotope_pieces_are_exactly_the_formula(n: int, m: int, w: int, k: int) -> None:
    rng = random.Random(1000 + n + 10 * m)
    generators = [[Fraction(rng.randint(-999, 999), 10) for _ in range(n)] for _ in range(m)]
    net = hard.zonotope(generators, [random_breaks(w, rng) for _ in range(k)])
    assert size(net) == 2 * m + w * k
    assert depth(net) == k + 2
    assert len(arrangement_cones(generators)) == 2 * sum(comb(m - 1, i) for i in range(n))
    expected = 2 * sum(comb(m - 1, i) for i in range(n)) * w**k
    assert len(zonotope_maps(net, generators)) == expected == hard.zonotope_pieces(n, m, [w] * k)


def test_sampling_finds_no_piece_that_the_walk_along_cones_missed() -> None:
    generators = [[1, 2], [-2, 0], [0, -1], [-1, -1]]
    net = hard.zonotope(generators, [[Fraction(1, 2)]] * 2)
    maps = zonotope_maps(net, generators)
    rng = random.Random(1002)
    points = []
    while len(points) < 300:
        point = [Fraction(rng.randint(-1000, 1000), 1999) for _ in range(2)]
        if sum(abs(a * point[0] + b * point[1]) for a, b in generators) < 1:
            points.append(point)
    assert distinct_maps(net, points) <= maps


def test_cones_hold_their_points() -> None:
    generators = [[3, 1, 2], [1, -1, 4], [0, 2, 1], [5, 1, -1], [2, 2, 3]]
    for cone in arrangement_cones(generators):
        values = [sum(a * b for a, b in zip(row, cone.inside, strict=True)) for row in generators]
        assert tuple(1 if v > 0 else -1 for v in values) == cone.signs
        assert all(values)


def test_pieces_along_a_line_agree_with_the_network() -> None:
    net = random_network([3, 8, 6, 2], activation="relu", outer="normal", seed=1003)
    net = Network(net.weights, net.biases, net.activations, skip=np.ones((3, 2)))
    rng = np.random.default_rng(1003)
    point, direction = rng.standard_normal(3), rng.standard_normal(3)
    pieces = pieces_on_line(net, point, direction)
    assert len(pieces) > 8
    assert pieces[0].left is None
    assert pieces[-1].right is None
    for before, after in pairwise(pieces):
        assert before.right == after.left
        assert before.slopes != after.slopes
        for s, t, c, d in zip(before.slopes, after.slopes, before.intercepts, after.intercepts, strict=True):
            assert s * before.right + c == t * before.right + d  # continuous
    t = np.array([float(piece.middle) for piece in pieces])
    lines = np.array([[float(v) for v in (*p.slopes, *p.intercepts)] for p in pieces])
    expected = lines[:, :2] * t[:, None] + lines[:, 2:]
    assert np.abs(net(point + t[:, None] * direction) - expected).max() < 1e-12 * np.abs(expected).max()
    limited = pieces_on_line(net, point, direction, -1, 1)
    assert limited[0].left == -1
    assert limited[-1].right == 1
    assert len(limited) <= len(pieces) <= bounds.max_pieces(net.hidden)


def test_affine_map_is_the_gradient() -> None:
    net = random_network([3, 8, 6, 2], activation="relu", outer="normal", seed=1004)
    x = np.random.default_rng(1004).standard_normal(3)
    matrix, offset = affine_map_at(net, x)
    assert np.abs(matrix.astype(float).T @ x + offset.astype(float) - net(x)).max() < 1e-13
    step = 1e-7  # inside the piece: differences are exact up to rounding / step
    jacobian = np.array([(net(x + step * e) - net(x - step * e)) / (2 * step) for e in np.eye(3)])
    assert np.abs(matrix.astype(float) - jacobian).max() < 1e-7


def test_hidden_identity_layers_are_no_kinks() -> None:
    net = Network(
        [[[1.0, -1.0]], [[1.0], [1.0]], [[2.0]]], [[0.0, 0.0], [0.0], [1.0]], ["relu", "identity", "identity"]
    )
    assert [p.slopes[0] for p in pieces_1d(net)] == [-2, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hard.sawtooth([]), "at least one"),
        (lambda: hard.sawtooth([[]]), "increasing"),
        (lambda: hard.sawtooth([[0.6, 0.4]]), "increasing"),
        (lambda: hard.sawtooth([[0.5, 1.0]]), "increasing"),
        (lambda: hard.sawtooth([[0.5]], height=0), "positive"),
        (lambda: hard.sawtooth([[0.5]], height=float("inf")), "finite"),
        (lambda: hard.even_sawtooth(1, 3), "at least 2"),
        (lambda: hard.support_function([1, 2]), "shape"),
        (lambda: hard.zonotope([[np.inf, 1.0]], [[0.5]]), "finite"),
        (lambda: arrangement_cones([[1, 0], [2, 0], [1, 1]]), "general position"),
        (lambda: arrangement_cones([[0, 0, 0]]), "general position"),
        (lambda: hard.zonotope_cones(0, 3), "positive"),
        (lambda: pieces_1d(random_network([2, 3, 1], activation="relu")), "one input"),
        (lambda: pieces_1d(random_network([1, 3, 1])), "relu"),
        (lambda: pieces_on_line(random_network([2, 3, 1], activation="relu"), [0, 0], [0, 0]), "zero"),
        (lambda: pieces_on_line(random_network([2, 3, 1], activation="relu"), [0], [1, 0]), "shape"),
        (lambda: pieces_on_line(random_network([2, 3, 1], activation="relu"), [0, 0], [1, 0], 1, 0), "below"),
        (lambda: affine_map_at(random_network([2, 3, 1], activation="relu"), [np.nan, 0]), "finite"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()
