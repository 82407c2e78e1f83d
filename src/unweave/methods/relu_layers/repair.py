"""Put units into a tower that were not seen on the way up.

Units that lines hardly meet are not searched for while layers are found. Once the outputs are explained on
most rows, kinks that nothing explains, and those on the way to rows that do not agree, are tried at every
layer, the lowest first. A unit that is added to layer j is one more unknown for each unit of layer j + 1;
nothing above changes. Rows beside its surface tell all of them at once where the tower explains the answers
on one side (`graft`), and one crossing each where it does not. If the unit is one of the layer's channels, it
takes the channel's place, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.optimize

from unweave.arrays import Array
from unweave.methods.relu_layers.graft import GraftOptions, graft
from unweave.methods.relu_layers.inner_signs import InnerSignOptions, InnerSigns
from unweave.methods.relu_layers.layer_units import LayerOptions, LayerUnits, Unit
from unweave.methods.relu_layers.tower import Tower
from unweave.methods.relu_layers.trace import Tracer
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.output_fit import OutputFit
from unweave.methods.shared.surfaces.probe import Probe, ScannedLine
from unweave.methods.shared.surfaces.sight import Sight
from unweave.methods.shared.surfaces.surface import Surface
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class RepairOptions:
    """What is tried at once."""

    graft: GraftOptions = field(default_factory=GraftOptions)
    most_kinks: int = 12
    """Kinks that one round tries."""
    promotions: float = 0.3
    """Probability that a round looks for where a channel switches."""
    walk_steps: int = 40
    """Steps of a walk to where a channel is smallest or largest."""
    walks: int = 4
    """Walks per channel when its layer is found."""
    in_channels: float = 1e-5
    """Part of a normal that channels may leave unexplained."""
    side_points: int = 3000
    """Points at which the side of a unit is asked for."""
    side_rows: int = 12
    """Rows that are asked on either side of a new unit of the last layer."""
    largest_open: float = 10.0
    """Size of what is open of a unit at most, relative to what is not."""
    same_unit: float = 1e-4
    """Sine of the angle between two sightings of one unit."""


@dataclass(eq=False)
class Repairer:
    """Adds units to a tower."""

    probe: Probe
    tower: Tower
    tracer: Tracer
    rng: np.random.Generator
    layer_options: LayerOptions
    sign_options: InnerSignOptions
    options: RepairOptions
    _tried: set[tuple[int, int]] = field(default_factory=set)
    _explained: Array | None = None
    _fit: Callable[[], OutputFit] | None = None

    def search(self, layer: int) -> LayerUnits:
        """Return the search for units of a layer, counted from one, behind the present ones."""
        sight = self.tower.sight(layer - 1)
        units = self.tower.layers[layer - 1].units if layer <= len(self.tower.layers) else []
        search = LayerUnits(self.probe, sight, self.tracer, self.rng, self.layer_options, units)
        search.is_last = layer == len(self.tower.layers) and self._explained is not None
        return search

    def round(self, explained: Array | None = None, fit: Callable[[], OutputFit] | None = None) -> bool:
        """Try kinks that nothing explains at every layer; return whether a unit was added.

        If the last layer is known to be the last, points (n, d) that are ``explained`` without the unit are
        all on one side of its surface, and ``fit`` fits the outputs to the tower as it is.
        """
        self._explained, self._fit = explained, fit
        tower, depth = self.tower, len(self.tower.layers)
        for layer in range(1, depth):
            if len(tower.layers[layer - 1].channels) and self.rng.random() < self.options.promotions:
                unit = self.switching_channel(layer, 2)
                if unit is not None:
                    self.add(layer, unit)
                    return True
        kinks = [kink for kink in tower.everything_open() if (kink, depth) not in self._tried]
        for kink in kinks:
            if self._completes(kink):
                return True
        for kink in kinks[: self.options.most_kinks]:
            check()
            self._tried.add((kink, depth))
            if self._is_of_some_layer(kink):
                return True
        return False

    def _completes(self, kink: int) -> bool:
        """Return whether a kink tells what was open of a unit."""
        for layer in range(2, len(self.tower.layers) + 1):
            check()
            if self.search(layer).completed_by(kink):
                self.tower.changed(layer)
                return True
        return False

    def _is_of_some_layer(self, kink: int) -> bool:
        """Add the unit behind a kink to the lowest layer that it can be of; return whether there is one."""
        tower = self.tower
        seen = tower.pool.kinks[kink]
        if not tower.first_is_complete and self.probe.are_hyperplanes([seen], self.rng)[0]:
            alpha = np.append(seen.normal, -seen.normal @ seen.point)
            return self.add(1, Unit(alpha, np.zeros((len(alpha), 0)), [seen.point]))
        for layer in range(2, len(tower.layers) + 1):
            search = self.search(layer)
            surface = search.sight.surface(kink)
            if surface is None or not self.tracer.flatness.is_flat(search.sight.known, seen):
                continue
            others = search.sight.open_kinks(search.alphas)
            surface, verdict = self.tracer.follow(surface, search.sight, others)
            unit = search.finished(surface) if verdict.is_whole else None
            if unit is None:
                continue
            if layer == len(tower.layers):
                unit = self._on_one_side(unit, search.sight.known)
                self._ask_both_sides(surface)
                if search.take(unit, surface):
                    tower.changed(layer)
                    return True
                continue
            alphas = search.alphas / np.linalg.norm(search.alphas, axis=0)
            cosine = np.abs(unit.alpha @ alphas).max(initial=0.0) / np.linalg.norm(unit.alpha)
            if cosine <= 1 - self.options.same_unit and self.add(layer, unit):
                return True
        return False

    def _on_one_side(self, unit: Unit, known: LiftedLayers) -> Unit:
        """Choose what is open of a unit such that it switches at none of the points that are explained.

        That is a linear program: s (alpha + N c) . phi >= t |phi| with the largest t, |c| bounded.
        """
        if not unit.open.shape[1] or self._explained is None or not len(self._explained):
            return unit
        points = self._explained
        if len(points) > self.options.side_points:
            points = self.rng.permutation(points)[: self.options.side_points]
        phi = known.values(points)
        phi = phi / np.linalg.norm(phi, axis=1, keepdims=True)
        fixed, free = phi @ unit.alpha, phi @ unit.open
        bound = self.options.largest_open * np.linalg.norm(unit.alpha)
        best, chosen = 0.0, np.zeros(free.shape[1])
        for side in (1.0, -1.0):
            columns = np.hstack([-side * free, np.ones((len(free), 1))])
            cost = np.append(np.zeros(free.shape[1]), -1.0)
            bounds = [(-bound, bound)] * free.shape[1] + [(None, bound)]
            solved = scipy.optimize.linprog(cost, columns, side * fixed, bounds=bounds, method="highs")
            if solved.status == 0 and -solved.fun > best:
                best, chosen = -float(solved.fun), solved.x[:-1]
        return Unit(unit.alpha + unit.open @ chosen, unit.open, unit.places)

    def _ask_both_sides(self, surface: Surface) -> None:
        """Ask rows on either side of a surface, clear of it: lines may hardly ever have crossed it."""
        known, points = surface.known, []
        places = [surface.places[0], *self.tracer.determined_zeros(surface, self.options.side_rows)]
        for place in places[: self.options.side_rows]:
            normal = surface.normal(place.pattern)
            if normal is not None:
                step = min(0.9 * known.room(place.point, place.pattern), 1 + float(np.abs(place.point).max()))
                points += [place.point + step * normal, place.point - step * normal]
        if points:
            self.probe(np.stack(points))

    # -- adding a unit ------------------------------------------------------------------------------------

    def add(self, layer: int, unit: Unit) -> bool:
        """Add a unit to a layer, counted from one; return whether it stays."""
        tower = self.tower
        if layer == len(tower.layers):
            tower.top.units.append(unit)
            tower.changed(layer)
            return True
        if self._replaces_channel(layer, unit) or self._is_grafted(layer, unit):
            return True
        found = tower.layers[layer - 1]
        found.units.append(unit)
        tower.changed(layer)
        sign = self._sign_of_last(layer)
        if sign == 0:
            found.units.pop()
            tower.changed(layer)
            return False
        unit.alpha, unit.open = sign * unit.alpha, unit.open
        tower.changed(layer)
        self._read_by_next(layer)
        return True

    def _is_grafted(self, layer: int, unit: Unit) -> bool:
        """Add a unit, with its readers' weights, where the tower explains the answers beside it."""
        if self._fit is None:
            return False
        tower = self.tower
        found = graft(self.probe, tower, self.tracer, self._fit(), layer, unit, self.rng, self.options.graft)
        if found is None:
            return False
        below, readers = tower.layers[layer - 1], tower.layers[layer]
        at = below.width
        unit.alpha = found.sign * unit.alpha
        below.units.append(unit)
        for reader, weight, is_open in zip(readers.units, found.units, found.open_units, strict=True):
            reader.alpha = np.insert(reader.alpha, at, weight)
            reader.open = np.insert(reader.open, at, 0.0, axis=0)
            if is_open:
                reader.open = np.column_stack([reader.open, np.eye(len(reader.alpha))[at]])
        passed = found.channels if len(found.channels) else 0.0
        readers.channels = np.insert(readers.channels, at, passed, axis=1)
        tower.changed(layer)
        return True

    def _sign_of_last(self, layer: int) -> float:
        """Return the sign of a layer's last unit; zero if it is not found, or nothing reads it."""
        tower, options = self.tower, self.sign_options
        channels = tower.layers[layer - 1].channels
        search = InnerSigns(tower.unsigned_sight(layer), self.tracer, (tower.slope,), channels, options)
        while search.tries < options.most_surfaces:
            kink = search.next_kink()
            if kink is None:
                break
            found = search.follow(kink)
            if found is not None and found.unread:
                return 0.0
            if search.votes[-1] != 0:
                return float(np.sign(search.votes[-1]))
        return 0.0

    def _read_by_next(self, layer: int) -> None:
        """Find out how the next layer reads a unit that its layer has gained."""
        tower = self.tower
        sight, readers = tower.sight(layer), tower.layers[layer]
        known = sight.known
        at = tower.layers[layer - 1].width - 1
        new = np.zeros(known.dimension)
        new[at] = 1.0
        for unit in readers.units:
            check()
            padded, open_before = np.insert(unit.alpha, at, 0.0), np.insert(unit.open, at, 0.0, axis=0)
            spanned = Surface.spanned(
                known, np.column_stack([padded, new]), unit.places, sight.options.surface
            )
            kept = [
                place.point
                for place in spanned.places
                if spanned.normal(place.pattern) is not None and spanned.holds(place.point)
            ]
            unit.alpha, unit.open = padded, np.column_stack([open_before, new])
            if not kept:
                continue
            surface = Surface.spanned(known, spanned.null, kept, sight.options.surface)
            surface, _ = self.tracer.follow(surface, sight)
            if surface.open:
                continue
            chosen = surface.representative
            without = chosen - new * chosen[at]
            unit.alpha = chosen * (padded @ without) / (without @ without)
            unit.open = open_before
            unit.places = [place.point for place in surface.places]
        readers.channels = np.insert(readers.channels, at, 0.0, axis=1)
        tower.changed(layer + 1)

    # -- channels -----------------------------------------------------------------------------------------

    def _replaces_channel(self, layer: int, unit: Unit) -> bool:
        """Put a unit in the place of a channel that it is; return whether it is one."""
        tower = self.tower
        below, reader = tower.layers[layer - 1], tower.layers[layer]
        channels, alpha = below.channels, unit.alpha
        if not len(channels):
            return False
        amounts = np.linalg.lstsq(channels[:, :-1].T, alpha[:-1], rcond=1e-10)[0]
        rest = np.linalg.norm(alpha[:-1] - amounts @ channels[:, :-1])
        if rest > self.options.same_unit * np.linalg.norm(alpha[:-1]):
            return False
        points = self.rng.standard_normal((500, tower.n_inputs))
        turn = 1.0 if np.median(tower.below(layer - 1).values(points) @ alpha) > 0 else -1.0
        unit.alpha, alpha, amounts = turn * alpha, turn * alpha, turn * amounts
        chosen, width = int(np.argmax(np.abs(amounts))), below.width

        def moved(rows: Array) -> Array:
            """Write rows (n, F) with p_i = (a . phi - b - sum_q c_q p_q) / c_i, where the unit is on."""
            passed = rows[:, width : width + len(channels)]
            weight = passed[:, chosen] / amounts[chosen]
            passed = np.delete(passed - np.outer(weight, amounts), chosen, axis=1)
            constant = rows[:, -1] - weight * alpha[-1]
            return np.hstack([rows[:, :width], weight[:, None], passed, constant[:, None]])

        for other in reader.units:
            other.alpha, other.open = moved(other.alpha[None])[0], moved(other.open.T).T
        through = moved(reader.channels)
        constants = through[:, -1].copy()
        through[:, -1] = 0.0
        if len(constants):
            above, start = tower.layers[layer + 1], reader.width
            for other in above.units:
                other.alpha[-1] += other.alpha[start : start + len(constants)] @ constants
            above.channels[:, -1] += above.channels[:, start : start + len(constants)] @ constants
        reader.channels = through
        below.units.append(unit)
        below.channels = np.delete(channels, chosen, axis=0)
        tower.changed(layer)
        return True

    def switching_channel(self, layer: int, walks: int) -> Unit | None:
        """Find where a channel of a layer switches after all; its kinks have normals that channels make."""
        tower = self.tower
        found, known = tower.layers[layer - 1], tower.below(layer - 1)
        channels = found.channels
        for number in range(walks):
            check()
            mixed = self.rng.standard_normal(len(channels)) @ channels if len(channels) > 1 else channels[0]
            side = 1.0 if number % 2 else -1.0
            start = (1.0 + 2 * (number // 2)) * self.rng.standard_normal(tower.n_inputs)
            end = self._walk(known, start, side * mixed)
            if np.linalg.norm(end - start) > 1e-3:
                self.take_kinks(self.probe.scan_between(start, end), tower.sight(layer - 1), found.matrix.T)
        search = self.search(layer)
        for kink in search.sight.open_kinks(found.matrix.T):
            alpha = self._made_by_channels(known, channels, kink)
            if alpha is None:
                continue
            points = [tower.pool.kinks[kink].point]
            surface = Surface.spanned(known, alpha[:, None], points, search.sight.options.surface)
            # Where all other units are off, deeper ones have such normals, too: lines must show it elsewhere.
            unit = search.finished(surface)
            if unit is not None:
                return unit
        return None

    def _walk(self, known: LiftedLayers, point: Array, alpha: Array) -> Array:
        """Climb alpha . phi from a point in steps that grow."""
        for step in range(self.options.walk_steps):
            gradient = known.jacobian(known.pattern(point))[0].T @ alpha
            length = np.linalg.norm(gradient)
            if length < 1e-9:
                break
            point = point + (0.5 + 0.1 * step) * gradient / length
        return point

    def _made_by_channels(self, known: LiftedLayers, channels: Array, kink: int) -> Array | None:
        """Return alpha (F,) of the unit behind a kink if channels make its normal."""
        seen = self.tower.pool.kinks[kink]
        derivative = known.jacobian(known.pattern(seen.point))[0]
        made = derivative.T @ channels.T
        if np.linalg.norm(made) < 1e-9 or np.linalg.matrix_rank(derivative, 1e-9) - len(channels) < 2:
            return None
        amounts = np.linalg.lstsq(made, seen.normal, rcond=1e-10)[0]
        if np.linalg.norm(made @ amounts - seen.normal) > max(self.options.in_channels, 30 * seen.error):
            return None
        alpha = amounts @ channels
        alpha[-1] -= alpha @ known.values(seen.point[None])[0]
        return np.asarray(alpha)

    def take_kinks(self, scanned: ScannedLine, sight: Sight, alphas: Array | None = None) -> int:
        """Add a line to the pool, with the kinks on it that nothing explains; return how many."""
        pool = self.tower.pool
        pool.lines.append(scanned)
        wanted = sight.unexplained_on(len(pool.lines) - 1, alphas)
        known = sight.known
        new = self.probe.kinks_with_normals(scanned, wanted, lambda point: known.basis(known.pattern(point)))
        pool.kinks += new
        return len(new)
