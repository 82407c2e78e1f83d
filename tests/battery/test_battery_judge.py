"""The battery's own judge says wrong, thin or structure where that is so, and nothing where it is not."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from battery.case import Array, Asked, Case, Function, box, ordinary
from battery.judge import judge
from battery.plain import plant

RIGHT = plant(np.random.default_rng(0), (3, 2, 1), "tanh")
CASE = Case(RIGHT, ordinary(3), hidden=(2,), kind="tanh", must_recover=True)


class Claim:
    """A network that is called recovered."""

    def __init__(self, function: Function, hidden: tuple[int, ...] = (2,), kind: str = "tanh") -> None:
        self._function, self.hidden, self.activations = function, hidden, (kind, "identity")

    def __call__(self, x: Array) -> Array:
        return self._function(x)


def verdict(case: Case, claim: Claim, rows: Array, status: str = "RECOVERED") -> str:
    asked = Asked(case.answer or case.truth)
    asked(rows)
    named: Any = SimpleNamespace(name=status, is_recovered=status.startswith("RECOVERED"))
    result = SimpleNamespace(
        status=named, network=claim, certificate=(), verification_queries=100, message="", notes=()
    )
    return judge(case, result, asked).word


def bump(width: float) -> Function:
    """The truth and a bump at one corner of the unit cube."""
    return lambda x: RIGHT(x) + np.exp(-((x - 1) ** 2).sum(axis=1, keepdims=True) / (2 * width**2))


NEAR = np.random.default_rng(1).standard_normal((500, 3))


def test_right_network_is_ok() -> None:
    assert verdict(CASE, Claim(lambda x: RIGHT(x) * (1 + 1e-9)), NEAR) == "ok"


def test_target_not_recovered_is_missed() -> None:
    assert verdict(CASE, Claim(RIGHT), NEAR, "APPROXIMATE") == "missed"


@pytest.mark.parametrize(
    ("rows", "word"), [(NEAR, "thin"), (np.ones((1, 3)), "wrong"), (np.full((1, 3), 300.0), "thin")]
)
def test_bump_is_thin_unless_it_was_asked(rows: Array, word: str) -> None:
    case = replace(CASE, truth=bump(0.02), witness=np.ones((1, 3)))
    assert verdict(case, Claim(RIGHT), rows) == word


def test_error_on_a_share_of_the_region_is_wrong() -> None:
    assert verdict(replace(CASE, truth=bump(0.5)), Claim(RIGHT), NEAR[:1]) == "wrong"


def test_error_far_out_is_counted_apart() -> None:
    claim = Claim(lambda x: RIGHT(x) + 0.1 * (x[:, :1] > 200))
    assert verdict(CASE, claim, np.full((1, 3), 300.0)) == "far"


def test_error_at_a_corner_of_a_declared_box_is_wrong() -> None:
    case = replace(CASE, truth=bump(0.02), region=box(-np.ones(3), np.ones(3)))
    assert verdict(case, Claim(RIGHT), 0.5 * NEAR.clip(-1, 1)) == "wrong"


def test_error_on_an_example_is_wrong() -> None:
    case = replace(CASE, truth=bump(0.02), arguments={"examples": np.ones((1, 3))})
    assert verdict(case, Claim(RIGHT), NEAR) == "wrong"


def test_missing_unit_or_other_kind_is_a_matter_of_structure() -> None:
    assert verdict(CASE, Claim(RIGHT, hidden=(1,)), NEAR) == "structure"
    assert verdict(CASE, Claim(RIGHT, kind="erf"), NEAR) == "structure"
    assert verdict(CASE, Claim(RIGHT, kind="sigmoid"), NEAR) == "ok"
    assert verdict(replace(CASE, foreign=True), Claim(RIGHT), NEAR) == "structure"


def test_floor_that_is_not_named_is_a_matter_of_structure() -> None:
    case = replace(CASE, absolute=0.01, digit=0.01, rule="floor")
    assert verdict(case, Claim(lambda x: RIGHT(x) - 0.005), NEAR) == "structure"
    assert verdict(case, Claim(RIGHT), NEAR) == "ok"


def test_target_that_answers_otherwise_later_is_wrong() -> None:
    calls = []

    def answer(x: Array) -> Array:
        calls.append(len(x))
        return RIGHT(x) + 0.01 * (len(calls) > 1)

    assert verdict(replace(CASE, answer=answer, changes=True), Claim(RIGHT), NEAR) == "wrong"
    assert verdict(replace(CASE, changes=True), Claim(RIGHT), NEAR) == "ok"


def test_noise_hides_no_error_in_the_mean() -> None:
    case = replace(CASE, absolute=0.01)
    assert verdict(case, Claim(lambda x: RIGHT(x) + 0.005), NEAR) == "ok"
    assert verdict(case, Claim(lambda x: RIGHT(x) + 0.05), NEAR) == "wrong"
