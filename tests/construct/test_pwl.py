from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.construct import as_float, pieces_1d, pwl1d_to_relu, pwl_to_relu, size
from unweave.errors import InvalidInput

EPS = np.finfo(float).eps


def interpolate(left, right, a, b, x):
    """The function itself, by its definition."""
    if x <= a[0]:
        return b[0] + left * (x - a[0])
    if x >= a[-1]:
        return b[-1] + right * (x - a[-1])
    i = max(j for j in range(len(a)) if a[j] <= x)
    return b[i] + (b[i + 1] - b[i]) * (x - a[i]) / (a[i + 1] - a[i])


def random_function(pieces: int, seed: int, left=Fraction(3, 5), right=Fraction(-7, 5)):
    rng = random.Random(seed)
    a = [Fraction(x, 7) for x in sorted(rng.sample(range(-1000, 1000), pieces - 1))]
    b = [Fraction(rng.randint(-500, 500), 11) for _ in a]
    points = [Fraction(rng.randint(-20000, 20000), 97) for _ in range(50)] + a
    return left, right, a, b, points


@pytest.mark.parametrize("pieces", [2, 3, 5, 10, 50, 200])
def test_exact_at_every_point_with_as_many_gates_as_pieces(pieces: int) -> None:
    *function, points = random_function(pieces, 1000 + pieces)
    net = pwl1d_to_relu(*function)
    assert net.is_exact
    assert size(net) == pieces
    assert net([[x] for x in points])[:, 0].tolist() == [interpolate(*function, x) for x in points]
    assert len(pieces_1d(net)) == pieces


@pytest.mark.parametrize(
    ("left", "right"), [(Fraction(0), Fraction(2)), (Fraction(2), Fraction(0)), (Fraction(0),) * 2]
)
def test_a_flat_end_saves_a_gate(left: Fraction, right: Fraction) -> None:
    *function, points = random_function(40, 1001, left, right)
    net = pwl1d_to_relu(*function)
    assert size(net) == 39
    assert net([[x] for x in points])[:, 0].tolist() == [interpolate(*function, x) for x in points]


def test_a_subset_of_jumps_saves_a_gate() -> None:
    # Slopes -1, 2, -1, 3: jumps 3, -3, 4. No end is flat, but the jumps with the left slope in view
    # must sum to 1 = -3 + 4.
    a, b = [0, 1, 2], [0, 2, 1]
    net = pwl1d_to_relu(Fraction(-1), Fraction(3), a, b)
    assert size(net) == 3
    points = [Fraction(i, 5) for i in range(-10, 21)]
    assert net([[x] for x in points])[:, 0].tolist() == [interpolate(-1, 3, a, b, x) for x in points]
    # One gate per kink is not possible for |x|: its only jump is 2, and its left slope -1.
    assert size(pwl1d_to_relu(Fraction(-1), Fraction(1), [0], [0])) == 2


def test_an_affine_function_needs_no_gate() -> None:
    net = pwl1d_to_relu(Fraction(2), Fraction(2), [0, 1, 2], [1, 3, 5])
    assert net.hidden == ()
    assert net([10])[0] == 21
    bent = pwl1d_to_relu(Fraction(2), Fraction(3), [0, 1, 2], [1, 3, 5])  # one true kink of three
    assert size(bent) == 2
    assert pieces_1d(bent)[0].right == 2


def test_floats_are_as_good_as_cancellation_allows() -> None:
    *function, points = random_function(200, 1002)
    left, right, a, b = function
    net = pwl1d_to_relu(float(left), float(right), [float(x) for x in a], [float(x) for x in b])
    assert not net.is_exact
    assert size(net) == 200
    slopes = [left, *((b[i + 1] - b[i]) / (a[i + 1] - a[i]) for i in range(198)), right]
    jumps = [float(abs(t - s)) for s, t in pairwise(slopes)]
    expected = np.array([float(interpolate(*function, x)) for x in points])
    terms = np.array([sum(d * abs(float(x - k)) for d, k in zip(jumps, a, strict=True)) for x in points])
    error = np.abs(net([[float(x)] for x in points])[:, 0] - expected)
    assert np.all(error <= 20 * EPS * (terms + np.abs(expected)))


def test_float_breakpoints_on_a_line_are_no_kinks() -> None:
    a = np.linspace(0, 1, 11)
    assert pwl1d_to_relu(0.3, 0.3, a, 0.3 * a + 0.1).hidden == ()
    assert size(pwl1d_to_relu(0.3, 1.0, a, 0.3 * a + 0.1)) == 2


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=8, unique=True),
    st.lists(st.integers(-9, 9), min_size=8, max_size=8),
    st.integers(-3, 3),
    st.integers(-3, 3),
)
@settings(max_examples=60, deadline=None)
def test_any_function_is_exact_and_no_larger_than_its_pieces(a, values, left, right) -> None:
    a = sorted(a)
    b = values[: len(a)]
    net = pwl1d_to_relu(left, right, a, b, exact=True)
    pieces = len(pieces_1d(net))
    assert size(net) in ((pieces - 1, pieces) if pieces > 1 else (0,))
    for x in [Fraction(i, 3) for i in range(-160, 161, 7)] + a:
        assert net([x])[0] == interpolate(Fraction(left), Fraction(right), a, b, x)


def test_the_search_for_a_subset_has_a_limit() -> None:
    *function, _ = random_function(30, 1003)
    assert size(pwl1d_to_relu(*function)) == 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, [1, 0], [0, 0]), "increase strictly"),
        ((0, 1, [0, 0], [0, 1]), "increase strictly"),
        ((0, 1, [], []), "at least one"),
        ((0, 1, [0, 1], [0]), "equally many"),
        ((0, 1, [0, float("inf")], [0, 1]), "finite"),
        ((float("nan"), 1, [0], [0]), "finite"),
        ((Fraction(1), 1, [0], [float("inf")]), "finite"),
        ((0, "steep", [0], [0]), "real numbers"),
    ],
)
def test_bad_input_is_named(arguments, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        pwl1d_to_relu(*arguments)


def test_max_affine_differences_are_exact() -> None:
    rng = random.Random(1004)

    def number() -> Fraction:
        return Fraction(rng.randint(-60, 60), 12)

    terms = [
        (s, [([number() for _ in range(3)], number()) for _ in range(k)])
        for s, k in ((1, 4), (-1, 3), (1, 1))
    ]
    net = pwl_to_relu(terms)
    assert len(net.hidden) == 2  # ceil(log2 4)
    # 3 * 3 gates and 3 * 2 + 2, two per layer for the affine term
    assert size(net) == 9 + 8 + 4
    for _ in range(30):
        x = [number() for _ in range(3)]
        tops = [
            (s, max(sum(p * q for p, q in zip(a, x, strict=True)) + b for a, b in pieces))
            for s, pieces in terms
        ]
        assert net([x])[0, 0] == sum(s * top for s, top in tops)


def test_max_affine_in_floats_and_bad_terms() -> None:
    net = pwl_to_relu([(0.5, [([1.0, 0.0], 0.0), ([0.0, 1.0], 1.0)])])
    assert not net.is_exact
    assert net([[3.0, 1.0], [0.0, 4.0]]).ravel().tolist() == [1.5, 2.5]
    for bad in ([], [(1, [])]):
        with pytest.raises(InvalidInput, match="at least one"):
            pwl_to_relu(bad)
    with pytest.raises(InvalidInput, match="rows of one length"):
        pwl_to_relu([(1, [([1.0, 0.0], 0.0), ([0.0], 1.0)])])
    assert as_float(net) is net
