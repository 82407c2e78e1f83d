"""Tables of samples: inputs and answers in .csv, .npy and .npz files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.files.archives import read_array, read_arrays

TABLE_ENDINGS = (".csv", ".npy", ".npz")
_MOST_COLUMNS = 2**18  # of a .csv: a longer line is no row of a table, and slow to cut
_MISSING = ("", "na", "nan", "null", "none")


def read_table(text: str, outputs: int | None) -> tuple[Array, Array]:
    """Return inputs (n, d) and answers (n,) or (n, K) from the file or files that ``text`` names.

    - ``table.csv`` or ``table.npy``: one row per sample, inputs first, then ``outputs`` answers (None for
      one). A first line of a .csv that is not numbers holds the names of the columns; a missing entry
      is NaN.
    - ``table.npz``: arrays ``x`` (n, d) and ``y`` (n,) or (n, K).
    - ``x.npy,y.npy``: two files of either of the first two kinds, inputs and answers.
    """
    pair = text.split(",")
    if len(pair) == 2 and not Path(text).exists() and all(pair):
        x, y = (_read_matrix(_checked_path(part)) for part in pair)
        return x, _with_outputs(y, outputs, text)
    path = _checked_path(text)
    if path.suffix.lower() == ".npz":
        x, y = _read_archive(path)
        return x, _with_outputs(y, outputs, text)
    rows = _read_matrix(path)
    answers = 1 if outputs is None else outputs
    if rows.ndim != 2 or rows.shape[1] <= answers:
        raise InvalidInput(
            f"--table must have the inputs and then the {answers} answers in its columns. Got "
            f"{str(path)!r} of shape {rows.shape} instead. Say with --outputs how many of the last columns "
            "are answers."
        )
    return rows[:, :-answers], rows[:, -answers:]


def _with_outputs(y: Array, outputs: int | None, text: str) -> Array:
    """Return ``y``; refuse another number of columns than ``outputs``, if that is given."""
    found = 1 if y.ndim < 2 else y.shape[-1]
    if outputs is not None and found != outputs:
        raise InvalidInput(
            f"--outputs must be {found}, the number of answers per row in {text!r}. Got {outputs} instead. "
            "Leave it out."
        )
    return y


def _checked_path(text: str) -> Path:
    path = Path(text.strip())
    if path.suffix.lower() not in TABLE_ENDINGS:
        raise InvalidInput(
            f"--table must be a file that ends in {', '.join(TABLE_ENDINGS)}. Got {text!r} instead."
        )
    if not path.is_file():
        raise InvalidInput(f"--table must be an existing file. Got {text!r} instead. Check the spelling.")
    return path


def _read_matrix(path: Path) -> Array:
    """Return the numbers of a .csv or .npy file."""
    if path.suffix.lower() == ".npz":
        raise InvalidInput(
            f"--table must be one .npz file, or two files .npy or .csv. Got {str(path)!r} in a pair instead."
        )
    try:
        content = _read_csv(path) if path.suffix.lower() == ".csv" else read_array(path)
        return np.asarray(content, dtype=np.float64)
    except (OSError, ValueError, TypeError) as error:
        raise _not_a_table(path, str(error)) from error


def _read_archive(path: Path) -> tuple[Array, Array]:
    """Return x and y of an .npz file."""
    try:
        content = read_arrays(path, ("x", "y"))
        return np.asarray(content["x"], dtype=np.float64), np.asarray(content["y"], dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise _not_a_table(path, str(error)) from error


def _read_csv(path: Path) -> Array:
    """Read numbers with commas between, missing ones as NaN."""
    lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    widths = [line.count(",") + 1 for line in lines]
    if max(widths, default=0) > _MOST_COLUMNS:
        raise ValueError(f"a line has more than {_MOST_COLUMNS} columns")
    if lines and not any(_is_number(cell) for cell in lines[0].split(",")):
        lines, widths = lines[1:], widths[1:]  # the names of the columns
    if not lines:
        raise ValueError("there are no rows")
    if len(set(widths)) > 1:
        raise ValueError(f"its rows have between {min(widths)} and {max(widths)} columns")
    try:
        return np.loadtxt(lines, delimiter=",", ndmin=2, dtype=np.float64, comments=None)
    except ValueError:  # missing entries, or no numbers: cell by cell, which is slower
        return np.array([[_number(cell.strip()) for cell in line.split(",")] for line in lines])


def _number(cell: str) -> float:
    return np.nan if cell.lower() in _MISSING else float(cell)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _not_a_table(path: Path, reason: str) -> InvalidInput:
    return InvalidInput(
        f"--table must hold one row of numbers per sample. Got {str(path)!r} instead, which cannot be read "
        f"as such ({reason}). Encode categories as numbers first."
    )
