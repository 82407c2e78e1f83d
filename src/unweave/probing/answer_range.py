"""Which last transformations the range of a target's answers allows."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array

_EPS = float(np.finfo(np.float64).eps)
_SUM_TO_ONE_SIGMAS = 3.0  # sigmas by which the sum of K probabilities may differ from one, times sqrt(K)


def possible_links(answers: Array, sigma: float) -> tuple[str, ...]:
    """Return the names of output activations whose range holds all ``answers`` (n, K), the simplest first.

    Rows that sum to one are the probabilities of K > 1 classes, and nothing else.

    Example: ``possible_links(np.array([[0.2], [0.9]]), 0.0)`` is ``("identity", "sigmoid")``.
    """
    n_outputs = answers.shape[1]
    slack = 2 * sigma + 4 * _EPS
    nonnegative = bool((answers >= -slack).all())
    if n_outputs > 1 and nonnegative:
        off = np.abs(answers.sum(axis=1) - 1)
        if (off <= _SUM_TO_ONE_SIGMAS * np.sqrt(n_outputs) * sigma + 8 * n_outputs * _EPS).all():
            return ("softmax",)
    found = ["identity"]
    if nonnegative and (answers <= 1 + slack).all():
        found.append("sigmoid")
    elif (np.abs(answers) <= 1 + slack).all():
        found.append("tanh")
    return tuple(found)
