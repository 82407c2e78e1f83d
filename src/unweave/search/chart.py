"""Pictures as data: a method says what to draw, the report draws it.

A caption quotes figures of the result by their place in ``Recovery.to_dict()``, a JSON pointer in braces:
``"{/evidence/spectrum/count} singular values"``. A formula stands in backticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unweave.arrays import Array

Style = Literal["dots", "crosses", "circles", "line", "dashed", "dotted", "steps", "ticks"]


@dataclass(frozen=True, eq=False)
class Series:
    """Points (x, y), both (n,)."""

    x: Array
    y: Array
    style: Style
    """Points; a solid, dashed or dotted line; dots joined by a line; ticks at the lower edge, without y."""
    label: str | None = None


@dataclass(frozen=True, eq=False)
class Bars:
    """One bar per entry, with a text at its end."""

    x: Array
    heights: Array
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Mark:
    """A dashed line across the chart at ``value`` of an axis, with a note."""

    axis: Literal["x", "y"]
    value: float
    note: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Chart:
    """What one picture shows."""

    name: str
    title: str
    caption: str
    x_label: str
    y_label: str
    series: tuple[Series, ...] = ()
    bars: Bars | None = None
    marks: tuple[Mark, ...] = ()
    log_x: bool = False
    log_y: bool = False
    whole_x: bool = False
    """Whether only whole numbers are ticks of the x axis."""
    names: tuple[str, ...] = ()
    """Names along the y axis, from y = 0 downwards, in place of numbers."""
