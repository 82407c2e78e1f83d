"""The last transformation of a target's answers, and how to look behind it.

y = T(z) with z = f(x) the sum of neurons. Hessians are taken of z = T^{-1}(y), because those of y itself,

    Hess T(f) = T' Hess f + T'' grad f grad f^T,

are no sum of the neurons' squares. Fits are made on y, where the errors are what they are; through T^{-1} an
error sigma of y becomes sigma / T'(z), so sites are taken where T' is not small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.errors import InvalidInput
from unweave.networks.activations import SOFTMAX
from unweave.probing.noise import Noise

LINKS = ("identity", "sigmoid", "tanh", SOFTMAX)
"""Output activations that are known here."""

_UNDECIDED = 0.12  # probability that the less likely side must have at a site, so that errors grow little
_EDGE = 0.5  # of sigma: answers nearer than this to the end of their range say nothing more
_EPS = float(np.finfo(np.float64).eps)
_FORMATS: dict[str, np.finfo[Any]] = {"float64": np.finfo(np.float64), "float32": np.finfo(np.float32)}


@dataclass(frozen=True)
class Link:
    """An output activation T by name."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in LINKS:
            raise InvalidInput(
                f"output_activation must be one of {', '.join(LINKS)}. Got {self.name!r} instead. "
                "Answers behind another function can be transformed before they are given to recover."
            )

    def undo(self, answers: Array, sigma: float) -> Array:
        """z (n, K) for answers (n, K); those at the end of the range are moved inside by a part of sigma.

        For softmax z is centred over the classes.
        """
        edge = max(_EDGE * sigma, float(np.finfo(np.float64).tiny))
        if self.name == "identity":
            return answers
        if self.name == "tanh":
            inside = np.clip(answers, -1 + max(edge, _EPS), 1 - max(edge, _EPS))
            return np.asarray(np.arctanh(inside))
        if self.name == "sigmoid":
            inside = np.clip(answers, edge, 1 - max(edge, _EPS))
            return np.asarray(np.log(inside) - np.log1p(-inside))
        logs = np.log(np.maximum(answers, edge))
        return np.asarray(logs - logs.mean(axis=1, keepdims=True))

    def undone(self, answers: Array, noise: Noise) -> Array:
        """z (n, K) for answers of this precision: probabilities in floating point may be of any size."""
        return self.undo(answers, 0.0 if noise.kind in _FORMATS else noise.sigma)

    def undone_errors(self, answers: Array, noise: Noise) -> Array:
        """(n, K) standard deviation of `undone`; infinite where the answers say nothing more about it.

        Probabilities in floating point are precise relative to themselves, however small, up to the rounding
        of the z that they were computed from.
        """
        errors = np.broadcast_to(noise.sigma_per_output, answers.shape)
        if self.name == "identity":
            return np.array(errors)
        size = np.abs(answers)
        number = _FORMATS.get(noise.kind)
        with np.errstate(divide="ignore", invalid="ignore"):
            if number is not None:
                typical = np.sqrt(np.mean(answers**2, axis=0))
                errors = size * np.maximum(errors / typical, number.eps) * (1 - np.log(size))
                errors[size < number.tiny / number.eps] = np.inf
            gain = answers if self.name == SOFTMAX else self.slope(answers)
            return np.where((gain > 0) & np.isfinite(errors), errors / gain, np.inf)

    def slope(self, answers: Array) -> Array:
        """T'(z) at z = T^{-1}(answers), (n, K); for softmax y (1 - y)."""
        if self.name == "identity":
            return np.ones_like(answers)
        if self.name == "tanh":
            return 1 - answers**2
        return answers * (1 - answers)

    def sees_well(self, answers: Array) -> BoolArray:
        """(n,) where errors of z are not much larger than elsewhere."""
        if self.name == "identity":
            return np.ones(len(answers), dtype=np.bool_)
        if self.name == "tanh":
            return np.asarray((np.abs(answers) < 1 - 2 * _UNDECIDED).all(axis=1))
        if self.name == "sigmoid":
            return np.asarray((np.minimum(answers, 1 - answers) > _UNDECIDED).all(axis=1))
        return np.asarray(np.partition(answers, -2, axis=1)[:, -2] > _UNDECIDED)
