"""An experiment: a published claim, the setting that checks it, and the measured figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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
