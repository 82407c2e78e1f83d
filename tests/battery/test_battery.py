"""Nothing that is called recovered is wrong: a sample of the battery, and by family all of it."""

from __future__ import annotations

import numpy as np
import pytest

from battery.attempt import attempt
from battery.catalogue import COUNT, FAMILIES, family_of, make
from battery.table import describe, is_bad

DEADLINE = 30.0
"""Seconds per case."""
SHORT = 4.0
"""Seconds per case of the sample that need not be recovered: what is given up in time is not wrong either."""
SAMPLE = (
    *(3, 4, 5, 7, 9, 10, 16, 18, 20, 21, 27, 29, 31, 33, 34, 37, 38, 41, 45, 48),
    *(51, 60, 63, 64, 67, 69, 78, 79, 82, 87, 88, 89, 90, 91, 92, 95, 96, 97, 106, 107),
    *(108, 109, 110, 113, 117, 119, 120, 122, 124, 127, 128, 133, 136, 137, 149, 152, 160, 165, 167, 168),
    *(170, 173, 177, 180, 181, 188, 194, 195, 196, 199, 201, 203, 205, 210, 211, 213, 215, 223, 224, 234),
    *(237, 244, 245, 247, 248, 249, 256, 259, 263, 272, 281, 282, 287, 288, 300, 303, 309, 312, 317, 320),
)
"""Two or three cases of every family, the quickest of the first seven: first those that once were wrong."""


@pytest.mark.parametrize("index", SAMPLE, ids=lambda index: f"{family_of(index)}-{index}")
def test_sample(index: int) -> None:
    outcome = attempt(index, DEADLINE if make(index).must_recover else SHORT)
    assert outcome["verdict"] in ("ok", "thin", "far"), describe(outcome)


ONCE_BAD = (
    493,  # float32 answers of which a fit of differences had used half the digits
    1112,  # one kink in the first layer of a search for several: it had no next one
    1334,  # two softplus units that rounded samples hardly tell from one
    1673,  # a skip that only the error of a direction in float32 had left: wrong far out
)
"""Cases that failed once."""


@pytest.mark.parametrize("index", ONCE_BAD, ids=lambda index: f"{family_of(index)}-{index}")
def test_what_failed_once(index: int) -> None:
    outcome = attempt(index, DEADLINE)
    assert not is_bad(outcome)
    assert outcome["verdict"] != "far"


def test_sample_has_every_family() -> None:
    assert len(set(SAMPLE)) == 100
    assert {family_of(index) for index in SAMPLE} == set(FAMILIES)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    indices = [index for index in range(COUNT) if family_of(index) == family]
    bad = [outcome for outcome in (attempt(index, DEADLINE) for index in indices) if is_bad(outcome)]
    assert not bad, "\n".join(map(describe, bad))


@pytest.mark.parametrize("family", FAMILIES)
def test_cases_repeat(family: str) -> None:
    index = list(FAMILIES).index(family)
    one, other = make(index), make(index)
    x = one.region.centre + 0.1 * one.region.scale
    np.testing.assert_array_equal(one.truth(x[None]), other.truth(x[None]))
