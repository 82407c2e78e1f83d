"""Options of the method."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.subspace.power_method import PowerMethodOptions


@dataclass(frozen=True, kw_only=True)
class SmoothOptions:
    """How smooth units are searched for."""

    power_method: PowerMethodOptions | None = None
    """Of the search for rank-one members of the span; None to choose by the number of units."""
