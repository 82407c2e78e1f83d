"""The best network so far and its evidence, in one place that outlives whatever ends the search."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unweave.methods.smooth.evidence import SmoothEvidence
from unweave.networks.parameters import NetworkParameters

_ABOVE_FLOOR = 30.0  # times the floor: a residual that something else may explain better
_LARGEST_CONDITION = 1e10  # of the final fit's scaled Jacobian: beyond, there are neurons too many


@dataclass(eq=False)
class FoundSoFar:
    """Written to by every step of a route, so that nothing is lost when budget or time end in the middle."""

    model: NetworkParameters | None = None
    evidence: SmoothEvidence = field(default_factory=SmoothEvidence)

    def note(self, **fields: Any) -> None:
        """Replace fields of the evidence."""
        self.evidence = replace(self.evidence, **fields)

    def snapshot(self) -> FoundSoFar:
        """A copy, to come back to."""
        return replace(self)

    def restore(self, other: FoundSoFar) -> None:
        """Go back to what a snapshot kept."""
        self.model, self.evidence = other.model, other.evidence

    @property
    def residual(self) -> float:
        """Of the final fit; infinite if there was none."""
        return self.evidence.fit_history[-1] if self.evidence.fit_history else np.inf

    @property
    def at_floor(self) -> bool:
        """Whether the final fit leaves no more than rounding or noise."""
        floor = self.evidence.fit_floor
        return floor is not None and self.residual <= _ABOVE_FLOOR * floor

    @property
    def is_determined(self) -> bool:
        """Whether the equations of the final fit determine all parameters (no neuron too many)."""
        condition = self.evidence.condition
        return condition is None or not condition > _LARGEST_CONDITION
