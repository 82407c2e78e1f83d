"""What noisy Hessians and the fits behind them show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.methods.shared.span_evidence import SpanEvidence
from unweave.methods.smooth_coarse.width import STANDS_OUT


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothCoarseEvidence(SpanEvidence, CoarseEvidence):
    """What was measured on the way to smooth units behind noise or rounding."""

    clear_gap: ClassVar[float] = STANDS_OUT
    """Noisy Hessians are measured against the noise they carry."""
    gap_is_a_ratio: ClassVar[bool] = False
