"""Options of the command line that are more than a number: widths, domain, examples, files, keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.files.archives import UnreadableArray, read_array, read_arrays
from unweave.search.request import interval_from_text, widths_from_text

EXAMPLE_ENDINGS = (".npy", ".npz", ".csv")
PAGE_ENDINGS = (".html", ".htm")


def parse_hidden(text: str | None) -> list[int] | None:
    """Return the widths in ``text``: ``"30"`` or ``"30,20"``; ``""`` is no hidden layer, None is unknown."""
    if text is None or not text.strip():
        return None if text is None else []
    try:
        return list(widths_from_text(text))
    except InvalidInput as error:
        raise InvalidInput(
            f"--hidden must be whole numbers >= 1 with commas between. Got {text!r} instead. "
            'For example 30, or "" for a network without hidden layer.'
        ) from error


def parse_domain(text: str | None) -> tuple[float, float] | None:
    """Return (low, high) of ``"LOW,HIGH"``, None for None."""
    if text is None:
        return None
    try:
        return interval_from_text(text)
    except InvalidInput as error:
        raise InvalidInput(
            f"--domain must be LOW,HIGH, two numbers, the smaller one first. Got {text!r} instead. "
            "For example --domain=-1,1."
        ) from error


def parse_verify(text: str | None) -> int | Array | None:
    """Return a number of rows, or the rows in a file."""
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    return read_rows(Path(text), "--verify")


def read_rows(path: Path | None, option: str) -> Array | None:
    """Return the inputs (n, D) in a .npy, .npz (one array, or the one named x) or .csv file."""
    if path is None:
        return None
    if path.suffix.lower() not in EXAMPLE_ENDINGS:
        raise InvalidInput(
            f"{option} must be a file that ends in {', '.join(EXAMPLE_ENDINGS)}. Got {str(path)!r} instead."
        )
    if not path.is_file():
        raise InvalidInput(
            f"{option} must be an existing file. Got {str(path)!r} instead. Check the spelling."
        )
    try:
        rows = _read_csv(path) if path.suffix.lower() == ".csv" else _read_array(path, option)
        return np.asarray(rows, dtype=np.float64)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(
            f"{option} must hold one row of numbers per input. Got {str(path)!r} instead, which cannot be "
            f"read as such ({error})."
        ) from error


def _read_csv(path: Path) -> Array:
    """Read numbers with commas between; a first line that is not numbers holds the names of the columns."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if lines and not _is_numbers(lines[0]):
        lines = lines[1:]
    if not lines:
        raise ValueError("there are no rows")
    return np.loadtxt(lines, delimiter=",", ndmin=2, dtype=np.float64)


def _is_numbers(line: str) -> bool:
    try:
        [float(part) for part in line.split(",")]
    except ValueError:
        return False
    return True


def _read_array(path: Path, option: str) -> Array:
    if path.suffix.lower() == ".npy":
        return read_array(path)
    content = read_arrays(path)
    name = next(iter(content)) if len(content) == 1 else "x"
    if name not in content:
        raise UnreadableArray(f"it must hold one array or one named x, it has {', '.join(content) or 'none'}")
    return content[name]


def check_outputs(target: str, files: Mapping[str, tuple[Path | None, tuple[str, ...]]]) -> None:
    """Refuse, before anything is asked, files that could not be written afterwards.

    ``files`` maps an option to the path given (None if none was) and the endings it may have.
    """
    written: dict[Path, str] = {}
    for option, (path, endings) in files.items():
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise InvalidInput(f"{option} must end in {' or '.join(endings)}. Got {str(path)!r} instead.")
        folder = path.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK) or path.is_dir():
            raise InvalidInput(
                f"{option} must be a file in a folder that exists and may be written to. "
                f"Got {str(path)!r} instead."
            )
        if Path(target).is_file() and path.resolve() == Path(target).resolve():
            raise InvalidInput(f"{option} must not be the target itself. Got {str(path)!r} instead.")
        other = written.setdefault(path.resolve(), option)
        if other != option:
            raise InvalidInput(f"{other} and {option} must be two files. Got {str(path)!r} for both instead.")


def key_from_environment(name: str | None) -> str | None:
    """Return the key in the environment variable ``name``; None if no name is given."""
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise InvalidInput(
            f"--token-env must name an environment variable that holds the key. Got {name}, which is not set "
            "or empty, instead."
        )
    return key
