"""Rules of agreement: what passes, what does not, and that the difference is a plain bool."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unweave.experiments import agree
from unweave.experiments.experiment import at_least, at_most, close, equal, printed, shown, vanishes

RIGHT = (
    equal("n", 3, np.int64(3)),
    printed("rho", "0.091", np.float64(0.09085)),
    printed("rho", "1.8e-4", 1.85e-4),
    close("rate", 2.0, np.float64(2.001), 1e-3),
    at_most("error", 0.1, np.float64(0.1)),
    at_least("risk", 2.0, 2.0),
    vanishes("difference", -1e-15, 1e-14),
)
WRONG = (
    equal("n", 3, np.int64(4)),
    equal("certified", True, False),
    printed("rho", "0.091", np.float64(0.0925)),
    printed("rho", "1.8e-4", 1.95e-4),
    printed("count", "12", 14.0),
    close("rate", 2.0, np.float64(2.01), 1e-3),
    close("rate", 2.0, math.nan, 1e-3),
    at_most("error", 0.1, np.float64(0.11)),
    at_most("error", 0.1, math.nan),
    at_most("error", 0.1, math.inf, published="1e-1 to 1e-4"),
    at_least("risk", 2.0, 1.9),
    at_least("risk", 2.0, math.nan),
    vanishes("difference", 1e-13, 1e-14),
    vanishes("difference", math.nan, 1e-14),
)


@pytest.mark.parametrize("figure", RIGHT)
def test_right(figure):
    assert figure.agrees is True
    assert figure.rule


@pytest.mark.parametrize("figure", WRONG)
def test_wrong(figure):
    assert figure.agrees is False
    assert not agree([*RIGHT, figure])


def test_seconds_decide_nothing():
    figure = shown("seconds", "7.63 on a GPU", 1e9)
    assert figure.agrees is None
    assert agree([figure])
