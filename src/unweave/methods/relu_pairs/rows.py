"""Rows that two kinked layers are fitted to: random ones, and others that no fit may leave out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray
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

    def ask(self, points: Array) -> Array:
        """Return answers (n, K) at points (n, d), which join the rows."""
        answers: Array = self.view(points)
        self.points = np.concatenate([self.points, points])
        self.answers = np.concatenate([self.answers, answers])
        return answers

    def keep(self, points: Array, answers: Array) -> None:
        """Make every later fit take these rows."""
        self.kept_points = np.concatenate([self.kept_points, points])
        self.kept_answers = np.concatenate([self.kept_answers, answers])

    def given_before(self) -> tuple[Array, Array]:
        """Return all rows (n, d) and answers (n, K) of the run so far that were kept as evidence."""
        inputs, answers = self.view.ledger.witnesses.rows()
        return self.view.region.to_normalised(inputs), answers

    def misfits(self, network: Network, points: Array, answers: Array) -> Array:
        """Return errors (n,) at rows in errors of an answer, which grow with the length of x."""
        size = 1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1])
        errors = np.abs(network(points) - answers) / self._sigma
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
