"""How coarsely answers are published: rounded to decimals, with fresh noise, or as they are.

With f the network behind the target, a level publishes

    y(x) = round(f(x) + e, d)        e ~ N(0, noise^2), drawn anew for every answer,

where either part may be absent. A target that is itself imprecise keeps its own error before that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.search.journal import Stage

Kind = Literal["float64", "float32", "rounded", "noisy"]

MOST_DECIMALS = 12
"""With more decimals, float64 answers of size one cannot be told from unrounded ones."""


@dataclass(frozen=True)
class Level:
    """One way to publish answers; ``Level()`` is as they are."""

    decimals: int | None = None
    """Digits kept after the decimal point; None for all."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise, fresh for every answer."""

    @property
    def label(self) -> str:
        """The level in words, such as ``3 decimals``."""
        parts = []
        if self.noise > 0:
            parts.append(f"noise {self.noise:g}")
        if self.decimals is not None:
            parts.append(f"{self.decimals} decimal{'' if self.decimals == 1 else 's'}")
        return ", ".join(parts) or "as it is"

    @property
    def is_rounded(self) -> bool:
        """Whether the answers are rounded and nothing else: the same row always gets the same answer."""
        return self.decimals is not None and self.noise == 0

    @property
    def sigma(self) -> float:
        """Standard deviation of what the level adds to an answer; rounding errs by unit / sqrt(12)."""
        rounding = 0.0 if self.decimals is None else 10.0**-self.decimals / math.sqrt(12.0)
        return math.hypot(rounding, self.noise)


@dataclass(frozen=True)
class OwnPrecision:
    """What the target's answers are like before anything is done to them, as the first look saw it."""

    kind: Kind = "float64"
    sigma: float = 0.0

    @property
    def decimals(self) -> int | None:
        """Decimals that the target itself gives; None if it does not round."""
        return None if self.kind != "rounded" else round(-math.log10(self.sigma * math.sqrt(12.0)))

    @classmethod
    def of(cls, stages: tuple[Stage, ...]) -> OwnPrecision:
        """Read it from the stages of a recovery: the look, and the measurement of noise if there was one."""
        kind: Kind = "float64"
        sigma = 0.0
        for stage in stages:
            if stage.name == "look" and "noise" in stage.figures:
                kind = stage.figures["noise"]  # type: ignore[assignment]  # the look's own word
                sigma = float(stage.figures["sigma"])  # type: ignore[arg-type]
            elif stage.name == "noise" and "sigma" in stage.figures:
                sigma = float(stage.figures["sigma"])  # type: ignore[arg-type]
        return cls(kind, sigma)


class Published:
    """A network whose answers are published at a level: a target like any other, (n, D) -> (n, K)."""

    def __init__(self, network: Network, level: Level, seed: int, own: OwnPrecision | None = None) -> None:
        self._network, self._level = network, level
        self._own = own or OwnPrecision()
        self._rng = np.random.default_rng([seed, 0x6E6F6973])
        self.n_inputs = network.n_inputs

    def __call__(self, x: Array) -> Array:
        """Answer the rows of ``x`` (n, D)."""
        own, level = self._own, self._level
        if own.kind == "float32":  # the inputs too: what lies between two such numbers cannot be asked
            answers = self._network(x.astype(np.float32)).astype(np.float32).astype(np.float64)
        else:
            answers = self._network(x)
        if own.kind == "noisy":
            answers = answers + own.sigma * self._rng.standard_normal(answers.shape)
        if own.decimals is not None:
            answers = np.round(answers, own.decimals)
        if level.noise > 0:
            answers = answers + level.noise * self._rng.standard_normal(answers.shape)
        return answers if level.decimals is None else np.round(answers, level.decimals)


def checked_levels(decimals: object, noise: object) -> tuple[Level, ...]:
    """Return the levels, each once: as it is, then by ``decimals``, then by ``noise``, fine to coarse."""
    try:
        digits = [int(d) for d in decimals]  # type: ignore[attr-defined]
        whole = all(int(d) == d and not isinstance(d, bool) for d in decimals)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        digits, whole = [], False
    if not whole or not all(0 <= d <= MOST_DECIMALS for d in digits):
        raise InvalidInput(
            f"decimals must be whole numbers from 0 to {MOST_DECIMALS}. Got {decimals!r} instead. "
            "For example (6, 4, 3, 2)."
        )
    try:
        sigmas = [float(s) for s in noise]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        sigmas = [math.nan]
    if not all(0 < s < math.inf for s in sigmas):
        raise InvalidInput(
            f"noise must be positive standard deviations. Got {noise!r} instead. For example (1e-3, 1e-2)."
        )
    rounded = [Level(decimals=d) for d in sorted(set(digits), reverse=True)]
    return (Level(), *rounded, *(Level(noise=s) for s in sorted(set(sigmas))))
