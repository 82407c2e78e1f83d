"""Tune a step by a short grid that moves until its best point is inside ([mathematics] Sec. 5.D).

Five steps, three to a decade. As long as the best one is at an end, the next step beyond it is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unweave.errors import InvalidInput

NAG_STEPS = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
"""The published grid of NAG."""
ADAPTIVE_STEPS = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4)
"""The published grid of RMSProp and ADAM."""


@dataclass(frozen=True)
class Tuned:
    """The best step, and all that were tried."""

    step: float
    score: float
    tried: tuple[tuple[float, float], ...]
    """(step, score), by step."""
    inside: bool
    """Whether larger and smaller steps were worse."""


def tune_step(
    score: Callable[[float], float], steps: Sequence[float] = ADAPTIVE_STEPS, most: int = 20
) -> Tuned:
    """The step with the least ``score``: a loss after training, NaN or infinite where it diverges.

    The grid grows by one step at an end as long as the best is there, up to ``most`` steps in all.

    Example:
        >>> found = tune_step(lambda a: (np.log10(a) + 1) ** 2)     # best at 0.1, far above the grid
        >>> float(found.step), found.inside, len(found.tried)
        (0.1, True, 11)
    """
    grid = sorted(float(step) for step in steps)
    if len(grid) < 2 or grid[0] <= 0 or not np.isfinite(grid).all() or most < len(grid):
        raise InvalidInput(
            f"steps must be two or more positive numbers, at most {most}. Got {steps!r} instead. For example "
            f"{ADAPTIVE_STEPS}."
        )
    scores = {step: _finite(score(step)) for step in grid}
    while len(scores) < most:
        order = sorted(scores)
        best = min(order, key=scores.__getitem__)
        if best not in (order[0], order[-1]):
            break
        beyond = _neighbor(best, up=best == order[-1])
        scores[beyond] = _finite(score(beyond))
    order = sorted(scores)
    best = min(order, key=scores.__getitem__)
    return Tuned(best, scores[best], tuple((s, scores[s]) for s in order), best not in (order[0], order[-1]))


def _finite(value: float) -> float:
    return float(value) if np.isfinite(value) else np.inf


def _neighbor(step: float, up: bool) -> float:
    """The next of ..., 1e-4, 3e-4, 1e-3, ... above or below."""
    decade = 10.0 ** np.floor(np.log10(step * (1 + 1e-9)))
    leads_with_one = step / decade < 2
    if up:
        return float(f"{(3 if leads_with_one else 10) * decade:.6g}")
    return float(f"{(0.3 if leads_with_one else 1) * decade:.6g}")
