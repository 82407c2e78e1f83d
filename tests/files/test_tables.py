"""Tables of samples: what is read, and what ends at once."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.files.tables import read_table


def test_numbers_titles_and_missing_entries(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a, b,y\n1, 2.5,3\n , nan, -1e-3\n")
    x, y = read_table(str(path), None)
    np.testing.assert_array_equal(x, [[1, 2.5], [np.nan, np.nan]])
    np.testing.assert_array_equal(y, [[3], [-1e-3]])


@pytest.mark.parametrize("cell", [",", "a,", "1,"])
def test_a_line_that_is_no_row_is_refused_before_it_is_cut(cell, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(cell * 300_000)
    with pytest.raises(InvalidInput, match="more than 262144 columns"):
        read_table(str(path), None)


def test_a_wide_row_is_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",".join(["0.5"] * 100_001) + "\n" + ",".join(["1"] * 100_001))
    assert read_table(str(path), None)[0].shape == (2, 100_000)
