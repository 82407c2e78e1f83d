"""An experiment: a published claim, the setting that checks it, and figures with their rule of agreement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unweave.experiments.study import Study

Progress = Callable[[str], None]
"""Called with a few words about the current measurement."""

Value = float | int | str

DERIVED = "derived"
"""Origin of a value that the source does not print: this library's own."""


@dataclass(frozen=True)
class Figure:
    """One published value beside the measured one."""

    quantity: str
    published: Value
    """Value in the source; a bound where ``relation`` is an inequality."""
    measured: Value
    agrees: bool | None
    """Whether ``measured`` obeys ``rule``; None for figures that are shown and decide nothing, such as
    seconds on other hardware."""
    rule: str
    """The rule of agreement, in words."""
    relation: str = ""
    """Expected relation of ``measured`` to ``published``: "<=", ">=", or empty for equality."""
    note: str = ""
    """Remark for the reader, for instance that a published value was corrected."""
    origin: str = ""
    """Where the published value stands: lines of the source ("L9387"), "stated, L8568" for a claim in words,
    "formula, L..." for a formula that was evaluated here, or `DERIVED`. Empty: that of the experiment."""


Run = Callable[[int, Progress], Iterable[Figure]]
"""Measure with a seed; yield figures as they are known, so that an interrupt keeps the earlier ones."""


@dataclass(frozen=True)
class Experiment:
    """A published table, figure or claim, and how it is measured."""

    name: str
    source: str
    """Document and place in it, in words."""
    claim: str
    setting: str
    """Sizes, and where they are smaller than the source's."""
    seconds: float
    """About how long it takes on one core."""
    run: Run
    """Measure the quick size with one seed."""
    origin: str = ""
    """Lines of the source that print the values or state the claim."""
    study: Callable[[], Study] | None = None
    """Cells of a published table or figure; None for a claim that one run checks."""


def agree(figures: Iterable[Figure]) -> bool:
    """Whether no figure contradicts the source; those that decide nothing do not count."""
    return all(figure.agrees is not False for figure in figures)


def equal(quantity: str, published: Value, measured: Value, note: str = "", origin: str = "") -> Figure:
    """Counts and verdicts: the same, or not."""
    agrees = bool(published == measured)
    return Figure(quantity, published, measured, agrees, "equal", note=note, origin=origin)


def printed(quantity: str, published: str, measured: float, note: str = "", origin: str = "") -> Figure:
    """A number as it is printed, whether it was rounded or cut off: one unit of its last digit.

    Example:
        >>> printed("rho", "0.091", 0.09085).agrees, printed("rho", "0.091", 0.0925).agrees
        (True, False)
    """
    unit = 10.0 ** int(Decimal(published).as_tuple().exponent)
    agrees = bool(abs(measured - float(published)) <= unit)
    rule = "within one unit of the last digit printed"
    return Figure(quantity, published, measured, agrees, rule, note=note, origin=origin)


def close(
    quantity: str, published: float, measured: float, tolerance: float, note: str = "", origin: str = ""
) -> Figure:
    """A formula's value: equal up to a relative ``tolerance``."""
    agrees = bool(abs(measured - published) <= tolerance * abs(published))
    rule = f"equal up to a relative {tolerance:g}"
    return Figure(quantity, published, measured, agrees, rule, note=note, origin=origin)


def at_most(
    quantity: str,
    bound: float,
    measured: float,
    rule: str = "not above the bound",
    note: str = "",
    published: Value | None = None,
    origin: str = "",
) -> Figure:
    """An upper bound, or an error that must not be larger; ``published`` if the source says it otherwise."""
    value, relation = (bound, "<=") if published is None else (published, "")
    return Figure(quantity, value, measured, bool(measured <= bound), rule, relation, note, origin)


def at_least(
    quantity: str,
    bound: float,
    measured: float,
    rule: str = "not below the bound",
    note: str = "",
    origin: str = "",
) -> Figure:
    """A lower bound."""
    return Figure(quantity, bound, measured, bool(measured >= bound), rule, ">=", note, origin)


def vanishes(quantity: str, measured: float, tolerance: float, note: str = "", origin: str = "") -> Figure:
    """An identity: the difference of its sides is rounding, at most ``tolerance``."""
    agrees = bool(math.isfinite(measured) and abs(measured) <= tolerance)
    rule = f"at most {tolerance:.0e}, which is rounding"
    return Figure(quantity, 0, measured, agrees, rule, note=note, origin=origin)


def shown(quantity: str, published: Value, measured: Value, note: str = "", origin: str = "") -> Figure:
    """A figure that decides nothing: seconds on other hardware."""
    return Figure(quantity, published, measured, None, "shown, decides nothing", note=note, origin=origin)
