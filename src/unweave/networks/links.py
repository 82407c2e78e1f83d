"""The last transformation of a target's answers, and how to look behind it.

y = T(z), where z = f(x) is a sum of units. Hessians are taken of z = T^{-1}(y): those of y itself,

    Hess T(f) = T' Hess f + T'' grad f grad f^T,

are no sum of the units' squares. Fits are made on y, whose errors are known. Through T^{-1} an error sigma of
y becomes sigma / T'(z), so sites are taken where T' is not small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.errors import InvalidInput
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.evaluation import softmax_in_place

_RANGES = {
    "identity": (-np.inf, np.inf),
    "sigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    SOFTMAX: (0.0, 1.0),
    "exp": (0.0, np.inf),
}

ALL_LINKS = tuple(_RANGES)
"""Names of the output activations that can be undone."""
LINKS = tuple(name for name in ALL_LINKS if name != "exp")
"""Those behind which hidden layers are looked for."""

_LEAST_LIKELY_SIDE = 0.12  # probability of the less likely side at a site: below, errors of z grow too much
_EDGE_SIGMAS = 0.5  # an answer nearer to an end of its range than this says nothing more about z
_SATURATED_SHARE = 1e-6  # of the range: nearer to an end, T^{-1} is mostly rounding
_READABLE = 0.15  # standard deviation of z beyond which noise alone may have made the answer
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Link:
    """An output activation T by name."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in ALL_LINKS:
            raise InvalidInput(
                f"output_activation must be one of {', '.join(ALL_LINKS)}. Got {self.name!r} instead. "
                "Answers behind another function can be transformed before they are given to recover."
            )

    def inverse(self, answers: Array) -> Array:
        """T^{-1} of answers (..., K), infinite at the ends of their range.

        Behind a softmax z is open up to a constant: the mean over the classes is zero.
        """
        if self.name == SOFTMAX:
            logs = np.log(answers)
            return np.asarray(logs - logs.mean(axis=-1, keepdims=True))
        undo = get_activation(self.name).inverse
        assert undo is not None  # every link's activation has one
        return undo(answers)

    def apply(self, z: Array) -> Array:
        """T of z (n, K)."""
        if self.name != SOFTMAX:
            return get_activation(self.name)(z)
        answers = np.array(z)
        softmax_in_place(answers)
        return answers

    def undo(self, answers: Array, sigma: float) -> Array:
        """z (n, K) for answers (n, K) of standard deviation ``sigma``.

        Answers at an end of their range are first moved inside by a part of ``sigma``.
        """
        edge = max(_EDGE_SIGMAS * sigma, float(np.finfo(np.float64).tiny))
        if self.name == "identity":
            return answers
        if self.name == "tanh":
            return self.inverse(np.clip(answers, -1 + max(edge, _EPS), 1 - max(edge, _EPS)))
        if self.name == "sigmoid":
            return self.inverse(np.clip(answers, edge, 1 - max(edge, _EPS)))
        return self.inverse(np.maximum(answers, edge))

    def undone_errors(self, answers: Array, sigma: Array, number: np.finfo[Any] | None) -> Array:
        """Standard deviation (n, K) of z; infinite where the answers (n, K) say nothing more about it.

        ``sigma`` (K,) is that of the answers. ``number`` is the floating-point format whose rounding is all
        their error, or None. Probabilities in floating point are precise relative to themselves, however
        small, up to the rounding of the z they were computed from.
        """
        errors = np.broadcast_to(sigma, answers.shape)
        if self.name == "identity":
            return np.array(errors)
        size = np.abs(answers)
        with np.errstate(divide="ignore", invalid="ignore"):
            if number is not None:
                typical = np.sqrt(np.mean(answers**2, axis=0))
                share = np.maximum(errors / typical, number.eps)
                if self.name == "exp":  # answers of all magnitudes, whose typical error says nothing
                    share = np.full_like(share, number.eps)
                errors = size * share * (1 + np.abs(np.log(size)))
                errors[size < number.tiny / number.eps] = np.inf
            gain = answers if self.name == SOFTMAX else self.slope(answers)
            return np.where((gain > 0) & np.isfinite(errors), errors / gain, np.inf)

    def contrasts(
        self, answers: Array, sigma: Array, number: np.finfo[Any] | None, reference: int | None = None
    ) -> tuple[Array, Array]:
        """Return numbers that are affine where z is, and their standard deviations, both (n, K).

        z itself, or for a softmax the log ratios of all classes to class ``reference``. Standard
        deviations are infinite where the answers (n, K) say nothing, and the number is 0 there.
        """
        with np.errstate(all="ignore"):
            errors = self.undone_errors(answers, sigma, number)
            if self.name == SOFTMAX:
                assert reference is not None
                logs = np.log(answers)
                values, known = logs - logs[:, [reference]], errors[:, [reference]]
                errors = np.where(np.arange(answers.shape[1]) == reference, known, np.hypot(errors, known))
            else:
                values = self.inverse(answers)
        seen = np.isfinite(values) & ((errors < _READABLE) | (self.name == "identity"))
        if number is not None:
            # z is a sum of terms, whose rounding does not shrink where they cancel.
            size = np.abs(np.where(seen, values, 0.0)).max(axis=0, initial=0.0)
            errors = np.maximum(errors, number.eps * size)
        return np.where(seen, values, 0.0), np.where(seen, errors, np.inf)

    def slope(self, answers: Array) -> Array:
        """T'(z) at z = T^{-1}(answers), (n, K); for softmax y (1 - y)."""
        if self.name == "identity":
            return np.ones_like(answers)
        if self.name == "tanh":
            return 1 - answers**2
        return answers if self.name == "exp" else answers * (1 - answers)

    def fits(self, answers: Array) -> bool:
        """Whether all answers lie strictly inside the range of T."""
        low, high = _RANGES[self.name]
        return bool((answers > low).all() and (answers < high).all())

    def unsaturated(self, answers: Array) -> BoolArray:
        """Which rows of answers (..., K) are far enough inside the range that z is not mostly rounding."""
        low, high = _RANGES[self.name]
        if not np.isfinite(high):
            return np.ones(answers.shape[:-1], dtype=np.bool_)
        margin = _SATURATED_SHARE * (high - low)
        return np.asarray(((answers > low + margin) & (answers < high - margin)).all(axis=-1))

    def sees_well(self, answers: Array) -> BoolArray:
        """(n,) rows of answers (n, K) where errors of z are not much larger than elsewhere."""
        if self.name in ("identity", "exp"):
            return np.ones(len(answers), dtype=np.bool_)
        if self.name == "tanh":
            return np.asarray((np.abs(answers) < 1 - 2 * _LEAST_LIKELY_SIDE).all(axis=1))
        if self.name == "sigmoid":
            return np.asarray((np.minimum(answers, 1 - answers) > _LEAST_LIKELY_SIDE).all(axis=1))
        return np.asarray(np.partition(answers, -2, axis=1)[:, -2] > _LEAST_LIKELY_SIDE)
