"""What goes into a ledger and comes out of a target: rows and answers, read as float64 tables or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from unweave.arrays import Array, unmasked
from unweave.errors import InvalidInput, NonFiniteAnswers, TargetError

if TYPE_CHECKING:
    from unweave.targets.queries import Queries

_NUMERIC_KINDS = "biuf"
_FIRST_NUMBERS = 6  # how many entries of an offending input row a message shows


def read_answer(answer: Any, n_rows: int, n_outputs: int | None, ledger: Queries) -> Array:
    """Turn what the target returned into (n_rows, m) float64, or say what is wrong with it.

    ``n_outputs`` is m where it is known. What is refused carries ``ledger``.
    """
    numbers = _as_numbers(answer, ledger)
    if numbers.ndim not in (1, 2):
        _refuse("an array of shape (n,) or (n, m)", f"shape {numbers.shape}", ledger)
    if numbers.shape[0] != n_rows:
        _refuse(f"one answer per row, {n_rows} in all", f"shape {numbers.shape}", ledger)
    table = numbers.reshape(n_rows, -1) if numbers.ndim == 1 else numbers
    if table.shape[1] == 0:
        _refuse("at least one output", f"shape {numbers.shape}", ledger)
    if n_outputs not in (None, table.shape[1]):
        _refuse(f"{n_outputs} outputs as before", f"{table.shape[1]} outputs", ledger)
    return table


def _as_numbers(answer: Any, ledger: Queries) -> Array:
    """Read the answer as an array of real numbers."""
    try:
        raw = np.asarray(unmasked(answer))
        if raw.dtype.kind == "O":  # Decimal, Fraction, a list of scalars of some framework
            raw = np.array([float(value) for value in raw.ravel()]).reshape(raw.shape)
    except Exception as error:
        raise TargetError(
            f"The target's answer must be an array of numbers. Got {type(answer).__name__} that cannot "
            f"be read as one ({type(error).__name__}: {error}) instead. Return a NumPy array.",
            ledger=ledger,
        ) from error
    if raw.dtype.kind not in _NUMERIC_KINDS:
        _refuse("real numbers", f"values of type {raw.dtype}", ledger)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite and is refused as such
        return raw.astype(np.float64)


def _refuse(required: str, got: str, ledger: Queries) -> NoReturn:
    """Raise the `TargetError` of a badly shaped answer."""
    raise TargetError(
        f"The target's answer must be {required}. Got {got} instead. Wrap the target in a function "
        "that maps (n, inputs) to (n,) or (n, outputs).",
        ledger=ledger,
    )


def refuse_non_finite(asked: Array, answers: Array, ledger: Queries) -> None:
    """Raise if any answer is NaN or infinite, naming the first input where it happened."""
    bad = ~np.isfinite(answers).all(axis=1)
    if not bad.any():
        return
    ledger.witnesses.add_without_number(asked[bad])
    row = asked[int(np.argmax(bad))]
    shown = ", ".join(f"{value:.6g}" for value in row[:_FIRST_NUMBERS])
    more = ", ..." if row.size > _FIRST_NUMBERS else ""
    raise NonFiniteAnswers(
        f"The target's answers must be finite. Got NaN or infinite values in {int(bad.sum())} of "
        f"{bad.size} rows instead, first at x = [{shown}{more}]. If the target is only defined on "
        "part of the inputs, give domain=(low, high).",
        ledger=ledger,
    )


def whole_number(value: Any, name: str, least: int) -> int:
    """Return ``value`` as int, or say that ``name`` must be a whole number >= ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput(f"{name} must be a whole number >= {least}. Got {value!r} instead.")
    return int(value)


def checked_rows(x: Any, n_inputs: int) -> Array:
    """Return ``x`` as (n, n_inputs) finite float64."""
    try:
        rows = np.asarray(unmasked(x))
    except ValueError as error:
        raise InvalidInput(
            f"x must be an array of shape (n, {n_inputs}). Got a ragged one instead."
        ) from error
    if rows.dtype.kind not in _NUMERIC_KINDS:
        raise InvalidInput(f"x must be an array of real numbers. Got values of type {rows.dtype} instead.")
    rows = rows.astype(np.float64, copy=False)
    if rows.ndim != 2 or rows.shape[1] != n_inputs:
        raise InvalidInput(f"x must be an array of shape (n, {n_inputs}). Got shape {rows.shape} instead.")
    if not np.isfinite(rows).all():
        bad = int((~np.isfinite(rows).all(axis=1)).sum())
        raise InvalidInput(f"x must be finite. Got NaN or infinite entries in {bad} rows instead.")
    return rows
