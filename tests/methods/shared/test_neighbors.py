"""Whether what a fit leaves is alike at neighboring inputs."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.methods.shared.neighbors import likeness


def test_structure_is_alike_and_noise_is_not():
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((600, 2))
    assert likeness(x, np.tanh(x[:, :1] + x[:, 1:]), 600) > 0.9
    assert abs(likeness(x, rng.standard_normal((600, 1)), 600)) < 0.2


def test_a_constant_and_a_single_row_have_no_likeness():
    x = np.random.default_rng(1001).standard_normal((20, 3))
    assert likeness(x, np.ones((20, 1)), 20) == 0
    assert likeness(x[:1], np.ones((1, 1)), 20) == 0


def test_few_rows_may_be_compared():
    rng = np.random.default_rng(1002)
    x, left = rng.standard_normal((300, 2)), rng.standard_normal((300, 1))
    assert likeness(x, left, 50) == pytest.approx(likeness(x[:50], left[:50], 50))
