"""The rows that networks are fitted to, and how well a network must fit them to explain them."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.networks.links import Link
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries, Region

_REPEATED_ROWS = 200  # asked twice each: sigma to five per cent
_CORNERS = 0.5  # of the rows in a box lie at its corners, where pre-activations spread most
_SIGMA_KNOWN = {"rounded": 0.02, "noisy": 0.1}  # relative error of the standard deviation of an answer
_MISFIT_SIGMAS = 5.0  # standard errors of a misfit, 1 / sqrt(2 n) each, by which it may exceed one
_FLOATING_MISFIT = {"float32": 10.0, "float64": 300.0}  # errors of arithmetic are neither independent nor
# known well (a softmax multiplies them), and a wrong network leaves far more
_MOST = 0.5  # of the answers' standard deviation: a network that leaves more explains next to nothing
_FLAT = 0.1  # of the largest slope of a link: where it is less, answers count less


class AnsweredRows:
    """Random rows of the region with their answers; more are asked as fits need them."""

    def __init__(self, view: NormalisedQueries, noise: Noise, rng: np.random.Generator) -> None:
        self.view, self.noise, self._rng = view, noise, rng
        self.sigma: Array = noise.sigma_per_output
        """(K,) standard deviation of an answer"""
        self.n_inputs, self.n_outputs = view.n_inputs, len(self.sigma)
        self.points: Array = np.empty((0, self.n_inputs))
        """(n, D) normalised inputs"""
        self.answers: Array = np.empty((0, self.n_outputs))
        """(n, K)"""
        self._mixed_in: Region | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def region(self) -> Region:
        """What the points are normalised by."""
        return self.view.region

    @property
    def largest_sigma(self) -> float:
        """That of the least precise output."""
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
        """Sigma of answers that do not repeat themselves, from rows asked twice: fits are judged by it."""
        rows = self.sample(_REPEATED_ROWS)
        difference = self.view(rows, fresh=True) - self.view(rows, fresh=True)
        self.sigma = np.sqrt(np.mean(difference**2, axis=0) / 2)

    def sample(self, count: int) -> Array:
        """``count`` fresh points (count, D)."""
        points = self.region.sample(count, self._rng)
        if self._mixed_in is not None:
            others = self._mixed_in.sample(len(points[1::2]), self._rng)
            points[1::2] = self.region.to_normalised(others)
        bounds = self.region.normalised_bounds
        if bounds is not None:
            corners = self._rng.random(count) < _CORNERS
            signs = self._rng.random((count, self.n_inputs)) < 0.5
            points[corners] = np.where(signs, *bounds)[corners]
        return points

    def extend_to(self, goal: float) -> None:
        """Ask random rows until there are ``goal`` of them."""
        missing = int(np.ceil(goal)) - len(self)
        if missing > 0:
            new = self.sample(missing)
            self.answers = np.concatenate([self.answers, self.view(new)])
            self.points = np.concatenate([self.points, new])

    def left_behind(self, values: Array, link: Link) -> Array:
        """What ``values`` (n, K) leave of the answers behind the link, to first order; little where flat.

        r T' / (T'^2 + c^2): r / T' where the link is steep.
        """
        slope = link.slope(self.answers)
        damped = slope**2 + (_FLAT * slope.max(axis=0)) ** 2
        return np.asarray((self.answers - values) * slope / damped)

    def acceptable_misfit(self) -> float:
        """Misfit up to which a network explains the answers, in their standard deviations."""
        uncertain = _SIGMA_KNOWN.get(self.noise.kind)
        if uncertain is None:
            return _FLOATING_MISFIT[self.noise.kind]
        return 1 + uncertain + _MISFIT_SIGMAS / float(np.sqrt(2 * max(self.answers.size, 1)))

    def leaves_most(self, misfit: float) -> bool:
        """Whether a network with this misfit leaves most of the answers unexplained."""
        spread = float(np.sqrt(np.mean((self.answers.std(axis=0) / self.sigma) ** 2)))
        return not misfit < _MOST * spread
