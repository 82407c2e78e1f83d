"""What derivatives of a smooth target show."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.derivatives.jet_sources import LARGEST_MISMATCH
from unweave.methods.shared.span_evidence import SpanEvidence
from unweave.search import Check


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothEvidence(SpanEvidence):
    """What was measured on the way to smooth units."""

    active_dimension: int | None = None
    """Dimension of the inputs that matter."""
    derivative_mismatch: float | None = None
    """Slopes by autodiff against those by answers, relative to them; None without autodiff."""

    def checks(self) -> list[Check]:
        """Check the target's own derivatives first."""
        checks = super().checks()
        if self.derivative_mismatch is not None:
            implies = "the derivatives by autodiff are those of the answers, up to the step between these"
            mismatch = self.derivative_mismatch
            checks.insert(0, Check.below("autodiff mismatch", mismatch, LARGEST_MISMATCH, implies))
        return checks
