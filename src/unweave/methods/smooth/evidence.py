"""What a search for smooth units has found, what it measured, and why it gave up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unweave.derivatives.jet_sources import LARGEST_MISMATCH
from unweave.methods.shared.span_evidence import SpanEvidence
from unweave.networks.parameters import NetworkParameters
from unweave.search import Check, Reason


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


class SmoothReason(Reason):
    """The sentences that users read."""

    NO_GAP = (
        "no gap in the spectrum of {columns} Hessians (largest ratio {gap:.2g}; one smooth hidden layer "
        "shows at least {clear:.0f}): more than {most} units, more than one hidden layer, answers too "
        "coarse to see it, or not a network of this class"
    )
    TOO_WIDE = (
        "the Hessians span {rank} dimensions; in {inputs} inputs at most {most} units are determined by "
        "their span"
    )
    NO_RANK_ONE_MEMBER = (
        "the span of the Hessians has dimension {rank} but no rank-one member: not a sum of functions of one "
        "direction each"
    )
    NOT_AT_FLOOR = (
        "{units} units leave a residual of {residual:.2g} where rounding or noise would leave {floor:.2g}: "
        "{what_else}"
    )
    UNEVEN_HESSIANS = (
        "the largest Hessian is {largest:.2g} times the median one, and no activation explains them (misfit "
        "{misfit:.2g}): differences have met kinks, or more than one hidden layer"
    )
    DERIVATIVES_DIFFER = (
        "the target's derivatives by autodiff are not those of its answers (off by {mismatch:.2g} of their "
        'size): a part is detached, or has a backward pass of its own; leave derivatives at "queries"'
    )


@dataclass(eq=False)
class FoundSoFar:
    """The best network so far; every step writes to it, so that nothing is lost when budget or time end."""

    model: NetworkParameters | None = None
    evidence: SmoothEvidence = field(default_factory=SmoothEvidence)

    def note(self, **fields: Any) -> None:
        """Replace fields of the evidence."""
        self.evidence = replace(self.evidence, **fields)

    def snapshot(self) -> FoundSoFar:
        """Return a copy to come back to."""
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
        return floor is not None and self.residual <= self.evidence.residual_over_floor * floor

    @property
    def is_determined(self) -> bool:
        """Whether the equations of the final fit determine all parameters; a unit too many prevents it."""
        condition = self.evidence.condition
        return condition is None or not condition > self.evidence.largest_condition
