"""What the target has said elsewhere: answers given before, and early rows asked once more.

Rows that a search has asked are no proof that its network is right, but one of them that contradicts it is
proof that it is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.model import Model
from unweave.probing.noise import Noise
from unweave.recovery.fresh_rows import Elsewhere
from unweave.recovery.residuals import Pattern, pattern_of
from unweave.search import Candidate
from unweave.targets.region import NormalisedQueries

NEAR = 10.0
"""Normalised inputs up to which a row is near; farther out an error of a parameter is multiplied by the
distance, and so is what is allowed."""
INSIDE = 1.5
"""Typical radii of the region within which errors of noisy answers are searched for a pattern: farther out,
those of the parameters show."""
ROWS_AT_ONCE = 4096
"""Rows whose distances are taken together."""
SMALLEST_CONTRADICTION = 1e-6
"""Error of a near row relative to the answers that no right network in float64 shows."""
ALLOWANCE = 10.0
"""Error of a near row over the threshold of fresh rows, for coarse answers: there are many more rows."""
OVERFLOWS = 1e30
"""Answer that arithmetic in single precision may lose on the way to it."""
CHANGE_ALLOWANCE = 2.0
"""Change of an answer over the threshold of fresh rows: both answers err."""


@dataclass(frozen=True)
class Hearing:
    """What was heard."""

    heard: int
    """Answers given before that were compared."""
    contradicting: int
    """Those of them that the network gets wrong."""
    worst: float
    """Largest error of these, relative to the answers."""
    farthest: float
    """Largest normalised input of a row that was compared."""
    asked_again: int
    """Early rows that were asked once more."""
    change: float
    """Largest difference between the two answers, relative to the largest answer."""
    largest_change: float
    """Difference that the answers' precision allows."""
    pattern: Pattern | None = None
    """What the errors of near rows show, where answers are noisy."""

    def contradiction(self) -> str:
        """Say how many answers are against the network."""
        return (
            f"{self.contradicting:,} of {self.heard:,} answers given before contradict the network, "
            f"by up to {self.worst:.2g}"
        )


def hear(
    candidate: Candidate,
    view: NormalisedQueries,
    noise: Noise,
    elsewhere: Elsewhere,
    threshold: float,
    size: Array,
) -> Hearing:
    """Compare the network with answers kept by the ledger and ``elsewhere``, and ask a few early rows again.

    Errors are relative to ``size`` (K,), or to the answer where that is larger; ``threshold`` is what fresh
    rows are allowed.
    """
    assert candidate.network is not None
    x, y = view.ledger.witnesses.rows((elsewhere.rows, elsewhere.answers))
    y = y - candidate.evidence.answer_offset
    errors, distance = candidate.network(x) - y, np.empty(len(x))
    for start in range(0, len(x), ROWS_AT_ONCE):  # they stay in the cache
        rows = slice(start, start + ROWS_AT_ONCE)
        distance[rows] = np.abs(view.region.to_normalised(x[rows])).max(axis=1, initial=0.0)
    allowed = max(SMALLEST_CONTRADICTION, ALLOWANCE * threshold) * np.maximum(1.0, distance / NEAR)
    off = (np.abs(errors) / np.maximum(size, np.abs(y))).max(axis=1, initial=0.0)
    wrong = ~(off <= allowed)  # no number is wrong too
    without = _answers_that_are_missing(candidate.network, view)
    early, answers = view.ledger.witnesses.earliest()
    again = view.ledger(early, fresh=True)
    change = float((np.abs(again - answers) / np.maximum(size, np.abs(answers))).max(initial=0.0))
    pattern = None
    if noise.kind == "noisy" and not noise.repeatable:
        points = view.region.to_normalised(x)
        inside = np.linalg.norm(points, axis=1) <= INSIDE * np.sqrt(points.shape[1])
        pattern = pattern_of(points[inside], errors[inside])
    return Hearing(
        heard=len(off) + without,
        contradicting=int(wrong.sum()) + without,
        worst=np.inf if without else float(off[wrong].max(initial=0.0)),
        farthest=float(distance.max(initial=0.0)),
        asked_again=len(early),
        change=change,
        largest_change=CHANGE_ALLOWANCE * threshold,
        pattern=pattern,
    )


def _answers_that_are_missing(network: Model, view: NormalisedQueries) -> int:
    """Count the near rows where the target had no number to give and the network has one.

    Near in the region or around zero: the region may have been moved to where there are numbers. What lies
    outside a box counts for nothing, and so do answers that the network sees overflow, too.
    """
    x = view.ledger.witnesses.without_number(view.n_inputs)
    points = view.region.to_normalised(x)
    distance = np.minimum(np.abs(points), np.abs(x)).max(axis=1, initial=0.0)
    with np.errstate(all="ignore"):
        values = np.abs(network(x[(distance <= NEAR) & view.region.contains(points)]))
    return int((values.max(axis=1, initial=0.0) < OVERFLOWS).sum())
