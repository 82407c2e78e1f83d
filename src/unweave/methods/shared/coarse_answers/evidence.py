"""What a fit to coarse answers shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unweave.search import Evidence


@dataclass(frozen=True, eq=False, kw_only=True)
class CoarseEvidence(Evidence):
    """What was measured on the way to a network behind noise or rounding."""

    misfit: float | None = None
    """Root mean square residual of a fit to noisy answers, in their standard deviations: one is right."""
    acceptable_misfit: float | None = None
    """Misfit up to which noise explains what is left."""
    weakest_unit: float | None = None
    """Contribution to noisy answers of the weakest unit, over the largest that could hide in the noise."""
    flips: int = 0
    """Flips of the last digit of rounded answers that were fitted as exact equations."""

    clear_of_hiding: ClassVar[float] = 10.0
    """Strength of the weakest unit, over what noise could hide, beyond which none is thought hidden."""

    @property
    def fitted_to_noise(self) -> bool:
        """Whether a fit to the answers was reached."""
        return self.misfit is not None

    @property
    def from_exact_equations(self) -> bool:
        """Whether flips were fitted."""
        return self.flips > 0

    def doubts(self) -> tuple[str, ...]:
        """Say if the rows of the fit, many more than the fresh ones, show that a unit is missing."""
        found = []
        allowed = self.acceptable_misfit
        if self.misfit is not None and allowed is not None and self.misfit > allowed:
            found.append(
                f"the fit leaves {self.misfit:.2g} standard deviations where noise leaves "
                f"{allowed:.2g} at most"
            )
        elif self.weakest_unit is not None and self.weakest_unit < self.clear_of_hiding:
            found.append(
                f"the weakest unit is only {self.weakest_unit:.2g} times as strong as one that noise could "
                "hide: others may be missing"
            )
        return tuple(found)
