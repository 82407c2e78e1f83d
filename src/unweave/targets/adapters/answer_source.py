"""What every adapter is: a function of rows that may know its own number of inputs, and nothing else."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput, PartialAnswers, install_hint

_SUM_TO_ONE = 16 * float(np.finfo(np.float32).eps)  # what single precision leaves of p + (1 - p) = 1


class AnswerSource(Protocol):
    """Answers rows x (n, D) with (n,) or (n, K) numbers."""

    @property
    def n_inputs(self) -> int | None:
        """D as the target declares it; None where that cannot be read."""

    def __call__(self, x: Array) -> Any:
        """Answer the rows of ``x`` (n, D)."""


def loaded(name: str) -> ModuleType | None:
    """Return the module ``name`` if the program uses it already; it is never imported for the question.

    An object of a framework cannot exist before the framework was imported, so this is all that is needed
    to tell whether something is, say, a torch module.
    """
    return sys.modules.get(name)


def optional_package(name: str, extra: str, purpose: str) -> ModuleType:
    """Import ``name``, or say with which extra of unweave it comes and what it is needed for."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidInput(
            f"The package {name} must be installed to {purpose}. Got {error} instead. {install_hint(extra)}"
        ) from error


def width_of_shape(shape: Sequence[Any]) -> int | None:
    """Return the number of entries of a row of ``shape`` (without the batch); None if a size is open.

    >>> width_of_shape([28, 28]), width_of_shape([None])
    (784, None)
    """
    sizes = [size for size in shape if isinstance(size, int) and size > 0]
    return math.prod(sizes) if len(sizes) == len(shape) else None


def no_answer(message: str) -> PartialAnswers:
    """Return the error of a call that got no answer at all, which the ledger tells in these words."""
    return PartialAnswers(message, np.empty(0, dtype=np.int64), np.empty((0, 0)))


def squeezed(answers: Array) -> Array:
    """Return ``answers`` (n, ...) without axes of length one: (n,) or (n, K) where that is all there is."""
    return answers.reshape(answers.shape[0], *(size for size in answers.shape[1:] if size != 1))


def one_probability(answers: Array) -> Array:
    """Return the second of two columns (p0, p1) with p0 + p1 = 1; anything else as it is.

    A binary classifier with softmax scores z0, z1 says p1 = 1 / (1 + exp(-(z1 - z0))): one sigmoid output,
    of which the other column holds nothing more.
    """
    if answers.ndim != 2 or answers.shape[1] != 2 or not answers.shape[0]:
        return answers
    complementary = np.abs(answers.sum(axis=1) - 1.0) <= _SUM_TO_ONE
    return answers[:, 1] if complementary.all() else answers
