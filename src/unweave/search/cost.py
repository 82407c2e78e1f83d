"""What a method is expected to cost: rows asked, seconds of computing, memory.

Rows are within a factor of two where a method succeeds at its first attempt. Seconds are for one thread of a
machine of 2020, without the target's own time; they are orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from unweave.probing.noise import NoiseKind

_FLOPS_PER_SECOND = 4e10  # of matrix products on one thread, float32 and float64 mixed
_FIT_STEPS = 8  # Gauss-Newton steps of a typical final fit
_INNER_STEPS = 1000  # of conjugate gradients, in all steps of such a fit
_CACHE_BYTES = 28  # kept per row asked, besides its answers
_WORKSPACE_MB = 100.0  # interpreter and libraries
ACTIVATIONS_UNTOLD = 6
"""Activations tried when none is told."""


@dataclass(frozen=True)
class Question:
    """What is to be recovered from what."""

    inputs: int
    outputs: int
    hidden: tuple[int, ...]
    """Widths, told or assumed."""
    told: bool = True
    """Whether the widths are told."""
    one_activation: bool = True
    """Whether the activation is told."""
    noise: NoiseKind = "float64"
    tight: bool = False
    """Whether rows are so few that the cheapest way is gone."""

    @property
    def width(self) -> int:
        """Width of the first hidden layer; 1 without any."""
        return self.hidden[0] if self.hidden else 1

    @property
    def parameters(self) -> int:
        """Weights and biases of the network."""
        widths = (self.inputs, *self.hidden, self.outputs)
        return sum((first + 1) * second for first, second in pairwise(widths))

    @property
    def activations(self) -> int:
        """Number of activations to try."""
        return 1 if self.one_activation else ACTIVATIONS_UNTOLD

    def cost(self, rows: float, seconds: float, megabytes: float, how: str) -> Cost:
        """Add the cache of answers and the libraries to what a method needs itself."""
        cache = 1e-6 * rows * (_CACHE_BYTES + 8 * self.outputs)
        return Cost(int(rows), float(seconds), float(_WORKSPACE_MB + cache + megabytes), how)


@dataclass(frozen=True)
class Cost:
    """Rows to ask, seconds to compute (the target's own not included), megabytes, and how it comes about."""

    rows: int
    seconds: float
    megabytes: float
    how: str


def fit_seconds(parameters: float, rows: float) -> float:
    """Seconds of Gauss-Newton through J^T J."""
    return _FIT_STEPS * (rows * parameters**2 + parameters**3 / 3) / _FLOPS_PER_SECOND


def iterated_fit_seconds(flops: float) -> float:
    """Seconds of Gauss-Newton by conjugate gradients, whose step takes ``flops``."""
    return _INNER_STEPS * flops / _FLOPS_PER_SECOND
