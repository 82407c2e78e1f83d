from __future__ import annotations

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.exact import Absolute, reliable_losses


def test_by_hand_and_by_loop() -> None:
    rng = np.random.default_rng(1000)
    y = np.round(rng.uniform(0, 1, 200), 1)
    f = np.maximum(rng.normal(0.3, 0.5, 200), 0)
    found = reliable_losses(f, y, Absolute())
    alarms = sum(1 for a, b in zip(f, y, strict=True) if a != 0 and b == 0) / 200
    missed = sum(abs(a - b) for a, b in zip(f, y, strict=True) if b > 0) / 200
    assert found.false_alarms == pytest.approx(alarms)
    assert found.positive == pytest.approx(missed)
    assert alarms > 0
    silent = reliable_losses(np.zeros(200), y, Absolute())
    assert silent.false_alarms == 0
    assert silent.positive == pytest.approx(y.mean())


def test_rounding_is_no_alarm_where_it_is_allowed() -> None:
    assert reliable_losses([1e-17], [0.0]).false_alarms == 1
    assert reliable_losses([1e-17], [0.0], tolerance=1e-12).false_alarms == 0


def test_errors() -> None:
    for f, y in (([1.0], [2.0]), ([1.0, 2.0], [1.0]), ([], [])):
        with pytest.raises(InvalidInput):
            reliable_losses(f, y)
