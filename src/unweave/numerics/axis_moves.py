"""Points moved along one axis each: a gradient's rows, never more of them than memory should hold.

d inputs make d rows of d numbers for every gradient: 800 MB for d = 10^4, 80 GB for d = 10^5.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unweave.arrays import Array, IntArray

NUMBERS_PER_CALL = 2_000_000
"""Of the rows that are made at once: 16 MB."""


def answers_along_axes(
    ask: Callable[[Array], Array], base: Array, steps: Array, axes: IntArray | None = None
) -> tuple[Array, Array]:
    """Return answers (n, K) at ``base`` (d,) moved by ``steps`` (n,) along ``axes`` (n,), and what was moved.

    All axes by default. What was moved (n,) is the step less its rounding.
    """
    axes = np.arange(len(base)) if axes is None else axes
    at_once = max(1, NUMBERS_PER_CALL // len(base))
    answers, taken = [], []
    for start in range(0, len(axes), at_once):
        own, rows = axes[start : start + at_once], np.arange(len(axes[start : start + at_once]))
        moved = np.repeat(base[None, :], len(own), axis=0)
        moved[rows, own] += steps[start : start + at_once]
        taken.append(moved[rows, own] - base[own])
        answers.append(ask(moved))
    return np.concatenate(answers), np.concatenate(taken)


def one_call_is_enough(inputs: int) -> bool:
    """Return whether the rows of a gradient in that many inputs are few enough to be made at once."""
    return inputs**2 <= NUMBERS_PER_CALL
