"""What the user said about the network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from unweave.errors import InvalidInput

VERDICT_ROWS = 50
"""Rows that a search leaves for the verdict on its network where rows are few."""


@dataclass(frozen=True)
class Request:
    """What the user said about the network, checked."""

    hidden: tuple[int, ...] | None = None
    """Widths of the hidden layers; None to find out."""
    activation: str | None = None
    method: str | None = None
    output_activation: str | None = None
    averaging: float | None = None
    """Rows of the final fit per parameter, for coarse answers; None to choose."""
    autodiff: bool = False
    """Whether methods that can use the target's own derivatives may do so."""
    tight: bool = False
    """Whether rows are so few that the usual way would end before it gets anywhere."""
    options: tuple[Any, ...] = ()
    """Options of methods, in place of their defaults."""

    @property
    def width(self) -> int | None:
        """Width of the first hidden layer, if told."""
        return self.hidden[0] if self.hidden else None

    def activations_among(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Activations to try: the one that was told, or all of ``names``."""
        return names if self.activation is None else (self.activation,)


def checked_widths(hidden: Sequence[int] | int | None) -> tuple[int, ...] | None:
    """Return the hidden widths as a tuple; None means that the caller does not know them.

    >>> checked_widths([30, 20]), checked_widths(5), checked_widths([]), checked_widths(None)
    ((30, 20), (5,), (), None)
    """
    if hidden is None:
        return None
    given: Any = [hidden] if isinstance(hidden, Integral) else hidden
    try:
        widths = tuple(int(width) for width in given)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"hidden must be a list of widths or None. Got {hidden!r} instead.") from error
    whole = all(not isinstance(width, bool) and int(width) == width for width in given)
    if not whole or min(widths, default=1) < 1:
        raise InvalidInput(
            f"hidden must hold whole numbers >= 1. Got {list(given)!r} instead. "
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
