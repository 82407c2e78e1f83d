"""Find the signs of a layer's units, from surfaces behind it.

Behind a layer z = A phi with open signs s, phi' = (|z|, phi), the piece of a surface that crosses only
known units is alpha = (V, U, c), and ReLU units with slope p below zero make

    U = (1+p)/(1-p) sum_i s_i V_i A_i.

That holds for units of every deeper layer, so a kink needs no label. Units i that the piece did not cross
have an open V_i: their A_i, and what else is open of U, are projected out, and the signs of the others
remain.

A unit that is active wherever it was asked shows no kink. What reads it reads a linear function W phi, a
*channel*: U = sum_i s_i V_i A_i + c W. With X = U A^+ over n surfaces, R = U - X A has the rank of the
channels and tells their coefficients c (n, a); on the complement of c the rows of X and V agree up to the
signs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.relu_layers.trace import Tracer, Verdict
from unweave.methods.shared.surfaces.sight import Sight
from unweave.methods.shared.surfaces.surface import Surface
from unweave.networks.signs import SignSolution, solve_sign_system
from unweave.numerics.clock import check
from unweave.numerics.sign_search import SignOptions


@dataclass(frozen=True, kw_only=True)
class InnerSignOptions:
    """When equations of signs are enough, and when they are solved."""

    signs: SignOptions = field(default_factory=SignOptions)
    tolerance: float = 1e-5
    """Relative misfit of the equations; right signs leave 1e-7 or less, wrong ones 0.1 or more."""
    crossed: float = 1e-5
    """What may be open of V_i where unit i was crossed."""
    digits: float = 10.0
    """Decimal digits that an equation tells."""
    digits_to_spare: float = 14.0
    """Digits beyond those that wrong signs need to fit by chance."""
    most_surfaces: int = 12
    """Surfaces that are followed; where signs were found, nearly all took up to 5, and none more than 11."""
    most_lines: int = 6
    """Lines that are searched where kinks run out."""
    most_together: int = 5
    """Surfaces of which channels are read together."""
    channel_rank: float = 1e-6
    """Singular values of R, relative to U, that belong to a channel."""
    channel_tolerance: float = 1e-4
    """Relative misfit of signs beside channels; the other sign leaves two."""
    unmet_surfaces: int = 8
    """Surfaces after which units that hardly any of them meets are left out."""
    unmet_share: float = 0.7
    """Share of the surfaces, of those that meet half of the units, that do not meet such a unit."""
    own_share: float = 0.7
    """Share of the units that a surface must cross without reading any to be of the layer itself."""


DEFAULT_INNER_SIGN_OPTIONS = InnerSignOptions()


@dataclass(frozen=True, eq=False)
class Equations:
    """matrix s = right for the signs of the units that were crossed."""

    crossed: IntArray
    matrix: Array
    """(q, m)"""
    right: Array
    """(q,)"""


@dataclass(frozen=True, eq=False)
class FoundSigns:
    """Signs of a layer, as far as they were found."""

    votes: Array
    """(m,) +-1, 0 where open"""
    channels: Array
    """(a, F)"""
    missing: Surface | None = None
    """A unit of the layer itself that was not known yet, behind the layer with open signs."""
    unread: bool = False
    """Whether nothing reads the last unit."""
    unmet: tuple[int, ...] = ()
    """Units that hardly any surface meets."""


class InnerSigns:
    """Looks for the signs of the last layer of ``sight.known``, which are open."""

    def __init__(
        self,
        sight: Sight,
        tracer: Tracer,
        slopes: tuple[float, ...],
        channels: Array,
        options: InnerSignOptions,
    ) -> None:
        self._sight, self._tracer, self._options = sight, tracer, options
        stage = sight.known.stages[-1]
        self._matrix, self._width = stage.matrix[:, :-1], stage.width
        self.slopes = slopes
        """Those p that are still possible."""
        self._channels = channels
        self.votes = np.zeros(self._width)
        self._systems: list[Equations] = []
        self._complete: list[Array] = []
        self._closed: list[Array] = []
        self._tried: set[int] = set()
        self._unread = 0
        self.met: list[BoolArray] = []
        """Which units (m,) were met, of surfaces that meet half of them."""

    def next_kink(self) -> int | None:
        """Return the next kink to follow; None if there is none."""
        alphas = np.stack(self._closed, axis=1) if self._closed else None
        return next((k for k in self._sight.open_kinks(alphas) if k not in self._tried), None)

    @property
    def tries(self) -> int:
        """Kinks that were followed."""
        return len(self._tried)

    @property
    def unmet(self) -> tuple[int, ...]:
        """Units that hardly any of enough surfaces meets; they keep all of these open."""
        options, met = self._options, self.met
        if len(met) < options.unmet_surfaces:
            return ()
        missed = 1 - np.mean(met, axis=0)
        return tuple(np.flatnonzero(missed >= options.unmet_share).tolist())

    def follow(self, kink: int) -> FoundSigns | None:
        """Follow the surface through a kink; return the signs if that ended the search."""
        check()
        self._tried.add(kink)
        sight = self._sight
        surface = sight.surface(kink)
        if surface is None or not self._tracer.flatness.is_flat(sight.known, sight.pool.kinks[kink]):
            return None
        others = sight.open_kinks() if len(self._tried) % 2 else []
        surface, verdict = self._tracer.follow(surface, sight, others, self._open_units, self._is_enough)
        if surface.open == 0:
            self._closed.append(surface.representative)
        met = self._crossed(surface)
        if 2 * met.sum() > self._width:
            self.met.append(met)
        if self._is_own(surface, verdict):
            return FoundSigns(self.votes, np.zeros((0, self._matrix.shape[1] + 1)), surface)
        return self._read(surface)

    def _read(self, surface: Surface) -> FoundSigns | None:
        """Take the equations of a surface; return the signs if they are found."""
        nothing = np.zeros((0, self._matrix.shape[1] + 1))
        equations = self._equations(surface)
        alone = None if equations is None else self._solved([equations])
        if equations is not None:
            if alone is not None:
                self._vote(equations.crossed, alone)
            self._systems.append(equations)
            chosen = surface.representative
            unread = abs(chosen[self._width - 1]) < 1e-6 * np.abs(chosen[: self._width]).max()
            self._unread += int(alone is not None and len(equations.crossed) == self._width and unread)
        if len(self._systems) > 1 and alone is None and (self.votes == 0).any():
            self._solve_together()
        if (self.votes != 0).all():
            return FoundSigns(self.votes, nothing)
        if self._unread > 1 and len(self._channels) == 0:
            return FoundSigns(self.votes, nothing, unread=True)
        if surface.open == 0 and alone is None and not self.votes.any():
            size = np.linalg.norm(surface.representative[: self._width])
            if size > 0:
                self._complete.append(surface.representative / size)
                return self._with_channels()
        return None

    def _vote(self, units: IntArray, solution: SignSolution) -> None:
        self.votes[units] = np.where(self.votes[units] == 0, solution.signs, self.votes[units])

    # -- equations ----------------------------------------------------------------------------------------

    def _crossed(self, surface: Surface) -> BoolArray:
        """Return (m,) the units whose V_i is not open."""
        return np.asarray(
            np.linalg.norm(surface.open_directions[: self._width], axis=1) <= self._options.crossed
        )

    def _open_units(self, surface: Surface) -> IntArray:
        """Return the units of the layer, among all known ones, whose V_i is open."""
        return np.asarray(surface.known.top.start + np.flatnonzero(~self._crossed(surface)))

    def _equations(self, surface: Surface) -> Equations | None:
        """Return the equations of the signs that a surface gives; None if there are none."""
        crossed = self._crossed(surface)
        units = np.flatnonzero(crossed)
        if not len(units):
            return None
        width, chosen = self._width, surface.representative
        taken = np.hstack(
            [surface.open_directions[width:-1], self._matrix[~crossed].T, self._channels[:, :-1].T]
        )
        basis = np.eye(self._matrix.shape[1])
        if taken.shape[1]:
            left, values, _ = np.linalg.svd(taken, full_matrices=True)
            basis = left[:, int((values > 1e-6).sum()) :]
        if not basis.shape[1]:
            return None
        matrix = np.zeros((basis.shape[1], width))
        matrix[:, units] = (basis.T @ self._matrix[units].T) * chosen[units]
        return Equations(units, matrix, basis.T @ chosen[width:-1])

    def _solved(self, systems: list[Equations]) -> SignSolution | None:
        """Return the signs of all units that the systems cross; None if they are not clear."""
        options = self._options
        units = np.unique(np.concatenate([system.crossed for system in systems]))
        matrix = np.vstack([system.matrix for system in systems])[:, units]
        right = np.concatenate([system.right for system in systems])
        if options.digits * len(right) - 0.7 * len(units) < options.digits_to_spare:
            return None
        for slope in self.slopes:
            check()
            factor = (1 + slope) / (1 - slope)
            solution = solve_sign_system(factor * matrix, right, options.tolerance, options=options.signs)
            if solution.solved and solution.unique:
                self.slopes = (slope,)
                return solution
        return None

    def _is_enough(self, surface: Surface) -> bool:
        """Return whether a surface gives the signs of all units."""
        if not self._crossed(surface).all():
            return False
        equations = self._equations(surface)
        return equations is not None and self._solved([equations]) is not None

    def _solve_together(self) -> None:
        """Solve the newest system together with all others, or with one of them at least."""
        *others, newest = self._systems
        groups = [[*others, newest], *([other, newest] for other in others)]
        for group in groups:
            solution = self._solved(group)
            if solution is not None:
                units = np.unique(np.concatenate([system.crossed for system in group]))
                self._vote(units, solution)
                return

    def _is_own(self, surface: Surface, verdict: Verdict) -> bool:
        """Return whether a surface is that of a unit of the layer itself: it reads none of the others."""
        if not verdict.is_whole:
            return False
        crossed, chosen = self._crossed(surface), surface.representative
        if crossed.sum() < self._options.own_share * self._width or surface.open > (~crossed).sum():
            return False
        return bool(np.linalg.norm(chosen[: self._width][crossed]) < 1e-5 * np.linalg.norm(chosen))

    # -- channels -----------------------------------------------------------------------------------------

    def _with_channels(self) -> FoundSigns | None:
        """Read signs and channels from a few complete surfaces, the newest among them."""
        newest = len(self._complete) - 1
        for size in range(2, self._options.most_together + 1):
            for others in itertools.islice(itertools.combinations(range(newest), size - 1), 100):
                found = self._channels_of(np.stack([self._complete[row] for row in (*others, newest)]))
                if found is not None:
                    return found
        return None

    def _channels_of(self, alphas: Array) -> FoundSigns | None:
        """Return the signs and channels behind complete surfaces (n, F'); None if there are none."""
        if len(self._channels):
            return None
        heights, slopes = alphas[:, : self._width], alphas[:, self._width : -1]
        for slope in self.slopes:
            factor = (1 + slope) / (1 - slope)
            found = signs_beside_channels(self._matrix, heights, slopes, factor, self._options)
            if found is not None:
                self.slopes = (slope,)
                signs, channels = found
                return FoundSigns(signs, np.hstack([channels, np.zeros((len(channels), 1))]))
        return None


def signs_beside_channels(
    units: Array,
    heights: Array,
    slopes: Array,
    factor: float,
    options: InnerSignOptions = DEFAULT_INNER_SIGN_OPTIONS,
) -> tuple[Array, Array] | None:
    """Return signs (m,) and channels (a, F) that explain slopes U (n, F) by units (m, F), heights V (n, m).

    Return None if there are none, or too many for n equations.
    """
    if np.linalg.matrix_rank(units, 1e-8) < len(units):
        return None
    known = slopes @ np.linalg.pinv(units) / factor
    rest = slopes - factor * known @ units
    left, values, _ = np.linalg.svd(rest, full_matrices=False)
    count = int((values > options.channel_rank * np.linalg.norm(slopes)).sum())
    if not 0 < count < len(slopes):
        return None
    coefficients = left[:, :count]
    free = np.eye(len(slopes)) - coefficients @ coefficients.T
    plus = np.linalg.norm(free @ (known - heights), axis=0)
    minus = np.linalg.norm(free @ (known + heights), axis=0)
    sizes = np.linalg.norm(free @ heights, axis=0)
    if (np.minimum(plus, minus) > options.channel_tolerance * sizes).any():
        return None
    signs = np.where(plus < minus, 1.0, -1.0)
    channels = coefficients.T @ (slopes - factor * (heights * signs) @ units)
    return signs, channels / np.linalg.norm(channels, axis=1, keepdims=True)
