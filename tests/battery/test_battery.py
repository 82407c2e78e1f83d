"""Nothing that is called recovered is wrong: a sample of the battery, and by family all of it."""

from __future__ import annotations

import pytest

from battery.attempt import attempt
from battery.catalogue import COUNT, FAMILIES, family_of, make
from battery.table import describe, is_bad

DEADLINE = 30.0
"""Seconds per case."""


SAMPLE = tuple(range(100))


@pytest.mark.parametrize("index", SAMPLE, ids=lambda index: f"{family_of(index)}-{index}")
def test_sample(index: int) -> None:
    outcome = attempt(index, DEADLINE)
    assert not is_bad(outcome), describe(outcome)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    indices = [index for index in range(COUNT) if family_of(index) == family]
    bad = [outcome for outcome in (attempt(index, DEADLINE) for index in indices) if is_bad(outcome)]
    assert not bad, "\n".join(map(describe, bad))


def test_cases_repeat() -> None:
    for index in range(len(FAMILIES)):
        one, other = make(index), make(index)
        x = one.region.centre + 0.1 * one.region.scale
        assert (one.truth(x[None]) == other.truth(x[None])).all()
