"""Recursions behind the rates of gate learners, and a bound on the tail of a supermartingale.

**A recursion** ([mathematics] Lemma 3.E.1). If X_{t+1} <= (1 - eta b + eta^2 c1) X_t + eta^2 c2 and X_1 = C,
then X_T <= e^2 for

    c2 = 0:          eta = b / (2 c1),   alpha = 1 - b^2/(4 c1),              T = 1 + log(e^2/C) / log alpha,
    0 < c2 < c1:     eta = (b/c1) e^2/(1 + e^2),   alpha = 1 - (b^2/c1) e^2/(1 + e^2)^2,
                     T = 1 + log( e^2 (c1 - c2) / (C c1 - c2 e^2) ) / log alpha.

Both need alpha > 0. The source asks for b^2/c1 <= (sqrt(e) + 1/sqrt(e))^2 in the second case; its proof uses
(e + 1/e)^2, which is weaker and enough. It allows c2 = c1, where T is infinite: X falls to e^2 and never
below.

**A tail** (Thm. 3.D.1, after Azuma and Hoeffding). For a supermartingale with |X_i - X_{i-1}| <= c_i,

    P[X_n - X_0 >= lambda] <= exp( -lambda^2 / (2 sum_i c_i^2) ).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unweave.errors import InvalidInput


@dataclass(frozen=True)
class Recursion:
    """A step, the factor that it gives, and after how many steps the target is met."""

    step: float
    """eta."""
    factor: float
    """alpha = 1 - eta b + eta^2 c1."""
    steps: float
    """T, counted from X_1; infinite for c2 = c1."""


def recursion_steps(b: float, c1: float, c2: float, start: float, target: float) -> Recursion:
    """T with X_T <= ``target`` = e^2 for X_{t+1} <= (1 - eta b + eta^2 c1) X_t + eta^2 c2, X_1 = ``start``.

    Example:
        >>> found = recursion_steps(b=1.0, c1=2.0, c2=0.5, start=1.0, target=0.01)
        >>> x = 1.0
        >>> for _ in range(int(found.steps)):
        ...     x = found.factor * x + found.step**2 * 0.5
        >>> x <= 0.01
        True
    """
    if not (b > 0 and c1 > 0 and 0 <= c2 <= c1 and 0 < target <= start):
        raise InvalidInput(
            f"b and c1 must be positive, c2 between 0 and c1, target between 0 and start. Got {b}, {c1}, "
            f"{c2}, {target} and {start} instead. A larger c2 has no step that meets every target."
        )
    step = b / (2 * c1) if c2 == 0 else b / c1 * target / (1 + target)
    factor = 1 - step * b + step**2 * c1
    if not factor > 0:
        raise InvalidInput(
            f"b^2 must be below {b**2 / (1 - factor):.3g} for this c1 and target. Got {b**2:.3g} instead. A "
            f"larger c1 is a weaker assumption and always allowed."
        )
    goal = target * (c1 - c2) / (start * c1 - c2 * target)
    if goal >= 1:
        return Recursion(step, factor, 1.0)
    return Recursion(step, factor, math.inf if goal <= 0 else 1 + math.log(goal) / math.log(factor))


def azuma_tail(excess: float, differences: Sequence[float]) -> float:
    """exp(-lambda^2/(2 sum c_i^2)): bound of P[X_n - X_0 >= ``excess``], |X_i - X_{i-1}| <= c_i.

    Example:
        >>> round(azuma_tail(10.0, [1.0] * 100), 4)
        0.6065
    """
    if not excess > 0 or not differences or min(differences) <= 0:
        raise InvalidInput(
            f"excess and differences must be positive, at least one. Got {excess} and {differences} instead. "
            f"Each difference bounds one step."
        )
    return math.exp(-(excess**2) / (2 * math.fsum(c**2 for c in differences)))
