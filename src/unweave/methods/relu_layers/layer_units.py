"""Find all units of the layer behind known ones, from the kinks that nothing explains.

Kinks of deeper units are among them, and nothing tells them apart but whether they fit together and where
else the unit must then show. So kinks are merged first, without asking (`sight`), and those are followed
whose predicted zeros on lines are kinks (`trace`). While hardly any fails, as in the last layer, kinks are
followed without that evidence. What was followed is a unit only if lines, and places far away that are
asked, show it where it must be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_layers.trace import Tracer
from unweave.methods.shared.surfaces.probe import Probe
from unweave.methods.shared.surfaces.sight import Counts, Sight
from unweave.methods.shared.surfaces.surface import Surface
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """What is followed, and what counts as a unit."""

    least_confirmed: int = 4
    """Zeros on lines that must be kinks before a row is spent on a unit."""
    confirmed_share: float = 0.7
    """Their share among all zeros that are known before a row is spent."""
    attempts: int = 2
    """Attempts to follow a kink."""
    bad_luck: int = 6
    """Failures in a row after which the order of candidates is made anew."""
    free_failures: int = 2
    """Failures, and a quarter of the successes more, up to which kinks are followed without evidence."""
    first_places: int = 4
    """Places that are asked where lines show too little of a unit; enough while nothing has failed."""
    places: int = 12
    """Further ones."""
    enough_zeros: int = 8
    """Zeros on lines that need no places besides ..."""
    enough_share: float = 0.85
    """... if this share of them is confirmed."""
    hopeless_share: float = 0.5
    """Share of confirmed zeros below which no place is asked."""
    accepted_share: float = 0.9
    """Share of zeros and places that must be kinks; units show 95 % or more."""
    doubtful_share: float = 0.8
    """Share up from which more places are asked."""
    accepted: int = 3
    """Number of them."""
    place_step: float = 1e-3
    """Step across the surface, relative to 1 + |x|."""
    most_open: int = 2
    """Dimensions that may be open of a unit where deeper ones look like it."""
    same_unit: float = 1e-5
    """Distance of two sightings of one unit, relative to their size."""
    beyond: float = 4.0
    """How clearly a unit keeps its sign where it was never seen, in units of its gradient."""
    side_points: int = 30
    """Points of a surface that never crosses a unit at which the sign beyond is taken."""


@dataclass(eq=False)
class Unit:
    """A unit of the layer, up to its sign."""

    alpha: Array
    """(F,), with a gradient of length one where it was first seen"""
    open: Array
    """(F, k) what may be added to alpha: nothing shows it"""
    places: list[Array]
    """Points of its surface."""


@dataclass(eq=False)
class _Score:
    """What is known of the surface through a kink without asking."""

    surface: Surface
    merged: Surface
    members: set[int]
    kinks: int
    lines: int
    counts: Counts


@dataclass(eq=False)
class LayerUnits:
    """Units of the layer behind what ``sight`` looks through."""

    probe: Probe
    sight: Sight
    tracer: Tracer
    rng: np.random.Generator
    options: LayerOptions
    units: list[Unit] = field(default_factory=list)
    attempts: dict[int, int] = field(default_factory=dict)
    tested: set[int] = field(default_factory=set)
    """Kinks whose flatness was tested."""
    failures: int = 0
    """Kinks that were followed in vain."""
    is_last: bool = False
    """Whether nothing is deeper: then what is open of a unit does no harm."""
    _scores: dict[int, _Score | None] = field(default_factory=dict)

    @property
    def alphas(self) -> Array:
        """(F, units)"""
        if not self.units:
            return np.zeros((self.sight.known.dimension, 0))
        return np.stack([unit.alpha for unit in self.units], axis=1)

    def find(self, thorough: bool = False) -> bool:
        """Find all units that kinks lead to, ``thorough`` all that are flat; return if there are new ones."""
        before = len(self.units)
        while self._round(thorough):
            pass
        return len(self.units) > before

    def _round(self, thorough: bool) -> bool:
        """Follow the best candidates of the present pool; return whether units were found or completed."""
        open_kinks = self.sight.open_kinks(self.alphas)
        for kink in open_kinks if any(unit.open.shape[1] for unit in self.units) else ():
            self.completed_by(kink)
        candidates = self._candidates(open_kinks)
        if not candidates and self.failures <= self.options.free_failures + len(self.units) / 4:
            candidates = [kink for kink in open_kinks if self._may_try(kink)][:1]
        if not candidates and (thorough or not self.units):
            candidates = self._flat(open_kinks)
        grown, bad_luck = False, 0
        for kink in candidates:
            check()
            if bad_luck >= self.options.bad_luck:
                break
            if kink not in self.sight.open_kinks(self.alphas):
                continue
            if self._attempt(kink, open_kinks):
                grown, bad_luck = True, 0
            else:
                bad_luck += 1
        return grown or (len(candidates) == 1 and bad_luck == 1 and self._free_tries_left())

    def _free_tries_left(self) -> bool:
        return self.failures <= self.options.free_failures + len(self.units) / 4

    def _may_try(self, kink: int) -> bool:
        return self.attempts.get(kink, 0) < self.options.attempts

    def _candidates(self, open_kinks: list[int]) -> list[int]:
        """Return kinks that lines say much for, the best first, one per unit as far as that is known."""
        options = self.options
        ranked, covered = [], set[int]()
        for kink in open_kinks:
            if not self._may_try(kink) or kink in covered:
                continue
            score = self._score(kink, open_kinks)
            if score is None:
                self.attempts[kink] = options.attempts
                continue
            counts = score.counts
            if counts.confirmed >= options.least_confirmed and counts.share >= options.confirmed_share:
                ranked.append((counts.surplus, kink))
                if counts.denied == 0 and counts.confirmed > options.least_confirmed:
                    covered |= score.members
        return [kink for _, kink in sorted(ranked, key=lambda pair: -pair[0])]

    def _score(self, kink: int, open_kinks: list[int]) -> _Score | None:
        """Merge what fits with a kink; only what is new since the last time is looked at."""
        sight, pool = self.sight, self.sight.pool
        check()
        if kink not in self._scores:
            surface = sight.surface(kink)
            if surface is None:
                self._scores[kink] = None
                return None
            merged, members = sight.absorb(surface, [other for other in open_kinks if other != kink])
            counts = sight.foretold(merged)
            self._scores[kink] = _Score(surface, merged, members, len(pool.kinks), len(pool.lines), counts)
        score = self._scores[kink]
        if score is None:
            return None
        fresh = [other for other in open_kinks if other >= score.kinks]
        new: set[int] = set()
        if fresh:
            score.merged, new = sight.absorb(score.merged, fresh)
        if new:
            others = [other for other in open_kinks if other not in score.members | new | {kink}]
            score.merged, more = sight.absorb(score.merged, others)
            score.members |= new | more
            score.counts = sight.foretold(score.merged)
        else:
            score.counts = score.counts + sight.foretold(score.merged, score.lines)
        score.kinks, score.lines = len(pool.kinks), len(pool.lines)
        return score

    def _flat(self, open_kinks: list[int]) -> list[int]:
        """Return those kinks that lie on flat pieces; each is tested once."""
        rest = [kink for kink in open_kinks if self._may_try(kink) and kink not in self.tested]
        return self.flat_ones(rest)

    def flat_ones(self, kinks: list[int]) -> list[int]:
        """Return which of the kinks lie on flat pieces."""
        if not kinks:
            return []
        self.tested.update(kinks)
        flat = self.tracer.flatness.are_flat(
            self.sight.known, [self.sight.pool.kinks[kink] for kink in kinks]
        )
        return [kink for kink, is_flat in zip(kinks, flat, strict=True) if is_flat]

    def _attempt(self, kink: int, open_kinks: list[int]) -> bool:
        """Follow the surface through a kink; return whether a unit was found or completed."""
        number = self.attempts[kink] = self.attempts.get(kink, 0) + 1
        score = self._scores.get(kink)
        surface = self.sight.surface(kink) if score is None else score.surface
        if surface is None:
            self.failures += 1
            return False
        # The second time on its own: a kink of another unit that fitted by chance has spoilt the first.
        others = open_kinks if number == 1 else []
        if number == 1 and score is not None:
            surface = score.merged
        # While nothing was followed in vain, nothing deeper is about.
        surface, verdict = self.tracer.follow(
            surface, self.sight, others, lambda each: each.open_units, look_far=self.failures > 0
        )
        unit = self.finished(surface) if verdict.is_whole else None
        if unit is None:
            self.failures += 1
            return False
        if not self.take(unit, surface):
            self.attempts[kink] = self.options.attempts
            return False
        return True

    def finished(self, surface: Surface) -> Unit | None:
        """Return the unit of a surface that was followed; None if lines or places deny it."""
        options, sight = self.options, self.sight
        alpha = surface.representative
        counts, seen = sight.verified(alpha)
        zeros = counts.confirmed + counts.denied
        if zeros >= options.accepted and counts.share < options.hopeless_share:
            return None
        if surface.open > options.most_open and not self.is_last:
            return None
        if zeros < options.enough_zeros or counts.share < options.enough_share:
            few = self._asked_places(surface, alpha, options.first_places)
            counts = counts + few
            if self.failures or few.denied or few.confirmed < options.first_places - 1:
                counts = counts + self._asked_places(surface, alpha, options.places)
            if options.doubtful_share <= counts.share < options.accepted_share:
                counts = counts + self._asked_places(surface, alpha, options.places)
        if counts.confirmed < options.accepted or counts.share < options.accepted_share:
            return None
        if surface.open == 0 and len(seen):
            alpha = surface.fitted(seen).null[:, 0]
        gradient = sight.known.jacobian(surface.places[0].pattern)[0].T @ alpha
        alpha = alpha / np.linalg.norm(gradient)
        points = [place.point for place in surface.places]
        return Unit(self.beyond(surface, alpha), surface.open_directions, points)

    def _asked_places(self, surface: Surface, alpha: Array, count: int) -> Counts:
        """Ask at zeros of alpha, near and far, whether there are kinks."""
        known, options = self.sight.known, self.options
        places = self.tracer.determined_zeros(surface, 4 * count)[:count]
        steps = np.array(
            [
                min(
                    0.3 * known.room(place.point, place.pattern),
                    options.place_step * (1 + float(np.abs(place.point).max())),
                )
                for place in places
            ]
        )
        kept = [place for place, step in zip(places, steps, strict=True) if step > 1e-6]
        if not kept:
            return Counts()
        normals = np.stack([known.jacobian(place.pattern)[0].T @ alpha for place in kept])
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        points = np.stack([place.point for place in kept])
        sightings = self.probe.have_kinks(points, normals, steps[steps > 1e-6])
        return Counts(int(sightings.seen.sum()), int(sightings.missed.sum()))

    def beyond(self, surface: Surface, alpha: Array) -> Array:
        """Keep a unit's sign beyond surfaces of the last known layer that it never meets."""
        known = surface.known
        if not surface.open or not known.stages or known.slope != 0:
            return alpha
        pattern = surface.places[0].pattern
        for index in range(known.stages[-1].width):
            vector = np.zeros(known.dimension)
            vector[index] = 1.0
            if not surface.is_free(vector):
                continue
            unit, feet = known.top.start + index, []
            for place in surface.places[: self.options.side_points]:
                gradient = known.jacobian(place.pattern)[1][unit]
                square = gradient @ gradient
                if square > 0:
                    height = known.preactivations(place.point[None])[0, unit]
                    feet.append(place.point - height * gradient / square)
            if not feet:
                continue
            alpha = alpha - vector * alpha[index]
            sign = 1.0 if np.median(known.values(np.stack(feet)) @ alpha) >= 0 else -1.0
            size = max(float(np.linalg.norm(known.jacobian(pattern)[1][unit])), 1e-3)
            alpha = alpha + vector * sign * self.options.beyond / size
        return alpha

    def completed_by(self, kink: int) -> bool:
        """Look for a unit, part of which is open, that a kink belongs to; return whether there is one.

        What a kink must fulfil by chance if it is of another unit is nearly all that it says.
        """
        equations = self.sight.equations(kink)
        if equations is None:
            return False
        point = self.sight.pool.kinks[kink].point
        for unit in self.units:
            if not unit.open.shape[1]:
                continue
            null = np.column_stack([unit.alpha, unit.open])
            surface = Surface.spanned(self.sight.known, null, unit.places, self.sight.options.surface)
            larger = surface.with_equations(equations, point)
            if larger is None:
                continue
            fixed = unit.alpha - unit.open @ (unit.open.T @ unit.alpha)
            alpha = larger.representative
            alpha = alpha * (fixed @ fixed) / (fixed @ alpha)
            unit.alpha, unit.open = self.beyond(larger, alpha), larger.open_directions
            unit.places = [*unit.places, point]
            return True
        return False

    def take(self, unit: Unit, surface: Surface) -> bool:
        """Add a unit, or join it with the one that it is up to what is open; return whether that is news."""
        for index, other in enumerate(self.units):
            joined = self._joined(unit, other, surface)
            if joined is None:
                continue
            if joined is not other:
                self.units[index] = joined
            return joined is not other
        self.units.append(unit)
        return True

    def _joined(self, unit: Unit, other: Unit, surface: Surface) -> Unit | None:
        """Return what two sightings of one unit say together; None if they are two units."""
        own, its = unit.open, other.open
        basis = np.column_stack([other.alpha / np.linalg.norm(other.alpha), its, own])
        rest = unit.alpha - basis @ np.linalg.lstsq(basis, unit.alpha, rcond=1e-10)[0]
        if basis.shape[1] >= 0.7 * len(basis):  # too much is open to tell
            return None
        if np.linalg.norm(rest) > self.options.same_unit * np.linalg.norm(unit.alpha):
            return None
        if not its.shape[1]:
            return other
        if not own.shape[1]:
            return unit
        first = np.linalg.qr(np.column_stack([unit.alpha, own]))[0]
        second = np.linalg.qr(np.column_stack([other.alpha, its]))[0]
        left, cosines, _ = np.linalg.svd(first.T @ second)
        common = int((cosines > 1 - 1e-9).sum())
        if common == 0 or common - 1 >= its.shape[1]:
            return other
        points = [*unit.places, *other.places]
        both = Surface.spanned(surface.known, first @ left[:, :common], points, surface.options)
        alpha = both.representative
        alpha = alpha / np.linalg.norm(surface.known.jacobian(both.places[0].pattern)[0].T @ alpha)
        return Unit(self.beyond(both, alpha), both.open_directions, points)


def stacked(alphas: Iterable[Array], dimension: int) -> Array:
    """Return alphas (F, k)."""
    found = list(alphas)
    return np.stack(found, axis=1) if found else np.zeros((dimension, 0))
