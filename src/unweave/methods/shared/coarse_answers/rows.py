"""The rows that networks are fitted to, and how well a network must fit them to explain them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.networks.activations import SOFTMAX
from unweave.networks.links import Link
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.memory import require
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries, Region

_COPIES_OF_AVERAGED_ROWS = 4  # kept, joined with more, in the target's inputs, as features of a fit


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """How rows are drawn, and which misfit their errors explain."""

    repeated_rows: int = 200
    """Rows asked twice to measure noise: they give its standard deviation to five percent."""
    corner_share: float = 0.5
    """Share of the rows in a box placed at its corners, where pre-activations spread most."""
    rounded_sigma_error: float = 0.02
    """Relative error of the standard deviation of a rounded answer."""
    noisy_sigma_error: float = 0.1
    """Relative error of the measured standard deviation of a noisy answer."""
    misfit_standard_errors: float = 5.0
    """Standard errors of a misfit, 1 / sqrt(2 n) each, by which it may exceed one."""
    float32_misfit: float = 10.0
    """Acceptable misfit in float32. Errors of arithmetic are neither independent nor known well (a softmax
    multiplies them), and a wrong network leaves far more."""
    float64_misfit: float = 300.0
    """The same in float64."""
    unexplained_share: float = 0.5
    """Residual over the answers' standard deviation beyond which a network explains next to nothing."""
    flat_slope: float = 0.1
    """Slope of a link, relative to its largest one, below which answers count less."""


class AnsweredRows:
    """Random rows of the region with their answers; more are asked as fits need them."""

    def __init__(
        self,
        view: NormalisedQueries,
        noise: Noise,
        rng: np.random.Generator,
        options: RowOptions | None = None,
    ) -> None:
        self.view, self.noise, self._rng = view, noise, rng
        self._options = options or RowOptions()
        self.sigma: Array = noise.sigma_per_output
        """(K,) standard deviation of an answer"""
        self.n_inputs, self.n_outputs = view.n_inputs, len(self.sigma)
        self.points: Array = np.empty((0, self.n_inputs))
        """(n, D) normalised inputs"""
        self.answers: Array = np.empty((0, self.n_outputs))
        """(n, K)"""
        self.precision: Array = np.empty(0)
        """(n,) how much smaller than sigma the errors of a row are: one, or less far out"""
        self.drawn: BoolArray = np.empty(0, dtype=np.bool_)
        """(n,) whether a row was drawn at random; the others were asked on lines or far out"""
        self._mixed_in: Region | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def errors(self) -> Array:
        """(n, K) standard deviation of every answer."""
        return np.asarray(self.sigma / self.precision[:, None])

    @property
    def region(self) -> Region:
        """Region that the points are normalized by."""
        return self.view.region

    @property
    def largest_sigma(self) -> float:
        """Standard deviation of an answer of the least precise output."""
        return float(self.sigma.max())

    def widen(self, factor: float) -> None:
        """Look at a region ``factor`` times as wide from now on."""
        if len(self):
            raise RuntimeError("rows of one region cannot be mixed with those of another")
        region = Region(self.region.location, factor * self.region.scale)
        self.view = NormalisedQueries(self.view.ledger, region)

    def mix_in(self, other: Region) -> None:
        """Take every other row from ``other`` from now on."""
        self._mixed_in = other

    def measure_sigma(self) -> None:
        """Measure sigma of answers that do not repeat themselves, from rows asked twice."""
        rows = self.sample(self._options.repeated_rows)
        difference = self.view(rows, fresh=True) - self.view(rows, fresh=True)
        self.sigma = np.sqrt(np.mean(difference**2, axis=0) / 2)

    def sample(self, count: int) -> Array:
        """Draw ``count`` fresh points (count, D)."""
        points = self.region.sample(count, self._rng)
        if self._mixed_in is not None:
            others = self._mixed_in.sample(len(points[1::2]), self._rng)
            points[1::2] = self.region.to_normalised(others)
        bounds = self.region.normalised_bounds
        if bounds is not None:
            corners = self._rng.random(count) < self._options.corner_share
            signs = self._rng.random((count, self.n_inputs)) < 0.5
            points[corners] = np.where(signs, *bounds)[corners]
        return points

    def extend_to(self, goal: float) -> None:
        """Ask random rows until there are ``goal`` of them."""
        missing = int(np.ceil(goal)) - len(self)
        if missing > 0:
            require(_COPIES_OF_AVERAGED_ROWS * np.ceil(goal) * self.n_inputs, "the rows of a fit")
            new = self.sample(missing)
            self.include(new, self.view(new), np.ones(missing), drawn=True)

    def include(self, points: Array, answers: Array, precision: Array, drawn: bool = False) -> None:
        """Add rows (n, D) that were asked, their answers (n, K), and how precise these are (n,)."""
        self.points = np.concatenate([self.points, points])
        self.answers = np.concatenate([self.answers, answers])
        self.precision = np.concatenate([self.precision, precision])
        self.drawn = np.concatenate([self.drawn, np.full(len(points), drawn)])

    def left_behind(self, values: Array, link: Link) -> Array:
        """Return what ``values`` (n, K) leave of the answers behind the link, to first order.

        r T' / (T'^2 + c^2), which is r / T' where the link is steep and little where it is flat.
        """
        slope = link.slope(self.answers)
        damped = slope**2 + (self._options.flat_slope * slope.max(axis=0)) ** 2
        return np.asarray((self.answers - values) * slope / damped)

    def acceptable_misfit(self) -> float:
        """Return the misfit up to which a network explains the answers, in their standard deviations."""
        options, kind = self._options, self.noise.kind
        if kind in ("float32", "float64"):
            return options.float32_misfit if kind == "float32" else options.float64_misfit
        sigma_error = options.rounded_sigma_error if kind == "rounded" else options.noisy_sigma_error
        return (
            1 + sigma_error + options.misfit_standard_errors / float(np.sqrt(2 * max(self.answers.size, 1)))
        )

    def leaves_most(self, misfit: float) -> bool:
        """Return whether a network with this misfit leaves most of the answers unexplained."""
        spread = float(np.sqrt(np.mean((self.answers.std(axis=0) / self.sigma) ** 2)))
        return not misfit < self._options.unexplained_share * spread


@dataclass(frozen=True, eq=False)
class FarRows:
    """Rows on lines, which show units that switch where random rows do not see them."""

    points: Array
    """(n, D)"""
    answers: Array
    """(n, K)"""
    precision: Array
    """(n,) see `AnsweredRows`."""
    sigma: Array
    """(K,)"""

    near: ClassVar[float] = 10.0
    """Largest normalised input of a row nearby."""

    @classmethod
    def behind(cls, link: Link, points: Array, z: Array, errors: Array, sigma: Array) -> FarRows:
        """Take rows (n, D) at which ``z`` (n, K) with ``errors`` (n, K) was read behind ``link``."""
        answers = link.apply(z)
        off = errors * np.abs(link.slope(answers))
        return cls(points, answers, (sigma / np.maximum(off, sigma)).min(axis=1), sigma)

    def joined(self, other: FarRows) -> FarRows:
        """Return these rows and the ``other`` ones after them."""
        return FarRows(
            np.concatenate([self.points, other.points]),
            np.concatenate([self.answers, other.answers]),
            np.concatenate([self.precision, other.precision]),
            self.sigma,
        )

    def at(self, chosen: IntArray) -> tuple[Array, Array, Array]:
        """Return points, answers and precision of the ``chosen`` rows."""
        return self.points[chosen], self.answers[chosen], self.precision[chosen]

    def every(self) -> tuple[Array, Array, Array]:
        """Return points, answers and precision of all rows."""
        return self.points, self.answers, self.precision

    def distances(self) -> Array:
        """Return the largest normalised input (n,) of every row."""
        return np.asarray(np.abs(self.points).max(axis=1, initial=0.0))

    def missed(self, model: NetworkParameters, most: float, share: float = 0.0) -> IntArray:
        """Return the rows that ``model`` misses by more than ``most`` errors, the worst first.

        An error of ``share`` times the distance of the row, relative to the answer or to the largest one
        nearby, is excused.
        """
        size = np.abs(self.answers)
        nearby = size[self.distances() <= self.near].max(initial=0.0)
        excused = share * self.distances() * np.maximum(nearby, size.max(axis=1, initial=0.0))
        return self._missed(model, most, excused)

    def missed_beyond_rounding(self, model: NetworkParameters, most: float, unit: float) -> IntArray:
        """Return the rows that ``model`` misses by more than ``most`` errors and than sums round by.

        In arithmetic that rounds by ``unit``, a sum of D terms is off by sqrt(D) unit times the sum of their
        sizes at most, as a rule: far more than a typical error where hundreds of them nearly cancel. A link
        passes on its slope's share of that.
        """
        hidden = np.abs(self.points) @ np.abs(model.weights[0]) + np.abs(model.biases[0])
        terms = hidden @ np.abs(model.weights[1]) + np.abs(model.biases[1])
        slope = np.abs(link_of(model).slope(self.answers)).max(axis=1)
        return self._missed(model, most, unit * np.sqrt(self.points.shape[1]) * terms.max(axis=1) * slope)

    def _missed(self, model: NetworkParameters, most: float, excused: Array) -> IntArray:
        off = np.abs(model.values(self.points) - self.answers)
        worst = (off / self.sigma).max(axis=1, initial=0.0) * self.precision
        order = np.argsort(-worst)
        counts = (worst > most) & (off.max(axis=1, initial=0.0) > excused)
        return np.asarray(order[counts[order]], dtype=np.int64)


def link_of(model: NetworkParameters) -> Link:
    """Return the last transformation of ``model``."""
    last = model.activations[-1]
    return Link(SOFTMAX if last is None else last.name)


def contributions(model: NetworkParameters, rows: AnsweredRows) -> Array:
    """Return the standard deviation (m,) of each unit's part of the answers, in sigmas, over all outputs.

    Of a unit with a kink, what is affine in the inputs does not count: other units can make up for it.
    """
    values = model.activation(rows.points @ model.weights[0] + model.biases[0])
    if not model.activation.smooth:
        affine = np.column_stack([rows.points, np.ones(len(rows))])
        values = values - affine @ np.linalg.lstsq(affine, values, rcond=None)[0]
    slopes = link_of(model).slope(rows.answers).mean(axis=0) / rows.sigma
    outgoing = np.abs(model.weights[1])
    if model.is_softmax:
        outgoing = np.hstack([outgoing, np.zeros((len(outgoing), 1))])
    return np.asarray(np.linalg.norm(outgoing * slopes, axis=1) * values.std(axis=0))
