"""Whether a target answers labels: names of classes, not numbers that follow a function.

Labels show a function f through its decision boundary {f = 0} alone: on both sides the answer is the same
for f, 2 f and f^3, so neither the size of the output layer nor anything away from the boundary can be seen.
Answers are taken for labels if every output has two values, or if they are few whole numbers and, where they
change, skip some of those between (a rounded function cannot: halving the way finds all its steps).
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.probing.lines import Lines
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries

MESSAGE = (
    "the target answers {} labels: only its decision boundary is visible, neither the size of the outputs "
    "nor anything that happens away from the boundary, so many networks fit as well. Ask for its "
    "probabilities or its decision function instead (for scikit-learn predict_proba or decision_function)"
)
"""What a user who has labels can do, to be formatted with their number."""

_MOST_LABELS = 32  # more different whole numbers are counted as measurements
_HALVED_WAYS = 8  # ways between points with different answers that are halved
_WAY_HALVINGS = 40  # then both ends of a way are a rounding error apart, for a region of size one
_SKIPPED_NUMBERS = 1.5  # gap between neighboring answers: a rounded function changes by 1 at a time
_LABEL_LIKE_ROUNDING = 0.3  # error of rounding, relative to the spread; coarser numbers are as bad as labels


def count_labels(view: NormalisedQueries, lines: Lines, noise: Noise) -> int:
    """Return the number of different answers if they are labels, else 0.

    Costs nothing unless the answers are whole numbers; then at most 8 x 40 rows.
    """
    values = [np.unique(column) for column in lines.answers.T]
    different = max(len(each) for each in values)
    if different < 2 or different > _MOST_LABELS or not noise.repeatable:
        return 0
    if different == 2:
        return 2 if len(values) == 1 else len(np.unique(lines.answers, axis=0))
    if noise.decimals is None or noise.decimals > 0:
        return 0
    if noise.relative > _LABEL_LIKE_ROUNDING or _skips(view, lines):
        return different
    return 0


def _skips(view: NormalisedQueries, lines: Lines) -> bool:
    """Whether answers change by more than a step of their grid at once."""
    ends = _ways(lines)
    if ends is None:
        return False
    one, other = ends
    first, last = view(one)[:, 0], view(other)[:, 0]
    for _ in range(_WAY_HALVINGS):
        middle = (one + other) / 2
        seen = view(middle)[:, 0]
        # The half over which the answer changes more: a step that skips numbers is never lost.
        left = np.abs(seen - first) >= np.abs(last - seen)
        other, last = np.where(left[:, None], middle, other), np.where(left, seen, last)
        one, first = np.where(left[:, None], one, middle), np.where(left, first, seen)
    return bool((np.abs(last - first) > _SKIPPED_NUMBERS).any())


def _ways(lines: Lines) -> tuple[Array, Array] | None:
    """Return pairs of points ((n, D), (n, D)), n <= 8, between which output 1 changes by more than one."""
    t = np.concatenate([-lines.steps[::-1], [0.0], lines.steps])
    answers = np.concatenate([lines.minus[:, ::-1], lines.center[:, None], lines.plus], axis=1)[:, :, 0]
    line, at = np.nonzero(np.abs(np.diff(answers, axis=1)) > _SKIPPED_NUMBERS)
    if not len(line):
        return None
    line, at = line[:_HALVED_WAYS], at[:_HALVED_WAYS]
    centers, directions = lines.centers[line], lines.directions[line]
    return centers + t[at, None] * directions, centers + t[at + 1, None] * directions
