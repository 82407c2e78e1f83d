from __future__ import annotations

import numpy as np
import pytest

from unweave.methods.smooth.span_members import MemberOptions, width_shown
from unweave.subspace.hessian_span import hessian_span


def test_a_width_that_was_given_only_has_to_be_clear() -> None:
    rng = np.random.default_rng(1004)
    left, right = (np.linalg.qr(rng.standard_normal((n, 10)))[0] for n in (20, 10))
    values = np.array([100.0, 90.0, 1.0, 0.9, *6 * [1e-6]])
    span = hessian_span((left * values) @ right.T)
    assert width_shown(span, None)[0] == 4
    assert width_shown(span, 2) == (2, pytest.approx(90.0))
    assert width_shown(span, 3)[0] == 4  # no gap there


def test_directions_are_accepted_by_the_error_of_the_span() -> None:
    thresholds = [MemberOptions().threshold(gap) for gap in (10.0, 1e3, 1e5, 1e12)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] == pytest.approx(0.1)
    assert thresholds[1] == pytest.approx(1e-5)
    assert thresholds[2] > 0
