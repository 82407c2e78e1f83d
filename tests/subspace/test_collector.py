from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from unweave.subspace.collector import distinct_directions

NONE = np.zeros((0, 3))


def test_every_line_is_named_once_in_order_whatever_the_sign() -> None:
    e = np.eye(3)
    candidates = np.stack([e[1], -e[1], e[0], e[1], -e[0], e[2]])
    assert_array_equal(distinct_directions(candidates, NONE, 1e-3), [0, 2, 5])


def test_known_lines_are_left_out() -> None:
    e = np.eye(3)
    assert_array_equal(distinct_directions(np.stack([e[0], e[1]]), -e[:1], 1e-3), [1])


def test_the_angle_decides() -> None:
    turned = np.array([np.cos(1e-2), np.sin(1e-2), 0.0])
    candidates = np.stack([np.eye(3)[0], turned])
    assert_array_equal(distinct_directions(candidates, NONE, 0.9e-2), [0, 1])
    assert_array_equal(distinct_directions(candidates, NONE, 1.1e-2), [0])


def test_no_candidates_give_no_indices() -> None:
    assert len(distinct_directions(NONE, np.eye(3), 1e-3)) == 0
