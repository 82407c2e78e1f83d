"""An experiment: a published claim, the setting that checks it, and figures with their rule of agreement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

Progress = Callable[[str], None]
"""Called with a few words about the current measurement."""

Value = float | int | str


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


def agree(figures: Iterable[Figure]) -> bool:
    """Whether no figure contradicts the source; those that decide nothing do not count."""
    return all(figure.agrees is not False for figure in figures)


def equal(quantity: str, published: Value, measured: Value, note: str = "") -> Figure:
    """Counts and verdicts: the same, or not."""
    return Figure(quantity, published, measured, bool(published == measured), "equal", note=note)


def printed(quantity: str, published: str, measured: float, note: str = "") -> Figure:
    """A number as it is printed, whether it was rounded or cut off: one unit of its last digit.

    Example:
        >>> printed("rho", "0.091", 0.09085).agrees, printed("rho", "0.091", 0.0925).agrees
        (True, False)
    """
    unit = 10.0 ** int(Decimal(published).as_tuple().exponent)
    agrees = bool(abs(measured - float(published)) <= unit)
    rule = "within one unit of the last digit printed"
    return Figure(quantity, published, measured, agrees, rule, note=note)


def close(quantity: str, published: float, measured: float, tolerance: float, note: str = "") -> Figure:
    """A formula's value: equal up to a relative ``tolerance``."""
    agrees = bool(abs(measured - published) <= tolerance * abs(published))
    return Figure(quantity, published, measured, agrees, f"equal up to a relative {tolerance:g}", note=note)


def at_most(
    quantity: str,
    bound: float,
    measured: float,
    rule: str = "not above the bound",
    note: str = "",
    published: Value | None = None,
) -> Figure:
    """An upper bound, or an error that must not be larger; ``published`` if the source says it otherwise."""
    value, relation = (bound, "<=") if published is None else (published, "")
    return Figure(quantity, value, measured, bool(measured <= bound), rule, relation, note)


def at_least(
    quantity: str, bound: float, measured: float, rule: str = "not below the bound", note: str = ""
) -> Figure:
    """A lower bound."""
    return Figure(quantity, bound, measured, bool(measured >= bound), rule, ">=", note)


def vanishes(quantity: str, measured: float, tolerance: float, note: str = "") -> Figure:
    """An identity: the difference of its sides is rounding, at most ``tolerance``."""
    agrees = bool(math.isfinite(measured) and abs(measured) <= tolerance)
    return Figure(quantity, 0, measured, agrees, f"at most {tolerance:.0e}, which is rounding", note=note)


def shown(quantity: str, published: Value, measured: Value, note: str = "") -> Figure:
    """A figure that decides nothing: seconds on other hardware."""
    return Figure(quantity, published, measured, None, "shown, decides nothing", note=note)
