"""Which way answers were rounded, read off the signs of zeros.

Answers rounded down are those of a function half a digit lower, rounded to nearest: no answer tells the two
apart, except one. A zero keeps the sign of what was rounded to it. Rounded to nearest, numbers on either side
give +0 and -0; rounded up, zeros are all negative; rounded down, all positive, and so they are where somebody
drops the sign.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.networks.parameters import NetworkParameters

_WANTED = 8  # zeros to look at, that the network puts on either side
_CLEAR = 0.1  # digits: nearer to zero the network itself may err
_INSIDE = (-0.4, -0.3, -0.2, 0.2, 0.3, 0.4)  # digits at which rows are placed to be rounded to zero
_HALVINGS = 60  # of a segment between rows on either side


class RoundingRule(Enum):
    """How answers were rounded; a value is how far they lie above the function, in digits, on average."""

    NEAREST = 0.0
    UP = 0.5
    UNKNOWN = None


def rounding_rule(rows: AnsweredRows, model: NetworkParameters, digit: float) -> RoundingRule:
    """Tell how answers with a last ``digit`` were rounded that ``model`` explains as rounded to nearest.

    Cost: up to 18 rows, where zeros are rare.
    """
    points = rows.points
    predicted, answers = model.values(points) / digit, rows.answers
    zeros = (answers == 0) & (np.abs(predicted) > _CLEAR)
    if zeros.sum() < _WANTED:
        placed = _at_zero(points, predicted, model, digit)
        if not len(placed):
            return RoundingRule.UNKNOWN
        placed = placed[rows.region.contains(placed)]
        predicted = np.concatenate([predicted, model.values(placed) / digit])
        answers = np.concatenate([answers, rows.view(placed)])
        zeros = (answers == 0) & (np.abs(predicted) > _CLEAR)
    negative, below = np.signbit(answers[zeros]), predicted[zeros] < 0
    if not below.any() or below.all():
        return RoundingRule.UNKNOWN
    if np.array_equal(negative, below):
        return RoundingRule.NEAREST
    return RoundingRule.UP if negative.all() else RoundingRule.UNKNOWN


def _at_zero(points: Array, predicted: Array, model: NetworkParameters, digit: float) -> Array:
    """Place rows where the model, bisected between rows on either side, is next to zero. Shape (n, D)."""
    placed = []
    for output in range(predicted.shape[1]):
        above, below = np.argmax(predicted[:, output]), np.argmin(predicted[:, output])
        for wanted in _INSIDE:
            low, high = points[below], points[above]
            if not predicted[below, output] < wanted < predicted[above, output]:
                continue
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                if model.values(middle[None])[0, output] < wanted * digit:
                    low = middle
                else:
                    high = middle
            placed.append(high)
    return np.array(placed).reshape(-1, points.shape[1])
