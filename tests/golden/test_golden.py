"""Every fixed recovery ends as recorded: same verdict, cost, message and parameters."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from golden.cases import cases, outcome
from golden.record import RECORD, architecture

RECORDED = json.loads(RECORD.read_text())
SAME_PARAMETERS = 1e-9
"""Difference of a projection of the parameters, relative to their number and size, that is rounding."""
ANOTHER_KERNEL = 0.05
"""Relative difference of counts on a machine whose BLAS rounds otherwise."""
SAME_ANSWERS = 1e-3
"""Difference of answers there, relative to the largest: units come in another order, noise stays."""

CASES = cases()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if case.slow else ()) for name, case in CASES.items()]
)
def test_same_as_recorded(name: str) -> None:
    found, expected = outcome(CASES[name].run()), RECORDED["cases"][name]
    differences = list(_differences(found, expected, name))
    assert not differences, "\n".join(differences)


def test_every_case_is_recorded() -> None:
    assert set(RECORDED["cases"]) == set(CASES)


def _differences(found: Any, expected: Any, where: str) -> Any:
    if isinstance(expected, dict) and "digest" in expected and isinstance(found, dict) and "digest" in found:
        if found["digest"] == expected["digest"]:
            return
        rest = {key: found[key] for key in ("hidden", "activations")}
        yield from _differences(rest, {key: expected[key] for key in rest}, where)
        if architecture() != RECORDED["architecture"]:
            off = np.abs(np.subtract(found["answers"], expected["answers"])).max()
            if off > SAME_ANSWERS * max(np.abs(expected["answers"]).max(), 1.0):
                yield f"{where}: answers moved by {off:.1e} on another machine"
            return
        scale = max(expected["size"], 1.0) * SAME_PARAMETERS * np.sqrt(max(len(expected["fingerprint"]), 1))
        off = np.abs(np.subtract(found["fingerprint"], expected["fingerprint"])).max()
        if off > scale:
            yield f"{where}: parameters moved by {off:.1e} where rounding moves them by {scale:.1e}"
    elif isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            yield from _differences(found.get(key), expected.get(key), f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from _differences(one, other, f"{where}[{place}]")
    elif found != expected and not _rounds_otherwise(found, expected):
        yield f"{where}: {found!r} instead of {expected!r}"


def _rounds_otherwise(found: Any, expected: Any) -> bool:
    """Whether numbers differ by no more than another kernel explains."""
    if architecture() == RECORDED["architecture"]:
        return False
    if not isinstance(found, int | float) or not isinstance(expected, int | float):
        return False
    return abs(found - expected) <= ANOTHER_KERNEL * abs(expected)
