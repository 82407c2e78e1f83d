"""Losses of reliable learning ([mathematics] Def. 9): no false alarm where the label is zero.

    L_{=0}(h) = P[h(x) != 0 and y = 0],      L_{>0}(h) = E[ l(h(x), y) 1{y > 0} ],

labels in [0, 1]. A class is learned reliably if L_{=0} is at most eps and L_{>0} at most eps above the least
of the members with L_{=0} = 0. For one ReLU unit that least is a convex program per pattern: a row with label
zero must be in the closed half-space where the unit is silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, real_numbers
from unweave.errors import InvalidInput
from unweave.exact.losses import ConvexLoss, Squared


@dataclass(frozen=True)
class ReliableLosses:
    """Both losses over a set of samples."""

    false_alarms: float
    """L_{=0}."""
    positive: float
    """L_{>0}."""


def reliable_losses(
    predictions: Any, labels: Any, loss: ConvexLoss | None = None, tolerance: float = 0.0
) -> ReliableLosses:
    """L_{=0} and L_{>0} of ``predictions`` (N,) for ``labels`` (N,) in [0, 1]; squared loss unless given.

    A prediction counts as zero up to ``tolerance``: 0 for exact ReLU units, rounding for others.

    Example:
        >>> reliable_losses([0.0, 0.5, 1.0, 0.5], [0.0, 0.0, 1.0, 1.0])
        ReliableLosses(false_alarms=0.25, positive=0.0625)
    """
    said, true = real_numbers(predictions, "predictions"), real_numbers(labels, "labels")
    if said.ndim != 1 or said.shape != true.shape or not len(true) or true.min() < 0 or true.max() > 1:
        raise InvalidInput(
            f"predictions and labels must be of one shape (N,), labels between 0 and 1. Got shapes "
            f"{said.shape} and {true.shape} instead. Scale labels by their largest value."
        )
    each: Array = (Squared() if loss is None else loss).value(said, true)
    return ReliableLosses(
        false_alarms=float(np.mean((np.abs(said) > tolerance) & (true == 0))),
        positive=float(np.mean(np.where(true > 0, each, 0.0))),
    )
