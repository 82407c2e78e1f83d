"""Where the target is asked: normalised coordinates, and a view of the ledger through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray, unmasked
from unweave.errors import InvalidInput
from unweave.execution.executor import Executor
from unweave.targets.differentiation import Derivatives
from unweave.targets.queries import Queries

_EPS = float(np.finfo(np.float64).eps)
_BOX_ROUNDING = 16 * _EPS  # of the largest of |low|, |high|: what a round trip of coordinates may lose
_NEAR_SCALES = 10.0  # from the center: points within this many scales are not far out
_UNIFORM_WIDTH = float(np.sqrt(12.0))  # a uniform law on an interval of this width has unit variance


@dataclass(frozen=True, eq=False)
class Region:
    """The part of input space where a target is asked, with normalised coordinates u:

        x = location + scale * u        (elementwise; all arrays (D,)).

    In u every feature varies by about one. ``low`` and ``high``, both or neither, bound the inputs x.
    """

    location: Array
    scale: Array
    low: Array | None = None
    high: Array | None = None

    def __post_init__(self) -> None:
        for name in ("location", "scale", "low", "high"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _read_only_vector(value, name))
        if self.location.shape != self.scale.shape:
            raise InvalidInput(
                f"scale must have the shape of location, {self.location.shape}. "
                f"Got {self.scale.shape} instead."
            )
        if not (self.scale > 0).all():
            raise InvalidInput(f"scale must be positive. Got {self.scale.min()} as smallest entry instead.")
        self._check_box()

    def _check_box(self) -> None:
        if (self.low is None) != (self.high is None):
            raise InvalidInput("low and high must be given together. Only one of them was.")
        if self.low is None or self.high is None:
            return
        if self.low.shape != self.location.shape or self.high.shape != self.location.shape:
            raise InvalidInput(
                f"low and high must have shape {self.location.shape}. Got {self.low.shape} and "
                f"{self.high.shape} instead."
            )
        if not (self.low < self.high).all():
            worst = int(np.argmin(self.high - self.low))
            raise InvalidInput(
                f"low must be smaller than high in every feature. Got {self.low[worst]} and "
                f"{self.high[worst]} in feature {worst} instead."
            )

    def covers(self, other: Region) -> bool:
        """Whether typical points of ``other`` are not far out in this region's coordinates."""
        reach = np.abs(other.location - self.location) + 3 * other.scale
        return bool((reach <= _NEAR_SCALES * self.scale).all())

    @classmethod
    def standard(cls, n_inputs: int) -> Region:
        """Return the region with u = x: every one of ``n_inputs`` features around 0 with scale 1."""
        return cls(np.zeros(n_inputs), np.ones(n_inputs))

    @classmethod
    def from_domain(cls, low: Any, high: Any, n_inputs: int) -> Region:
        """Return the box low <= x <= high (scalars or (D,)), scaled with unit variance of the uniform law."""
        bounds = [_broadcast(low, "low", n_inputs), _broadcast(high, "high", n_inputs)]
        halves = bounds[0] / 2, bounds[1] / 2  # exact, and neither their sum nor their difference overflows
        scale = (halves[1] - halves[0]) * (2 / _UNIFORM_WIDTH)
        return cls(halves[0] + halves[1], np.where(scale > 0, scale, 1.0), *bounds)

    @classmethod
    def from_examples(cls, x: Any) -> Region:
        """Return the region of the rows of ``x`` (n >= 2, D): mean and standard deviation per feature.

        A feature that never varies keeps its value as location and gets the scale max(|value|, 1).
        """
        rows = np.asarray(unmasked(x), dtype=np.float64)
        if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
            raise InvalidInput(
                f"examples must be an array of shape (n >= 2, inputs). Got shape {rows.shape} instead."
            )
        if not np.isfinite(rows).all():
            raise InvalidInput(
                "examples must be finite. Got NaN or infinite entries instead. Drop those rows."
            )
        location, scale = rows.mean(axis=0), rows.std(axis=0)
        magnitude = np.abs(rows).max(axis=0)
        constant = scale <= 8 * _EPS * magnitude  # the mean of equal numbers may be off by rounding
        return cls(location, np.where(constant, np.maximum(magnitude, 1.0), scale))

    @property
    def n_inputs(self) -> int:
        """Number of features D."""
        return int(self.location.size)

    @property
    def has_box(self) -> bool:
        """Whether the inputs are bounded."""
        return self.low is not None

    @property
    def normalised_bounds(self) -> tuple[Array, Array] | None:
        """The box in normalised coordinates, ((D,), (D,)), or None."""
        if self.low is None or self.high is None:
            return None
        return (self.low - self.location) / self.scale, (self.high - self.location) / self.scale

    def to_inputs(self, u: Array) -> Array:
        """Return x = location + scale * u for u (..., D), moved into the box if rounding put it outside."""
        x = self.location + self.scale * np.asarray(u, dtype=np.float64)
        if self.low is None or self.high is None:
            return x
        slack = _BOX_ROUNDING * np.maximum(np.abs(self.low), np.abs(self.high))
        clipped = np.clip(x, self.low, self.high)
        return np.where(np.abs(x - clipped) <= slack, clipped, x)

    def to_normalised(self, x: Array) -> Array:
        """Return u = (x - location) / scale for x (..., D)."""
        u: Array = (np.asarray(x, dtype=np.float64) - self.location) / self.scale
        return u

    def contains(self, u: Array) -> BoolArray:
        """Return for each row of ``u`` (..., D) whether it lies in the box (up to rounding). Shape (...)."""
        x = self.to_inputs(u)
        if self.low is None or self.high is None:
            return np.ones(x.shape[:-1], dtype=np.bool_)
        return np.asarray(((x >= self.low) & (x <= self.high)).all(axis=-1))

    def sample(self, n: int, rng: np.random.Generator, margin: float = 0.0) -> Array:
        """Draw ``n`` normalised points (n, D).

        Standard Gaussian without a box; with a box uniform in it, at least ``margin`` (in normalised units)
        away from each face, so that steps of that size stay inside.
        """
        bounds = self.normalised_bounds
        if bounds is None:
            return rng.standard_normal((n, self.n_inputs))
        low, high = bounds[0] + margin, bounds[1] - margin
        if not (low < high).all():
            narrowest = float((bounds[1] - bounds[0]).min())
            raise InvalidInput(
                f"margin must be smaller than half the narrowest side of the box, {narrowest / 2:.3g} in "
                f"normalised units. Got {margin:.3g} instead. Take smaller steps or a wider domain."
            )
        return rng.uniform(low, high, size=(n, self.n_inputs))


class NormalisedQueries:
    """A ledger seen through a region: asked in normalised coordinates, (n, D) -> (n, m).

    With a box, points outside it are a mistake of the caller: they raise `InvalidInput` and are never sent.
    """

    def __init__(self, ledger: Queries, region: Region) -> None:
        if ledger.n_inputs != region.n_inputs:
            raise InvalidInput(
                f"region must have {ledger.n_inputs} inputs, as the target has. "
                f"Got {region.n_inputs} instead."
            )
        self.ledger = ledger
        self.region = region

    def __call__(self, u: Any, *, fresh: bool = False) -> Array:
        """Answer the normalised points ``u`` (n, D): (n, m) float64. ``fresh`` as in `Queries`."""
        return self.ledger(self._to_inputs(u), fresh=fresh)

    def differentiate(self, u: Any, directions: Array | None = None) -> Derivatives:
        """Return derivatives with respect to u at points ``u`` (n, D); see `Queries.differentiate`."""
        scale = self.region.scale
        along = None if directions is None else scale[:, None] * directions
        found = self.ledger.differentiate(self._to_inputs(u), along)
        products = None if found.products is None else found.products * scale
        return Derivatives(found.values, found.gradients * scale, products)

    def _to_inputs(self, u: Any) -> Array:
        """Return the target's own inputs at ``u`` (n, D), which must lie in the box."""
        points = np.asarray(u, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.n_inputs:
            raise InvalidInput(
                f"u must be an array of shape (n, {self.n_inputs}). Got shape {points.shape} instead."
            )
        if self.region.has_box:
            outside = ~self.region.contains(points)
            if outside.any():
                raise InvalidInput(
                    f"u must lie in the box of the domain. Got {int(outside.sum())} of {outside.size} points "
                    "outside instead. Sample with a margin that covers the steps."
                )
        return self.region.to_inputs(points)

    @property
    def n_inputs(self) -> int:
        """Number of inputs D."""
        return self.ledger.n_inputs

    @property
    def n_outputs(self) -> int | None:
        """Number of outputs m; None until the first answer."""
        return self.ledger.n_outputs

    @property
    def sent(self) -> int:
        """Rows sent to the target so far."""
        return self.ledger.sent

    @property
    def cache_hits(self) -> int:
        """Rows answered without asking the target."""
        return self.ledger.cache_hits

    @property
    def remaining(self) -> int | None:
        """Rows that may still be sent; None when there is no limit."""
        return self.ledger.remaining

    @property
    def executor(self) -> Executor:
        """Executor used for this run."""
        return self.ledger.executor

    @property
    def seconds_in_target(self) -> float:
        """Seconds spent inside the target."""
        return self.ledger.seconds_in_target

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline; None when there is none."""
        return self.ledger.seconds_left


def _read_only_vector(value: Any, name: str) -> Array:
    """Return a read-only float64 copy of ``value`` (D,), checked to be finite."""
    vector = np.array(value, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0:
        raise InvalidInput(
            f"{name} must be a vector with one entry per input. Got shape {vector.shape} instead."
        )
    if not np.isfinite(vector).all():
        raise InvalidInput(f"{name} must be finite. Got {value} instead.")
    vector.setflags(write=False)
    return vector


def _broadcast(bound: Any, name: str, n_inputs: int) -> Array:
    """Return a bound given as a scalar or (D,) as (D,)."""
    vector = np.asarray(bound, dtype=np.float64)
    if vector.ndim > 1 or (vector.ndim == 1 and vector.shape[0] != n_inputs):
        raise InvalidInput(
            f"{name} must be a number or {n_inputs} numbers, one per input. Got shape {vector.shape} instead."
        )
    return np.broadcast_to(vector, (n_inputs,))
