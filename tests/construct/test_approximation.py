from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, log2

import numpy as np
import pytest

from unweave.construct import (
    affine_network,
    bounds,
    hard,
    hat,
    interpolant,
    lq_distance,
    mean_distance,
    pieces_on_line,
    pwl1d_to_relu,
    sawtooth_distance,
)
from unweave.errors import InvalidInput


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_hat_is_its_formula_in_few_layers(n: int) -> None:
    rng = np.random.default_rng(1000 + n)
    rows = [[Fraction(int(v), 7) for v in row] for row in rng.integers(-14, 15, (30, n))]
    rows += [[Fraction(v) for v in row] for row in product((-1, 0, 1), repeat=n)]
    values = hat(n)(np.array(rows, dtype=object))[:, 0]
    wanted = [max(Fraction(0), 1 - max(0, *row) + min(0, *row)) for row in rows]
    assert values.tolist() == wanted
    assert len(hat(n).hidden) == ceil(log2(n + 1))


def test_a_plane_interpolant_meets_the_function_on_the_grid_and_is_zero_outside() -> None:
    def f(x):
        return np.exp(x[:, 0]) - x[:, 1] ** 3

    net = interpolant(f, [-1.0, 0.0], [1.0, 3.0], 3)
    grid = np.array(list(product(np.linspace(-1, 1, 4), np.linspace(0, 3, 4))))
    assert np.allclose(net(grid)[:, 0], f(grid), atol=1e-11)
    assert np.allclose(net([[-1.7, 0.0], [0.0, 4.1], [9.0, 9.0]]), 0.0, atol=1e-10)
    assert len(net.hidden) == 2


def test_squares_are_missed_by_the_known_error_of_a_secant() -> None:
    """On a cell of width h the secant of x^2 is above by t (h - t): mean square h^4/30."""
    for cells in (5, 10):
        net = interpolant(lambda x: x[:, 0] ** 2, [0.0], [1.0], cells)
        distance = lq_distance(lambda x: x[:, 0] ** 2, net, [0.0], [1.0], 2.0, cells)
        assert distance == pytest.approx(cells**-2 / np.sqrt(30), rel=1e-9)


def test_a_jump_is_approximated_in_the_mean_and_not_in_the_maximum() -> None:
    """A jump in the middle of a cell of width h: the ramp misses it by 2 int_0^(h/2) (t/h)^q dt."""

    def step(x):
        return (x[:, 0] > 0.5).astype(float)

    for cells, q in product((5, 11), (1.0, 2.0, 3.0)):
        net = interpolant(step, [0.0], [1.0], cells)
        wanted = (0.5**q / (q + 1) / cells) ** (1 / q)
        assert lq_distance(step, net, [0.0], [1.0], q, 2 * cells) == pytest.approx(wanted, rel=1e-9)
        assert abs(float(net([[0.5]])[0, 0]) - 0.5) < 1e-12  # next to a jump of 1


def test_exact_mean_distance_against_a_fine_sum() -> None:
    one = hard.even_sawtooth(3, 2)
    other = pwl1d_to_relu(Fraction(1, 3), -1, [Fraction(1, 7), Fraction(2, 3)], [Fraction(1, 5), 1])
    x = (np.arange(200_000) + 0.5) / 200_000
    tent = np.abs((x * 9 + 1) % 2 - 1)
    line = np.interp(x, [0, 1 / 7, 2 / 3, 1], [1 / 5 - 1 / 21, 1 / 5, 1, 2 / 3])
    assert float(mean_distance(one, other)) == pytest.approx(np.abs(tent - line).mean(), abs=1e-9)


@pytest.mark.parametrize("sides", [4, 6, 9])
def test_no_function_of_few_pieces_on_a_fine_lattice_is_nearer_than_the_bound(sides: int) -> None:
    """All continuous functions with breaks at multiples of 1/(2 q) and values in eighths, by programming."""
    steps, heights = 2 * sides, np.linspace(-0.5, 1.5, 17)
    best = dict(enumerate(nearest(sides, steps, heights), 1))
    for pieces, value in best.items():
        assert value >= float(sawtooth_distance(sides, pieces)) - 1e-12
    assert best[1] == pytest.approx(0.25 if sides % 2 == 0 else best[1])  # the constant 1/2
    assert best[sides] == pytest.approx(0.0, abs=1e-12)


def nearest(sides: int, steps: int, heights) -> list[float]:
    """Least integral of |s - g| for g with p = 1, 2, ..., sides pieces on the lattice."""
    fine = 16
    x = (np.arange(steps * fine) + 0.5) / (steps * fine)
    tent = np.abs((x * sides + 1) % 2 - 1)
    cost = {}
    for a in range(steps):
        for b in range(a + 1, steps + 1):
            part, at = tent[a * fine : b * fine], (x[a * fine : b * fine] * steps - a) / (b - a)
            lines = heights[:, None, None] * (1 - at) + heights[None, :, None] * at
            cost[a, b] = np.abs(lines - part).sum(axis=2) / len(x)
    reached, found = {0: np.zeros(len(heights))}, []
    for _ in range(sides):
        following = {
            b: np.min([np.min(reached[a][:, None] + cost[a, b], axis=0) for a in reached if a < b], axis=0)
            for b in range(1, steps + 1)
            if any(a < b for a in reached)
        }
        found.append(float(following[steps].min()))
        reached = following
    # Pieces may be fewer.
    return list(np.minimum.accumulate(found))


def test_sizes_of_the_source_are_kept_by_the_sharper_count() -> None:
    for w, k, fewer, error in product((2, 3, 5), (4, 6), (1, 2, 3), (0.0, 0.05, 0.2)):
        needed = bounds.min_size(bounds.approximation_pieces(w**k, error), fewer + 1)
        assert needed >= bounds.approximation_size(w, k, fewer, error) - 1
    assert mean_distance(hard.even_sawtooth(2, 4), affine_network([[0]], [Fraction(1, 2)])) == Fraction(1, 4)


@pytest.mark.parametrize(("n", "m", "w", "k"), [(1, 1, 2, 2), (2, 3, 2, 2), (3, 5, 3, 2), (2, 6, 4, 1)])
def test_pieces_of_a_zonotope_along_a_line(n: int, m: int, w: int, k: int) -> None:
    """No line of many has more pieces inside than said, and one near the origin has as many."""
    rng = np.random.default_rng(1000)
    generators = [[Fraction(int(v), 100) for v in row] for row in rng.integers(-99, 100, (m, n))]
    net = hard.zonotope(generators, [[Fraction(i, w) for i in range(1, w)]] * k)
    most = hard.zonotope_pieces_on_line(m, [w] * k)
    counts = []
    for scale in (Fraction(1, 10**6), Fraction(1, 3), Fraction(1)):
        for _ in range(4):
            point = [scale * Fraction(int(v), 100) for v in rng.integers(-99, 100, n)]
            direction = [Fraction(int(v), 100) for v in rng.integers(1, 100, n)]

            def gamma(t, point=point, direction=direction):
                at = [p + t * v for p, v in zip(point, direction, strict=True)]
                return sum(abs(sum(a * b for a, b in zip(row, at, strict=True))) for row in generators)

            pieces = pieces_on_line(net, point, direction)
            ends = [[t for t in (piece.left, piece.middle, piece.right) if t is not None] for piece in pieces]
            counts.append(sum(any(gamma(t) < 1 for t in at) for at in ends))
    assert max(counts) == most


def test_first_layer_of_montufars_count_is_an_arrangement() -> None:
    turns = np.pi * (np.arange(4) + 0.3) / 4
    lines, grid = np.stack([np.cos(turns), np.sin(turns)]), np.linspace(-40, 40, 801)
    plane = np.array(list(product(grid, grid))) @ lines > np.array([-1.0, 2.0, 0.5, -3.0])
    assert len({row.tobytes() for row in plane}) == bounds.montufar_pieces(2, 1, 4)
    for layers, w in product((1, 2, 3), (1, 2, 5)):
        assert bounds.montufar_pieces(1, layers, w) <= bounds.max_pieces([w] * layers)


def test_errors() -> None:
    with pytest.raises(InvalidInput, match="cells"):
        interpolant(lambda x: x[:, 0], [0.0], [1.0], 0)
    with pytest.raises(InvalidInput, match="low and high"):
        interpolant(lambda x: x[:, 0], [1.0], [0.0], 3)
    with pytest.raises(InvalidInput, match="finite value"):
        interpolant(lambda x: np.full(len(x), np.inf), [0.0], [1.0], 3)
    with pytest.raises(InvalidInput, match="q must"):
        lq_distance(lambda x: x[:, 0], hat(1), [0.0], [1.0], np.inf)
    with pytest.raises(InvalidInput, match="width must"):
        bounds.montufar_pieces(3, 2, 2)
    with pytest.raises(InvalidInput, match="sides"):
        sawtooth_distance(0, 1)
