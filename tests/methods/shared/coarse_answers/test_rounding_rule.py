"""The signs of zeros tell which way answers were rounded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import unweave
from unweave import Status
from unweave.arrays import Array

DIGIT = 1e-3
NETWORK = unweave.random_network([4, 3, 1], seed=1000, outer="signed")
RULES: dict[str, Callable[[Array], Array]] = {
    "nearest": np.round,
    "up": np.ceil,
    "down": np.floor,
    "half up": lambda y: np.floor(y + 0.5),
}


def answers(rule: str, offset: float = 0.0) -> Callable[[Array], Array]:
    return lambda x: RULES[rule]((NETWORK(x) + offset) / DIGIT) * DIGIT


def recovered(rule: str, offset: float = 0.0) -> unweave.Recovery:
    result = unweave.recover(answers(rule, offset), input_dim=4, activation="tanh")
    assert result.status is Status.RECOVERED, result.message
    return result


@pytest.mark.parametrize(("rule", "off"), [("nearest", 0), ("up", 0), ("down", 0.5)])
def test_output_biases_are_right_or_said_to_be_open(rule: str, off: float) -> None:
    result = recovered(rule)
    error = abs(float(result.network.biases[-1][0] - NETWORK.biases[-1][0]))
    assert error == pytest.approx(off * DIGIT, abs=1e-6 * DIGIT)
    bar = float(result.standard_errors.biases[-1][0])
    assert error <= 1.01 * bar + 1e-12
    said = " ".join(result.notes)
    assert ("ceil" in said) == (rule != "nearest")
    assert ("floor" in said) == (rule == "down")


def test_answers_far_from_zero_leave_the_rule_open() -> None:
    result = recovered("nearest", offset=50.0)
    assert "floor" in " ".join(result.notes)
    assert result.standard_errors.biases[-1][0] == pytest.approx(DIGIT / 2)
