"""Answers as sums of units: behind the last transformation, where the answers tell what is there.

Between kinks z = T^{-1}(y) is straight. Its error differs from row to row: probabilities in floating point
are precise relative to themselves, so that a softmax is read as long as none of them vanishes, and a sigmoid
down to any small answer, but up to answers near one only. A row that tells z too roughly is read as nan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.methods.shared.kinked.lines import LineNoise
from unweave.networks.activations import SOFTMAX
from unweave.networks.links import Link
from unweave.numerics.line_kinks import Line
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries, Region

LARGEST_ERROR = 5e4
"""Error of z, in roundings of its spread, beyond which a row on a line is not read."""
PRECISE = 1.5e3
"""The same of rows that a network is fitted to."""
_ROUNDINGS = 4.0  # by which an answer may be off: the exponentials, their sum, the quotient
_STEEPEST = 0.25  # slope of a sigmoid at zero, and of a class of a softmax
_PILOT_ROWS = 32  # that show the spread of z
_FEWEST_PILOTS = 8  # of them that must be read
_NARROWINGS = 6  # halvings of the region until they are
_SMALL = 1e-3  # probability below which a complement 1 - p lacks digits
_STRETCH_RATIO = 3.0  # between the rows that show how far a line is read
_LEAST_STRETCH = 1.0  # of a line in normalised inputs, either way
_COMPLEMENT_STEPS = 2 / float(np.finfo(np.float64).eps)  # per unit, of numbers near one


@dataclass(frozen=True, kw_only=True)
class ShortLines:
    """Lines on which roundings are measured."""

    lines: int = 16
    """How many."""
    rows: int = 8
    """Rows on each."""
    length: float = 1e-4
    """Their length in normalised inputs: few of them have a kink."""
    over_median: float = 1.3
    """Roundings that are counted, over what is typical."""


DEFAULT_SHORT_LINES = ShortLines()


class Reading:
    """Reads z in units of its spread; behind no link, all answers in units of their own."""

    def __init__(self, view: NormalisedQueries, noise: Noise, link: Link, spread: Array) -> None:
        self._view, self._noise, self.link = view, noise, link
        self.spread = spread
        """(K,) what is read is in units of."""
        self.error = float((noise.sigma_per_output / spread).max())
        """Typical error of what is read."""
        number = noise.number_format
        self._rounding = noise.relative if number is None else float(number.eps)
        self._complement = np.zeros(len(spread), dtype=np.bool_)
        self._roundings = _ROUNDINGS

    def measure_roundings(self, rng: np.random.Generator, options: ShortLines = DEFAULT_SHORT_LINES) -> None:
        """Measure by how many roundings of an answer z is off behind a link: short lines are straight."""
        if not self.is_limited or self._noise.number_format is None:
            return
        t = np.linspace(0.0, 1.0, options.rows)
        straight = np.linalg.qr(np.column_stack([np.ones_like(t), t]))[0]
        ratios = []
        for start in self.region.sample(options.lines, rng):
            direction = rng.standard_normal(len(start))
            line = Line(start, direction / np.linalg.norm(direction), 0.0, 1.0)
            z, errors = self.with_errors(line.points(options.length * t))
            if np.isfinite(z).all():
                left = z - straight @ (straight.T @ z)
                free = len(t) - straight.shape[1]
                ratios.append(float((np.sqrt((left**2).sum(axis=0) / free) / errors.mean(axis=0)).max()))
        if len(ratios) < _FEWEST_PILOTS:
            return
        measured = min(1.0, options.over_median * float(np.median(ratios)))
        self._roundings *= measured
        self.error *= measured

    @property
    def answer_sigma(self) -> Array | None:
        """(K,) error of an answer from that of z, which answers near the ends of their range do not show."""
        if not self.is_limited:
            return None
        from_z = _STEEPEST * self.error / _ROUNDINGS * self.spread
        return np.maximum(self._noise.sigma_per_output, from_z)

    @property
    def is_limited(self) -> bool:
        """Whether there are rows that are not read."""
        return self.link.name != "identity"

    @property
    def rows_left(self) -> int | None:
        """Rows that may still be sent; None for no limit."""
        return self._view.remaining

    @property
    def view(self) -> NormalisedQueries:
        """What is asked."""
        return self._view

    @property
    def region(self) -> Region:
        """Where it is read."""
        return self._view.region

    def __call__(self, points: Array) -> Array:
        """Return z (n, K) at points (n, d), nan where it is not precise."""
        return self.with_errors(points, PRECISE)[0]

    def with_errors(self, points: Array, largest: float = LARGEST_ERROR) -> tuple[Array, Array]:
        """Return z and its standard error, both (n, K), at points (n, d)."""
        answers = self._view(points)
        if not self.is_limited:
            return answers / self.spread, np.broadcast_to(self.error, answers.shape)
        if self.link.name == SOFTMAX and answers.shape[1] == 2:
            self._complement |= _complements(answers)
        return self._read(answers, largest)

    def is_read(self, values: Array, largest: float = PRECISE) -> BoolArray:
        """Whether rows (n,) at which z is about ``values`` (n, K) are read."""
        if not self.is_limited:
            return np.ones(len(values), dtype=np.bool_)
        with np.errstate(all="ignore"):
            answers = self.link.apply(values * self.spread)
        return np.asarray(np.isfinite(self._read(answers, largest)[0]).all(axis=1))

    def times_typical(self, factor: float) -> float:
        """Return the error that is ``factor`` times the typical one, in roundings of the spread."""
        return factor * self.error / self._rounding

    def stretch(self, line: Line, largest: float = LARGEST_ERROR) -> tuple[Line, LineNoise] | None:
        """Return the part of ``line`` around t = 0 that is read, and the errors there; None if none is."""
        if not self.is_limited:
            return line, LineNoise.constant(self.error)
        places, worst = [np.zeros(1)], [self.with_errors(line.points(np.zeros(1)), largest)[1].max(axis=1)]
        if not np.isfinite(worst[0]).all():
            return None
        for far in (line.low, line.high):
            count = max(1, int(np.ceil(np.log(abs(far) / _LEAST_STRETCH) / np.log(_STRETCH_RATIO))))
            t = np.sign(far) * np.minimum(_LEAST_STRETCH * _STRETCH_RATIO ** np.arange(count + 1), abs(far))
            values, errors = self.with_errors(line.points(t), largest)
            lost = np.flatnonzero(~np.isfinite(values).all(axis=1))
            read = int(lost[0]) if len(lost) else len(t)
            if read == 0:
                return None
            places.append(t[:read])
            worst.append(errors[:read].max(axis=1))
        t = np.concatenate(places)
        order = np.argsort(t)
        noise = LineNoise(t[order], np.concatenate(worst)[order])
        return replace(line, low=float(t.min()), high=float(t.max())), noise

    def _read(self, answers: Array, largest: float) -> tuple[Array, Array]:
        """Return z and its error, both (n, K), in units of the spread; nan where it is too large."""
        noise = self._noise
        with np.errstate(all="ignore"):
            if noise.number_format is None:
                errors = self.link.undone_errors(answers, noise.sigma_per_output, None)
            else:
                no_other = np.zeros(len(self.spread))
                errors = self._roundings * self.link.undone_errors(answers, no_other, noise.number_format)
            if self._complement.any():
                rounding = 1 / (_COMPLEMENT_STEPS * answers)
                errors = np.where(self._complement, np.maximum(errors, rounding), errors)
            if self.link.name == SOFTMAX:  # every class is told against the mean of all
                errors = np.broadcast_to(errors.max(axis=1, keepdims=True), errors.shape)
            errors = errors / self.spread
            values = self.link.undo(answers, noise.edge_sigma) / self.spread
        lost = ~((errors <= largest * self._rounding).all(axis=1) & np.isfinite(values).all(axis=1))
        values[lost], errors[lost] = np.nan, np.inf
        return values, errors


def _complements(answers: Array) -> BoolArray:
    """Which of two probabilities (n, 2) is computed as one minus the other, by its small values."""
    small = answers < _SMALL
    steps = answers * _COMPLEMENT_STEPS
    on_grid = ~small | (steps == np.round(steps))
    return np.asarray(on_grid.all(axis=0) & (small & (answers > 0)).any(axis=0))


def open_reading(
    view: NormalisedQueries, noise: Noise, link: Link, spread: Array, rng: np.random.Generator
) -> Reading | None:
    """Return what reads z, perhaps in a narrower region; None if too few rows tell it.

    ``spread`` (K,) is that of the answers.
    """
    if link.name == "identity":
        return Reading(view, noise, link, spread)
    for _ in range(_NARROWINGS):
        reading = Reading(view, noise, link, np.ones(len(spread)))
        z, errors = reading.with_errors(view.region.sample(_PILOT_ROWS, rng))
        seen = np.isfinite(z).all(axis=1)
        if seen.sum() >= _FEWEST_PILOTS:
            size = float(z[seen].std(axis=0).max()) or 1.0
            found = Reading(view, noise, link, np.full(len(spread), size))
            found.error = float(np.median(errors[seen].max(axis=1))) / size
            return found
        if view.region.has_box:
            return None
        view = NormalisedQueries(view.ledger, replace(view.region, scale=view.region.scale / 2))
    return None
