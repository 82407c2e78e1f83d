"""Label errors within [-theta, theta] that an adversary may add to a gate's answers."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.gates.checks import checked_theta

Attack = Literal["random", "biased", "adaptive"]


def poison(
    attack: Attack, theta: float, x: Array, weights: Array, truth: Array, rng: np.random.Generator
) -> Array:
    """xi (N,) with |xi| = theta for rows x (N, n), against the iterate ``weights``, (n,) or one per row.

    - "random": a fair sign;
    - "biased": always upwards;
    - "adaptive": sign((w_t - w*) . x), the sign that pushes w_t away from w* at this very row.
    """
    theta = checked_theta(theta)
    if attack not in get_args(Attack):
        raise InvalidInput(f"attack must be one of {get_args(Attack)}. Got {attack!r} instead. Choose one.")
    if attack == "random":
        return theta * rng.choice([-1.0, 1.0], len(x))
    if attack == "biased":
        return np.full(len(x), theta)
    push = np.sum((weights - truth) * x, axis=1)
    return np.asarray(theta * np.where(push < 0, -1.0, 1.0))
