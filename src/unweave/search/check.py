"""One line of a certificate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One checked hypothesis or a-posteriori bound."""

    name: str
    value: float
    threshold: float | None
    """What the value is held against; None if it is only reported."""
    holds: bool | None
    """Whether it is on the good side; None if there is no threshold."""
    implies: str
    """What follows if it holds, or what the value means."""

    @classmethod
    def below(cls, name: str, value: float, threshold: float, implies: str) -> Check:
        """Hold if ``value`` is at most ``threshold``."""
        return cls(name, float(value), float(threshold), bool(value <= threshold), implies)

    @classmethod
    def above(cls, name: str, value: float, threshold: float, implies: str) -> Check:
        """Hold if ``value`` is at least ``threshold``."""
        return cls(name, float(value), float(threshold), bool(value >= threshold), implies)

    @classmethod
    def figure(cls, name: str, value: float, implies: str) -> Check:
        """Report ``value`` without holding it against anything."""
        return cls(name, float(value), None, None, implies)
