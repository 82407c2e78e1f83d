"""One checker for hidden widths."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.search.request import checked_widths, widths_from_text


@pytest.mark.parametrize(
    ("hidden", "widths"),
    [(None, None), ([], ()), ([30, 20], (30, 20)), (np.array([5.0, 4.0]), (5, 4)), ((7,), (7,)), (30, (30,))],
)
def test_widths_become_a_tuple(hidden, widths):
    assert checked_widths(hidden) == widths


@pytest.mark.parametrize("hidden", [[0], [3, -1], [2.5], [True], [float("inf")], 0, "30", ["x"], [None]])
def test_anything_else_is_refused(hidden):
    with pytest.raises(InvalidInput, match="hidden must"):
        checked_widths(hidden)


def test_widths_are_read_from_text():
    assert widths_from_text("30, 20") == (30, 20)
    for text in ("", "4,x", "0", "3,", "2.5"):
        with pytest.raises(InvalidInput, match="hidden must"):
            widths_from_text(text)
