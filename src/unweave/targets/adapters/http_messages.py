"""Rows into the body of a request, answers out of the body of a response; both JSON.

Numbers are written with the fewest digits that read back as the same float64 (at most 17), and read to the
nearest float64: nothing is lost on the way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from unweave.arrays import Array
from unweave.targets.adapters.http_options import FLAT, N_INPUTS, N_ROWS, ROW, ROWS

_SHOWN_CHARACTERS = 80  # of an unreadable response in a message


class UnreadableAnswer(Exception):
    """A response that holds no answers: what was required, what came, what to do."""


def request_body(template: Any, rows: Array) -> bytes:
    """Fill the rows (n, D) into the template (JSON structure) and return the body of the request.

    >>> request_body({"instances": "$rows"}, np.array([[0.1, 2.0]]))
    b'{"instances":[[0.1,2.0]]}'
    """
    values: dict[str, Callable[[], Any]] = {
        ROWS: rows.tolist,
        ROW: lambda: rows[0].tolist(),
        FLAT: lambda: rows.ravel().tolist(),
        N_ROWS: lambda: rows.shape[0],
        N_INPUTS: lambda: rows.shape[1],
    }

    def filled(part: Any) -> Any:
        if isinstance(part, str):
            return values[part]() if part in values else part
        if isinstance(part, dict):
            return {name: filled(value) for name, value in part.items()}
        return [filled(value) for value in part] if isinstance(part, list) else part

    return json.dumps(filled(template), allow_nan=False, separators=(",", ":")).encode()


def read_answers(
    body: bytes, path: str, n_rows: int, n_outputs: int | None = None, one_row: bool = False
) -> Array:
    """Return the answers (n_rows, m) float64 at ``path`` in the JSON ``body``.

    NaN, Infinity, numbers beyond float64 and null (what JSON offers for NaN) come back as non-finite
    numbers: the ledger refuses those rows and keeps the others. Everything else that is not one answer of
    ``n_outputs`` numbers (None: any) per row raises `UnreadableAnswer`.

    >>> read_answers(b'{"data": [{"y": 0.5}, {"y": 1}]}', "data.*.y", 2)
    array([[0.5],
           [1. ]])
    """
    found = follow(parse_json(body), path)
    table = _as_table(_as_numbers(found), n_rows, n_outputs, one_row)
    if n_outputs is not None and table.shape[1] != n_outputs:
        _wrong_shape(f"{n_outputs} numbers per answer", f"{table.shape[1]}")
    return table


def parse_json(body: bytes) -> Any:
    """Read ``body`` as JSON; tell HTML, text that ends too early, and other text apart."""
    if not body.strip():
        raise UnreadableAnswer("must answer with JSON. Got an empty response instead.")
    if body.lstrip()[:1] == b"<":
        raise UnreadableAnswer(
            f"must answer with JSON. Got HTML instead, which begins {excerpt(body)}. Check the URL: this "
            "looks like a page for people (a login, an error page, a proxy)."
        )
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        if _ends_early(error):
            raise UnreadableAnswer(
                f"must answer with complete JSON. Got JSON that ends after {len(body)} bytes in the middle "
                f"instead; it begins {excerpt(body)}."
            ) from error
        raise UnreadableAnswer(
            f"must answer with JSON. Got text that is none instead ({error.msg} at character {error.pos}); "
            f"it begins {excerpt(body)}."
        ) from error
    except (ValueError, RecursionError) as error:  # bytes that are no UTF-8, ten thousand brackets
        raise UnreadableAnswer(
            f"must answer with JSON. Got bytes that cannot be read instead; they begin {excerpt(body)}."
        ) from error


def _ends_early(error: json.JSONDecodeError) -> bool:
    """Whether the text is JSON up to its last word, which may be half a number or half a name."""
    rest = error.doc[error.pos :]
    return error.pos > 0 and (error.msg.startswith("Unterminated") or not set(rest) & set(",]}"))


def follow(value: Any, path: str) -> Any:
    """Return what is at the dotted ``path`` in a JSON value; ``*`` maps the rest over a list."""
    return _follow(value, path.split(".") if path else [], "")


def _follow(value: Any, steps: list[str], seen: str) -> Any:
    for number, step in enumerate(steps):
        here = f"at {seen!r}" if seen else "at the top"
        if step == "*":
            if not isinstance(value, list):
                _missing(f"a list {here}", _kind(value))
            return [_follow(entry, steps[number + 1 :], f"{seen}.*".lstrip(".")) for entry in value]
        if isinstance(value, dict):
            if step not in value:
                _missing(f"{step!r} {here}", f"only {_names(value)}")
            value = value[step]
        elif isinstance(value, list):
            if not step.isdecimal() or int(step) >= len(value):
                _missing(f"entry {step!r} {here}", f"a list of {len(value)}")
            value = value[int(step)]
        else:
            _missing(f"{step!r} {here}", _kind(value))
        seen = f"{seen}.{step}".lstrip(".")
    return value


def excerpt(body: bytes) -> str:
    """Return the first 80 characters of ``body`` on one line, in quotes."""
    text = " ".join(body[: 8 * _SHOWN_CHARACTERS].decode("utf-8", errors="replace").split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:_SHOWN_CHARACTERS])
    return f"'{shown}'"


def _as_numbers(found: Any) -> Array:
    """Return nested lists of JSON numbers as an array; null becomes NaN."""
    try:
        raw = np.array(found)
    except ValueError:
        _wrong_shape("lists of equal length", "lists of different lengths")
    if raw.dtype.kind in "iuf":
        return raw.astype(np.float64)
    if raw.dtype.kind == "O":  # null, or whole numbers beyond 64 bits
        entries = raw.ravel().tolist()
        if all(isinstance(entry, int | float | None) and not isinstance(entry, bool) for entry in entries):
            return np.array([_as_float(entry) for entry in entries]).reshape(raw.shape)
    raise UnreadableAnswer(
        f"must answer with numbers. Got {_first_other(found)} instead. Name the place of the numbers "
        "in the response (answers)."
    )


def _as_float(entry: float | None) -> float:
    try:
        return np.nan if entry is None else float(entry)
    except OverflowError:
        return np.inf


def _first_other(found: Any) -> str:
    """Describe the first entry that is no number."""
    if not isinstance(found, list):
        return _kind(found)
    others = (entry for entry in found if isinstance(entry, list | dict | str | bool))
    return next(map(_first_other, others), "a list" if found else "an empty list")


def _as_table(numbers: Array, n_rows: int, n_outputs: int | None, one_row: bool) -> Array:
    """Return one answer per row: (n,), (n, m); for a request of one row also a number or (m,)."""
    if one_row and numbers.ndim < 2:
        numbers = numbers.reshape(1, -1)
    flat = numbers.ndim == 1 and n_outputs is not None and numbers.size == n_rows * n_outputs
    if numbers.ndim in (1, 2) and (flat or numbers.shape[0] == n_rows):
        table = numbers.reshape(n_rows, -1)
        if table.shape[1] > 0:
            return table
    _wrong_shape(f"{n_rows} answers of equal length", f"shape {numbers.shape}")


def _wrong_shape(required: str, got: str) -> NoReturn:
    raise UnreadableAnswer(
        f"must answer with {required}, one answer per row. Got {got} instead. Check the place of "
        "the answers in the response (answers)."
    )


def _missing(required: str, got: str) -> NoReturn:
    raise UnreadableAnswer(
        f"must answer with {required} of its JSON. Got {got} instead. Name the place of the answers "
        "(answers), for example 'data.0.values'."
    )


def _names(value: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in list(value)[:8]) or "an empty object"


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {excerpt(value.encode('utf-8', 'replace'))}"
    if isinstance(value, bool):
        return str(value).lower()
    names = {dict: "an object", list: "a list", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)
