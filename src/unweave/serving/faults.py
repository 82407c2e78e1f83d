"""Faults that a real endpoint has, on purpose and from a seed."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from enum import Enum

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput


class Fault(Enum):
    """What happens to a request."""

    NONE = "answered"
    DROP = "the connection is closed without an answer"
    TRUNCATED = "JSON that ends too early"
    CUT = "the connection is closed in the middle of the answer"
    HTML = "a page instead of JSON"
    ERROR = "status 500"
    SHAPE = "one answer too few"


CORRUPTIONS = (Fault.TRUNCATED, Fault.CUT, Fault.HTML, Fault.ERROR, Fault.SHAPE)
"""What ``corrupt`` chooses from, each as likely as the others."""


@dataclass(frozen=True)
class Faults:
    """How often a request goes wrong, and how the answers are made worse. The default is a perfect server."""

    drop: float = 0.0
    """Share of requests that get no answer."""
    delay: float = 0.0
    """Share of requests that are answered late."""
    delay_seconds: float = 0.5
    """How late."""
    corrupt: float = 0.0
    """Share of requests whose answer is damaged, in one of the ways of `CORRUPTIONS`."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise on every answer, before rounding."""
    decimals: int | None = None
    """Decimals that answers are rounded to; None for all."""
    seed: int = 0
    """Random seed; which request is hit depends on the order of arrival."""

    def __post_init__(self) -> None:
        for name in ("drop", "delay", "corrupt"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} must be between 0 and 1. Got {getattr(self, name)!r} instead.")
        if self.drop + self.corrupt > 1:
            raise InvalidInput(
                f"drop + corrupt must be at most 1. Got {self.drop + self.corrupt} instead: they exclude "
                "each other."
            )
        for name in ("delay_seconds", "noise"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{name} must be >= 0. Got {getattr(self, name)!r} instead.")


class Dice:
    """Draws the fate of each request; shared by all threads."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._lock = threading.Lock()
        fates, noise = np.random.SeedSequence(faults.seed).spawn(2)
        self._fates = np.random.default_rng(fates)
        self._noise = np.random.default_rng(noise)

    def fate(self) -> tuple[Fault, float]:
        """Return what happens to the next request, and after how many seconds."""
        faults = self._faults
        with self._lock:
            wrong, late, which = self._fates.uniform(size=3)
        delay = faults.delay_seconds if late < faults.delay else 0.0
        if wrong < faults.drop:
            return Fault.DROP, delay
        if wrong < faults.drop + faults.corrupt:
            return CORRUPTIONS[int(which * len(CORRUPTIONS))], delay
        return Fault.NONE, delay

    def worsen(self, answers: Array) -> Array:
        """Return the answers with noise, then rounded."""
        if self._faults.noise > 0:
            with self._lock:
                answers = answers + self._faults.noise * self._noise.standard_normal(answers.shape)
        return answers if self._faults.decimals is None else np.round(answers, self._faults.decimals)
