"""What the user said about the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unweave.errors import InvalidInput


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
    options: tuple[Any, ...] = ()
    """Options of methods, in place of their defaults."""

    @property
    def width(self) -> int | None:
        """Width of the first hidden layer, if told."""
        return self.hidden[0] if self.hidden else None

    def activations_among(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Activations to try: the one that was told, or all of ``names``."""
        return names if self.activation is None else (self.activation,)


def checked_widths(hidden: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return ``hidden`` as a tuple of whole numbers >= 1, or None.

    >>> checked_widths([8, 4]), checked_widths([]), checked_widths(None)
    ((8, 4), (), None)
    """
    if hidden is None:
        return None
    try:
        widths = tuple(int(width) for width in hidden)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"hidden must be a list of widths or None. Got {hidden!r} instead.") from error
    whole = all(not isinstance(given, bool) and int(given) == given for given in hidden)
    if not whole or min(widths, default=1) < 1:
        raise InvalidInput(
            f"hidden must hold whole numbers >= 1. Got {list(hidden)!r} instead. "
            "For a network without hidden layer give hidden=[]."
        )
    return widths
