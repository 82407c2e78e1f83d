"""Widths, domain and examples as they are typed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unweave import InvalidInput
from unweave.cli.arguments import parse_domain, parse_hidden, parse_verify, read_rows

ROWS = np.array([[1.0, 2.5], [3.0, -4.0], [0.1, 1e-3]])


@pytest.mark.parametrize(("text", "widths"), [(None, None), ("", []), ("30", [30]), ("30, 20", [30, 20])])
def test_hidden(text, widths):
    assert parse_hidden(text) == widths


@pytest.mark.parametrize("text", ["x", "3.5", "3,", "-1", "4,0"])
def test_hidden_refused(text):
    with pytest.raises(InvalidInput, match="--hidden must be"):
        parse_hidden(text)


def test_domain():
    assert parse_domain(None) is None
    assert parse_domain("-1,2.5") == (-1.0, 2.5)


@pytest.mark.parametrize("text", ["", "1", "1,2,3", "2,1", "1,1", "a,b", "nan,1", "0,inf"])
def test_domain_refused(text):
    with pytest.raises(InvalidInput, match="--domain must be"):
        parse_domain(text)


def test_examples_of_every_kind(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    np.savez(tmp_path / "one.npz", anything=ROWS)
    np.savez(tmp_path / "named.npz", x=ROWS, y=np.zeros(3))
    np.savetxt(tmp_path / "plain.csv", ROWS, delimiter=",")
    np.savetxt(tmp_path / "titled.csv", ROWS, delimiter=",", header="height,weight", comments="")
    for path in sorted(tmp_path.iterdir()):
        np.testing.assert_allclose(read_rows(path, "--examples"), ROWS, rtol=1e-15)
    assert read_rows(None, "--examples") is None


def test_examples_refused(tmp_path):
    np.savez(tmp_path / "two.npz", a=ROWS, b=ROWS)
    (tmp_path / "empty.csv").write_text("a,b\n", encoding="utf-8")
    (tmp_path / "ragged.csv").write_text("1,2\n3\n", encoding="utf-8")
    (tmp_path / "words.csv").write_text("1,2\nred,3\n", encoding="utf-8")
    (tmp_path / "broken.npy").write_bytes(b"not an array")
    (tmp_path / "broken.npz").write_bytes(b"PK not an archive")
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    (tmp_path / "rows.txt").write_text("1 2\n", encoding="utf-8")
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(InvalidInput, match="--examples must"):
            read_rows(path, "--examples")
    with pytest.raises(InvalidInput, match="existing file"):
        read_rows(Path(tmp_path / "none.npy"), "--examples")


def test_verify_is_a_number_or_a_file(tmp_path):
    assert parse_verify(None) is None
    assert parse_verify("10000") == 10_000
    np.save(tmp_path / "rows.npy", ROWS)
    np.testing.assert_array_equal(parse_verify(str(tmp_path / "rows.npy")), ROWS)
    with pytest.raises(InvalidInput, match="--verify must be a file that ends in"):
        parse_verify("many")
