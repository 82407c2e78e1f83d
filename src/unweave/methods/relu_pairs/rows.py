"""Rows that two kinked layers are fitted to: random ones, and others that no fit may leave out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.methods.shared.coarse_answers.sharpened import SharpenedQueries
from unweave.networks.network import Network
from unweave.numerics.line_kinks import Line
from unweave.targets.region import NormalisedQueries


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Where random rows lie."""

    spreads: tuple[float, ...] = (1.0, 2.0, 3.0)
    """Factors on the region, in turn, without a box."""
    corner: float = 0.1
    """Distance from a corner of the box, relative to its half width, of ends between which rows lie."""
    most_corners: int = 1024
    """Corners of the box that are asked."""
    around: int = 400
    """Rows that are asked around those that disagree, ..."""
    farthest: float = 0.5
    """... at most so far on the way to anywhere."""


class PairRows:
    """Rows and answers, in normalised inputs of one ``view``; ``sigma`` (K,) is the error of an answer."""

    def __init__(
        self, view: NormalisedQueries, sigma: Array, rng: np.random.Generator, options: RowOptions
    ) -> None:
        self.view, self._sigma, self._rng, self._options = view, sigma, rng, options
        self.points, self.answers = np.zeros((0, view.n_inputs)), np.zeros((0, len(sigma)))
        self.kept_points, self.kept_answers = self.points, self.answers

    def draw(self, count: int) -> Array:
        """Return points (n, d) from all over the region; half of those in a box lie between its corners."""
        points: Array = self.view.region.sample(max(count, 0), self._rng)
        bounds = self.view.region.normalised_bounds
        if bounds is None:
            return np.asarray(points * np.resize(self._options.spreads, len(points))[:, None])
        places = points[::2]
        sides = self._rng.choice([-1.0, 1.0], (2, *places.shape))
        ends = sides * (1 - self._options.corner * self._rng.random(sides.shape))
        shares = self._rng.random((len(places), 1))
        middle, half = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
        places[:] = middle + half * (shares * ends[0] + (1 - shares) * ends[1])
        return points

    def draw_around(self, points: Array) -> Array:
        """Return points near those of (n, d): a unit that hardly any row sees acts there, too."""
        options = self._options
        starts = points[self._rng.integers(len(points), size=options.around)]
        ends = self.view.region.sample(options.around, self._rng)
        shares = options.farthest * self._rng.random((options.around, 1)) ** 2
        return np.asarray(starts + shares * (ends - starts))

    def ask(self, points: Array) -> tuple[Array, Array]:
        """Return those of the points (n, d) that are read, and answers (n, K); they join the rows."""
        answers: Array = self.view(points)
        read = np.isfinite(answers).all(axis=1)
        points, answers = points[read], answers[read]
        self.points = np.concatenate([self.points, points])
        self.answers = np.concatenate([self.answers, answers])
        return points, answers

    def keep(self, points: Array, answers: Array) -> None:
        """Make every later fit take these rows."""
        self.kept_points = np.concatenate([self.kept_points, points])
        self.kept_answers = np.concatenate([self.kept_answers, answers])

    def given_before(self) -> tuple[Array, Array]:
        """Return all rows (n, d) and answers (n, K) of the run so far that were kept as evidence.

        Corners of a box are among them: a weight may act there and nowhere else.
        """
        corners = self._corners()
        at_corners = self.view(corners)
        inputs, answers = self.view.ledger.witnesses.rows()
        points = np.concatenate([self.view.region.to_normalised(inputs), corners])
        return points, np.concatenate([answers, at_corners])

    def _corners(self) -> Array:
        """Return corners (n, d) of the box, all of them where they are few."""
        bounds, d, most = self.view.region.normalised_bounds, self.view.n_inputs, self._options.most_corners
        if bounds is None:
            return np.zeros((0, d))
        if 2**d <= most:
            upper = np.arange(2**d)[:, None] >> np.arange(d) & 1 == 1
        else:
            upper = np.random.default_rng(0).random((most, d)) < 0.5  # the same ones whenever they are heard
        return np.where(upper, bounds[1], bounds[0])

    @property
    def half(self) -> float:
        """By how much an answer that was given is off, where what is fitted is sharper."""
        return self.view.half if isinstance(self.view, SharpenedQueries) else 0.0

    def misfits(self, network: Network, points: Array, answers: Array, allowed: float = 0.0) -> Array:
        """Return errors (n,) at rows, beyond those allowed, in errors of an answer, which grow with |x|."""
        size = 1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1])
        errors = np.maximum(np.abs(network(points) - answers) - allowed, 0.0) / self._sigma
        return np.asarray(errors.max(axis=1) / size)


def segments_between(points: Array, agree: BoolArray, count: int, rng: np.random.Generator) -> list[Line]:
    """Return ``count`` segments between points (n, d) that agree with a network and others near them."""
    good, bad = points[agree], points[~agree]
    if not len(good):
        return []
    lines = []
    for end in bad[rng.permutation(len(bad))[:count]]:
        step = end - good[np.argmin(((good - end) ** 2).sum(axis=1))]
        length = float(np.linalg.norm(step))
        lines.append(Line(end - step / 2, step / length, -length / 2, length / 2))
    return lines
