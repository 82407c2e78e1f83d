"""What the range of a target's answers allows: last transformations, and float64 itself."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING_SIGMAS = (2.0, 5.0)  # by which a rounded answer, and the sum of K over sqrt(K), may be off
_NOISE_SIGMAS = (5.0, 5.0)  # the same of a noisy answer
_LEAST_ANSWER, _LARGEST_ANSWER = 1e-161, 1e151  # beyond, squares of answers become zero or infinite


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


def out_of_range(answers: Array) -> str:
    """Say what is wrong with answers whose squares float64 cannot hold; nothing of others."""
    size = float(np.abs(answers).max(initial=0.0))
    if size == 0 or _LEAST_ANSWER <= size <= _LARGEST_ANSWER:
        return ""
    return (
        f"must be between {_LEAST_ANSWER:g} and {_LARGEST_ANSWER:g} in size. Got {size:.2g} instead. "
        f"{'Multiply' if size < 1 else 'Divide'} them by a power of ten first."
    )
