"""Check what a caller says about the network: one checker for the library, the command line and the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unweave.errors import InvalidInput


def checked_widths(hidden: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return the hidden widths as a tuple; None means that the caller does not know them.

    >>> checked_widths([30, 20]), checked_widths([]), checked_widths(None)
    ((30, 20), (), None)
    """
    if hidden is None:
        return None
    try:
        widths = tuple(int(width) for width in hidden)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"hidden must be a list of widths or None. Got {hidden!r} instead.") from error
    whole = all(not isinstance(given, bool) and int(given) == given for given in hidden)
    if not whole or min(widths, default=1) < 1:
        raise InvalidInput(
            f"hidden must hold whole numbers >= 1. Got {list(hidden)!r} instead. "
            "For a network without hidden layer give hidden=[]."
        )
    return widths


def widths_from_text(text: str) -> tuple[int, ...]:
    """Return the widths in ``text``, which has commas between them: ``"30"`` or ``"30,20"``."""
    try:
        return checked_widths([int(part) for part in text.split(",")]) or ()
    except ValueError as error:
        raise InvalidInput(f"hidden must hold whole numbers >= 1. Got {text!r} instead.") from error


def interval_from_text(text: str) -> tuple[float, float]:
    """Return the two finite numbers in ``text``, a comma between, the smaller one first: ``"-1,1"``."""
    try:
        low, high = (float(part) for part in text.split(","))
        usable = low < high and math.isfinite(low) and math.isfinite(high)
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(f"domain must be LOW,HIGH, the smaller number first. Got {text!r} instead.")
    return low, high


__all__ = ["checked_widths", "interval_from_text", "widths_from_text"]
