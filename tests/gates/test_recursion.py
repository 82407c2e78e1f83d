from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.gates import azuma_tail, recursion_steps


@pytest.mark.parametrize(
    ("b", "c1", "c2"), [(1.0, 2.0, 0.0), (1.0, 2.0, 0.5), (0.3, 1.0, 0.99), (1.5, 1.0, 0.2)]
)
@pytest.mark.parametrize("target", [0.5, 1e-2, 1e-4])
def test_the_recursion_meets_its_target_when_it_is_said_to_and_not_before(b, c1, c2, target) -> None:
    found = recursion_steps(b, c1, c2, 3.0, target)
    x, met = 3.0, 1
    while x > target * (1 + 1e-12):
        x, met = (1 - found.step * b + found.step**2 * c1) * x + found.step**2 * c2, met + 1
    assert met == math.ceil(found.steps - 1e-9)


def test_with_equal_constants_the_target_is_never_met() -> None:
    found = recursion_steps(1.0, 2.0, 2.0, 1.0, 0.01)
    assert found.steps == math.inf
    limit = found.step**2 * 2.0 / (1 - found.factor)
    assert limit == pytest.approx(0.01)


def test_no_walk_exceeds_the_tail() -> None:
    """Every path of a walk with given steps, fair or falling, by enumeration."""
    steps = np.array([1.0, 0.5, 2.0, 1.0, 0.7, 1.3, 0.2, 1.0, 1.0, 0.4])
    signs = np.array(list(product((-1, 1), repeat=len(steps))))
    for up in (0.5, 0.4):
        chances = np.prod(np.where(signs > 0, up, 1 - up), axis=1)
        ends = signs @ steps
        for excess in (0.5, 2.0, 5.0, 8.0):
            assert chances[ends >= excess].sum() <= azuma_tail(excess, steps.tolist())
    assert azuma_tail(3.0, [1.0, 2.0]) == pytest.approx(math.exp(-0.9))


def test_errors() -> None:
    for call in (
        lambda: recursion_steps(1.0, 1.0, 2.0, 1.0, 0.1),
        lambda: recursion_steps(1.0, 1.0, 0.5, 0.1, 1.0),
        lambda: recursion_steps(5.0, 1.0, 0.0, 1.0, 0.1),
        lambda: azuma_tail(1.0, []),
        lambda: azuma_tail(-1.0, [1.0]),
    ):
        with pytest.raises(InvalidInput):
            call()
