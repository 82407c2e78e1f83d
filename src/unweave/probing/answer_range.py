"""Which last transformations the range of a target's answers allows."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING_SIGMAS = (2.0, 5.0)  # by which a rounded answer, and the sum of K over sqrt(K), may be off
_NOISE_SIGMAS = (5.0, 5.0)  # the same of a noisy answer


def possible_links(
    answers: Array, sigma: float, *, noisy: bool = False, eps: float = _EPS
) -> tuple[str, ...]:
    """Return the names of output activations whose range holds all ``answers`` (n, K), the simplest first.

    ``sigma`` is the standard deviation of their errors, of any size if they are ``noisy``; ``eps`` is that of
    the floating-point format they were computed in. Rows that sum to one are the probabilities of K > 1
    classes, and nothing else.

    Example: ``possible_links(np.array([[0.2], [0.9]]), 0.0)`` is ``("identity", "sigmoid")``.
    """
    n_outputs = answers.shape[1]
    most, most_of_sum = _NOISE_SIGMAS if noisy else _ROUNDING_SIGMAS
    slack = most * sigma + 4 * _EPS
    nonnegative = bool((answers >= -slack).all())
    if n_outputs > 1 and nonnegative:
        off = np.abs(answers.sum(axis=1) - 1)
        if (off <= most_of_sum * np.sqrt(n_outputs) * sigma + 8 * n_outputs * eps).all():
            return ("softmax",)
    found = ["identity"]
    if nonnegative and (answers <= 1 + slack).all():
        found.append("sigmoid")
    elif (np.abs(answers) <= 1 + slack).all():
        found.append("tanh")
    return tuple(found)
