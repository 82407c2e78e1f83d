"""The rules by which a measured figure agrees with a published one, each written into the figure."""

from __future__ import annotations

import math
from decimal import Decimal

from unweave.experiments.experiment import Figure, Value


def equal(quantity: str, published: Value, measured: Value, note: str = "") -> Figure:
    """Counts and verdicts: the same, or not."""
    return Figure(quantity, published, measured, bool(published == measured), "equal", note=note)


def printed(quantity: str, published: str, measured: float, note: str = "") -> Figure:
    """A number as it is printed, whether it was rounded or cut off: one unit of its last digit.

    Example:
        >>> printed("rho", "0.091", 0.09085).agrees, printed("rho", "0.091", 0.0925).agrees
        (True, False)
    """
    exponent = Decimal(published).as_tuple().exponent
    unit = 10.0 ** int(exponent)
    agrees = bool(abs(measured - float(published)) <= unit)
    return Figure(
        quantity, published, measured, agrees, "within one unit of the last digit printed", note=note
    )


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
