"""Networks with hidden layers of (leaky) ReLU units, as many as there are, from queries.

1. Find the kinks of long lines and their normals (`probe`). Those whose surface is a whole hyperplane are
   the first layer, up to signs. Search further lines until one brings nothing new. From then on inputs are
   reduced to what the first layer reads.
2. If most answers are affine in what is known, this was the last hidden layer: go on with 5.
3. Find the signs of the layer from any surface behind it, and units that are always active (`inner_signs`).
4. Find the units of the next layer from all kinks that nothing explains (`layer_units`), and go on with 2.
5. Fit the output layer, find the signs of the last hidden layer, polish all parameters over the rows that
   were asked on the way, and ask fresh rows, many of them where a missing unit would show (`complete`).
   Kinks that nothing explains, and those between rows that agree and others that do not, lead to missing
   units of any layer (`repair`).

Assumed: answers precise to float64, an affine output layer, no box. Layers may be wider than what they read.
Units that switch nowhere on lines or check rows cannot be seen; one that is active wherever it was asked is
given as such.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_layers.complete import Attempt, Completed, Completion
from unweave.methods.relu_layers.inner_signs import FoundSigns, InnerSigns
from unweave.methods.relu_layers.last_layer import active_sides, known_network
from unweave.methods.relu_layers.layer_units import LayerUnits, Unit
from unweave.methods.relu_layers.options import ReluLayersOptions, ReluLayersReason
from unweave.methods.relu_layers.repair import Repairer
from unweave.methods.relu_layers.tower import FoundLayer, Tower
from unweave.methods.relu_layers.trace import Tracer
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.lines import line_stream
from unweave.methods.shared.surfaces.first_layer import FirstLayer
from unweave.methods.shared.surfaces.probe import KinkPool, Probe
from unweave.networks.network import Network
from unweave.networks.signs import KINKED, negative_slope
from unweave.numerics.line_kinks import Line
from unweave.search import Candidate, Context, GaveUp, Search
from unweave.targets.change_of_inputs import in_own_inputs


class ReluLayersSearch(Search):
    """Finds layer after layer from one pool of kinks."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        findings = self.findings
        self._line_rng = line_stream(self.rng)
        self._options: ReluLayersOptions = context.options
        self._spread = findings.spread
        self._sigma = float((findings.noise.sigma_per_output / self._spread).max())
        self._probe = Probe(context.view, self._spread, self._sigma, self._options.probe)
        self._tracer = Tracer(self._probe, self.rng, self._options.trace)
        self._pool = KinkPool()
        may_be_off = self.request.activation in (None, KINKED[0])
        self._first = FirstLayer(self._probe, self._pool, self.rng, self._options.first_layer, may_be_off)
        self._tower = Tower(self._probe.n_inputs, self._pool, self._options.sight)
        self._signed = 0
        self._activation = self.request.activation or KINKED[0]
        self._completion = Completion(
            self._probe, self._sigma, self.journal, self.rng, self._options.completion
        )
        self._completed: Completed | None = None
        self._explained: float | None = None
        self._evidence = KinkedEvidence()
        self._notes: list[str] = []

    def run(self) -> None:
        """Find layer after layer, then make a network of them."""
        self._first_layer()
        returns = 0
        while len(self._tower.layers) <= self._options.most_layers:
            if self._is_last() and self._complete():
                self._tell_limits()
                return
            try:
                self._find_signs()
                self._find_next_layer()
            except GaveUp:
                returns += 1
                if returns > self._options.most_returns or not self._go_back():
                    raise
        raise GaveUp(ReluLayersReason.TOO_DEEP, **self._so_far())

    def _go_back(self) -> bool:
        """Look for more units of the last layer that seemed complete: behind it nothing fits together.

        Return whether that makes sense.
        """
        tower, options = self._tower, self._options
        if len(tower.layers) == 1 or (len(tower.layers) == 2 and len(tower.layers) > self._signed):
            return self._more_of_first_layer()
        if len(tower.layers) > self._signed and len(tower.layers) > 2:
            tower.layers.pop()
        depth, top = len(tower.layers), tower.top
        tower.top.channels = np.zeros((0, top.matrix.shape[1]))
        tower.changed(depth)
        self._signed = depth - 1
        with self.journal.stage(f"layer {depth} again") as stage:
            for _ in range(2):
                self._more_kinks()
            repairer = self._repairer()
            repairer.search(depth).find(thorough=True)
            tower.changed(depth)
            for _ in range(options.rounds_below):
                if not repairer.round():
                    break
            stage.figures.update(units=top.width, lines=len(self._pool.lines))
        return True

    def _more_of_first_layer(self) -> bool:
        """Look among all kinks for units of the first layer that most of their readers hide."""
        tower = self._tower
        if tower.first_is_complete:
            return False
        known, signed = list(tower.layers), self._signed
        del tower.layers[1:]
        tower.changed(1)
        self._signed = 0
        before = tower.top.width
        with self.journal.stage("layer 1 again") as stage:
            dropped = self._drop_bent_planes()
            sight = tower.unsigned_sight(1)
            kinks = [self._pool.kinks[kink] for kink in sight.open_kinks()[: self._options.planes]]
            for row in np.flatnonzero(self._tracer.flatness.are_planes(sight.known, kinks)):
                if not self._first.holds(kinks[row]):
                    self._first.take([kinks[row]])
                    alpha = self._first.matrix[-1]
                    tower.top.units.append(Unit(alpha, np.zeros((len(alpha), 0)), [kinks[row].point]))
            tower.changed(1)
            stage.figures.update(units=tower.top.width)
        if dropped or tower.top.width > before:
            return True
        tower.layers[:], self._signed = known, signed  # what was complete still is
        tower.changed(1)
        return False

    def _drop_bent_planes(self) -> bool:
        """Leave out units of the first layer that are planes of deeper ones; return if there were any."""
        top, first = self._tower.top, self._first
        if not first.width == top.width > 2:
            return False
        bent = self._tracer.flatness.bent_planes(first.matrix, first.kinks)
        if not bent.any() or bent.all():
            return False
        first.drop(bent)
        top.units = [unit for unit, is_bent in zip(top.units, bent, strict=True) if not is_bent]
        self._tower.changed(1)
        return True

    def candidate(self) -> Candidate:
        """Return the network if there is one, and the layers whose signs are known."""
        done = self._completed
        return Candidate(
            network=None if done is None else in_own_inputs(done.network, self._probe.region, self._spread),
            evidence=self._evidence,
            notes=tuple(self._notes),
            ambiguity=None if done is None else done.ambiguity,
            known_layers=self._known_layers(),
        )

    def so_far(self) -> str:
        """Count the units of all layers, and the rows that they explain once they are the last ones."""
        found = " and ".join(map(str, self._tower.widths)) or "no"
        share = "" if self._explained is None else f", which explain {self._explained:.2%} of the rows asked"
        return f"{found} units had been found in {len(self._tower.layers)} hidden layers{share}"

    def _so_far(self) -> dict[str, object]:
        """Return figures for a reason."""
        widths = "-".join(map(str, self._tower.widths))
        return {"layers": len(self._tower.layers), "widths": widths}

    # -- first layer --------------------------------------------------------------------------------------

    def _first_layer(self) -> None:
        """Start the tower with the first layer, in the inputs that it reads."""
        probe, pool, first = self._probe, self._pool, self._first
        with self.journal.stage("layer 1") as stage:
            try:
                first.find(self._line_rng)
            finally:
                stage.figures.update(units=first.width, lines=len(pool.lines))
                for scanned in pool.lines:
                    self._evidence = self._evidence.with_line(probe.region, scanned.line, scanned.positions)
        first.reduce_inputs()
        rows = first.matrix
        units = [Unit(row, np.zeros((len(row), 0)), []) for row in rows]
        self._tower = Tower(probe.n_inputs, pool, self._options.sight)
        self._tower.first_is_complete = first.is_complete
        self._tower.layers.append(FoundLayer(units, np.zeros((0, rows.shape[1]))))

    # -- signs --------------------------------------------------------------------------------------------

    def _find_signs(self) -> None:
        """Find the signs of the last layer, adding units that it turns out to have."""
        tower, depth, options = self._tower, len(self._tower.layers), self._options
        with self.journal.stage(f"signs of layer {depth}") as stage:
            for attempt in range(2):
                found = self._signs_of_top(options.first_surfaces if depth == 1 and not attempt else None)
                if found.unmet:
                    self._leave_out(found.unmet)
                    found = self._signs_of_top()
                stage.figures.update(units=tower.top.width, open=int((found.votes == 0).sum()))
                if (found.votes != 0).all():
                    break
                if attempt:
                    raise GaveUp(ReluLayersReason.NO_SIGNS, **self._so_far())
                if depth == 1:
                    self._more_of_first_layer()
                    continue
                for _ in range(2):
                    self._more_kinks()
                self._repairer().search(depth).find(thorough=True)
                tower.changed(depth)
            for unit, sign in zip(tower.top.units, found.votes, strict=True):
                unit.alpha = sign * unit.alpha
            tower.top.channels = found.channels
            tower.changed(depth)
            self._promote_channels()
            # Where they are active whatever is asked, they are so far out, too.
            far = self._options.far * self.rng.standard_normal((1000, tower.n_inputs))
            turn = active_sides(tower.below(depth - 1).values(far) @ tower.top.channels.T)
            tower.top.channels = turn[:, None] * tower.top.channels
            tower.changed(depth)
            stage.figures.update(channels=len(tower.top.channels))
        self._signed = depth

    def _signs_of_top(self, most: int | None = None) -> FoundSigns:
        """Follow surfaces behind the last layer, ``most`` of them, until they tell its signs."""
        tower, options = self._tower, self._options.signs
        most = options.most_surfaces if most is None else most
        told = self._first.signs
        if self._signed == 0 and told is not None and self._activation == KINKED[0]:
            tower.slope = negative_slope(self._activation)
            tower.changed(0)
            return FoundSigns(told, np.zeros((0, tower.top.matrix.shape[1])))
        unknown = self._signed == 0 and self.request.activation is None
        slopes = {negative_slope(name): name for name in (KINKED if unknown else (self._activation,))}
        deep = len(tower.layers) > 1
        while True:
            sight = tower.unsigned_sight(len(tower.layers))
            nothing = np.zeros((0, tower.top.matrix.shape[1]))
            search = InnerSigns(sight, self._tracer, tuple(slopes), nothing, options)
            lines, missing = 0, None
            while search.tries < most and (search.votes.any() or not (deep and search.unmet)):
                kink = search.next_kink()
                if kink is None:
                    if lines >= options.most_lines:
                        break
                    self._more_kinks()
                    lines += 1
                    continue
                found = search.follow(kink)
                if found is None:
                    continue
                if found.missing is None:
                    tower.slope = search.slopes[0]
                    self._activation = slopes[tower.slope]
                    tower.changed(0)
                    return found
                missing = found.missing
                break
            if missing is None:
                return FoundSigns(search.votes, nothing, unmet=search.unmet if deep else ())
            self._add_missing(missing.representative[tower.top.width :], missing.places[0].point)

    def _leave_out(self, units: tuple[int, ...]) -> None:
        """Leave units out of the last layer that nothing behind it meets.

        Where they matter they are channels, almost everywhere. Their kinks wait in the pool for a repair.
        """
        top = self._tower.top
        top.units = [unit for number, unit in enumerate(top.units) if number not in units]
        self._tower.changed(len(self._tower.layers))

    def _add_missing(self, alpha: Array, point: Array) -> None:
        """Add a unit to the last layer that was found behind it."""
        tower = self._tower
        known = tower.below(len(tower.layers) - 1)
        gradient = known.jacobian(known.pattern(point))[0].T @ alpha
        tower.top.units.append(Unit(alpha / np.linalg.norm(gradient), np.zeros((len(alpha), 0)), [point]))
        tower.changed(len(tower.layers))

    def _promote_channels(self) -> None:
        """Make units of channels that do switch somewhere."""
        tower, repairer = self._tower, self._repairer()
        depth, top = len(tower.layers), tower.top
        while len(top.channels):
            unit = repairer.switching_channel(depth, self._options.repair.walks)
            if unit is None:
                return
            amounts = np.linalg.lstsq(top.channels[:, :-1].T, unit.alpha[:-1], rcond=1e-10)[0]
            points = self.rng.standard_normal((500, tower.n_inputs))
            if np.median(tower.below(depth - 1).values(points) @ unit.alpha) < 0:
                unit.alpha = -unit.alpha
            top.units.append(unit)
            top.channels = np.delete(top.channels, int(np.argmax(np.abs(amounts))), axis=0)
            tower.changed(depth)

    # -- units --------------------------------------------------------------------------------------------

    def _repairer(self) -> Repairer:
        options = self._options
        return Repairer(
            self._probe, self._tower, self._tracer, self.rng, options.layer, options.signs, options.repair
        )

    def _more_kinks(self, alphas: Array | None = None) -> None:
        """Search one more line for kinks that neither signed layers nor alphas (F, k) explain."""
        direction, start = self._line_rng.standard_normal((2, self._tower.n_inputs))
        reach = self._options.first_layer.near_reach
        line = Line(start, _normalised(direction), -reach, reach)
        tower = self._tower
        signed = len(tower.layers) if self._signed == len(tower.layers) else len(tower.layers) - 1
        if alphas is None and signed < len(tower.layers):
            alphas = tower.top.matrix.T
        self._repairer().take_kinks(self._probe.scan(line), tower.sight(signed), alphas)

    def _find_next_layer(self) -> None:
        """Find the units of the layer behind those whose signs are known."""
        options, tower, depth = self._options, self._tower, len(self._tower.layers)
        search = self._repairer().search(depth + 1)
        dry, before = 0, len(self._pool.lines)
        with self.journal.stage(f"layer {depth + 1}") as stage:
            while len(self._pool.lines) < before + (
                options.most_lines if search.units else options.blank_lines
            ):
                grown = search.find()
                self.journal.tell(len(search.units), None, "units")
                if search.units and self._explains(search):
                    break
                many = len(self._pool.lines) >= options.lines_per_layer
                if not grown and search.units and (self._belong_here(search) or many):
                    grown = search.find(thorough=True)
                dry = 0 if grown or not search.units else dry + 1
                if dry >= options.dry_lines and len(self._pool.lines) >= options.lines_per_layer:
                    break
                self._more_kinks(search.alphas)
            stage.figures.update(units=len(search.units), lines=len(self._pool.lines))
        if not search.units:
            raise GaveUp(ReluLayersReason.NO_UNITS, share=self._share(), **self._so_far())
        tower.layers.append(FoundLayer(search.units, np.zeros((0, search.sight.known.dimension))))

    def _belong_here(self, search: LayerUnits) -> bool:
        """Return whether most of the kinks that are left are flat: they are those of this layer, then."""
        rest = [kink for kink in search.sight.open_kinks(search.alphas) if kink not in search.tested]
        some = self.rng.permutation(rest)[: self._options.sample].tolist()
        flat = search.flat_ones(some)
        search.tested -= set(flat)
        search.is_last = bool(some) and len(flat) > self._options.flat_share * len(some)
        return search.is_last

    def _explains(self, search: LayerUnits) -> bool:
        """Return whether units that were found explain most rows."""
        self._tower.layers.append(FoundLayer(search.units, np.zeros((0, 0))))
        try:
            return self._share() > self._options.last
        finally:
            self._tower.layers.pop()
            self._tower.changed(len(self._tower.layers) + 1)

    def _share(self) -> float:
        """Return the share of rows that the last layer explains."""
        return self._completion.explained(self._completion.fit(self._tower))

    # -- the end ------------------------------------------------------------------------------------------

    def _is_last(self) -> bool:
        """Return whether the outputs are explained on most rows."""
        return len(self._tower.layers) > 1 and self._share() > self._options.last

    def _complete(self) -> bool:
        """Make a network, and add missing units until all rows agree; return whether one came of it."""
        options, tower, repairer = self._options, self._tower, self._repairer()
        best, dry, widths = 0.0, 0, tower.widths
        for _ in range(options.most_repairs):
            attempt = self._completion.attempt(tower, self._activation)
            if attempt.completed is not None:
                self._keep(attempt.completed)
                if not len(attempt.bad):
                    return True
            dry = 0 if attempt.share > best or tower.widths != widths else dry + 1
            self._explained = best = max(best, attempt.share)
            widths = tower.widths
            if dry > options.dry_repairs:
                break
            with self.journal.stage("repair") as stage:
                if not self._repair_round(repairer, attempt):
                    self._towards(attempt, repairer)
                    self._repair_round(repairer, attempt)
                stage.figures.update(widths="-".join(map(str, tower.widths)), kinks=len(self._pool.kinks))
        if self._completed is None:
            attempt = self._completion.attempt(tower, self._activation, at_any_price=True)
            if attempt.completed is not None:
                self._keep(attempt.completed)
        raise GaveUp(ReluLayersReason.NOT_EXPLAINED, share=best, **self._so_far())

    def _repair_round(self, repairer: Repairer, attempt: Attempt) -> bool:
        """Add a missing unit; take back one of the last layer that makes fewer rows agree."""
        tower, share, before = self._tower, self._share(), self._tower.top.width
        if not repairer.round(attempt.good, lambda: self._completion.fit(tower)):
            return False
        if tower.top.width > before and self._share() < share - self._options.worse:
            tower.top.units.pop()
            tower.changed(len(tower.layers))
            return False
        return True

    def _keep(self, completed: Completed) -> None:
        """Keep the network that agrees with most rows."""
        if self._completed is None or completed.disagreeing <= self._completed.disagreeing:
            self._completed = completed
            self._evidence = replace(self._evidence, **completed.figures)

    def _towards(self, attempt: Attempt, repairer: Repairer) -> None:
        """Search ways from rows that agree to others that do not."""
        options, tower = self._options, self._tower
        if not len(attempt.good):
            return
        for bad in self.rng.permutation(attempt.bad)[: options.segments]:
            apart = np.linalg.norm(attempt.good - bad, axis=1)
            apart[apart < options.apart] = np.inf
            near = np.argsort(apart)[: options.nearest]
            near = near[np.isfinite(apart[near])]
            if len(near):
                scanned = self._probe.scan_between(attempt.good[self.rng.choice(near)], bad)
                repairer.take_kinks(scanned, tower.sight(len(tower.layers) - 1), tower.top.matrix.T)

    def _tell_limits(self) -> None:
        assert self._completed is not None
        told, seen = self.request.hidden, self._completed.network.hidden
        if told is not None and told != seen:
            self._notes.append(
                f"hidden={list(told)} was said, {list(seen)} is what the answers show: dead units, units on "
                "one surface and units that are active wherever they were asked do not count"
            )
        self._notes.append(
            f"{len(self._pool.lines)} lines and {self._completed.checked} fresh rows were searched: units "
            "that switch on none of them, and dead units, cannot be seen"
        )

    # -- telling ------------------------------------------------------------------------------------------

    def _known_layers(self) -> Network | None:
        """Return the layers whose signs are known: they are certain."""
        if not self._signed:
            return None
        points, _ = self._probe.asked()
        options = self._options.completion.last_layer
        known = known_network(self._tower, self._signed, points, self._activation, options)
        first = self._probe.frame @ known.weights[0]
        whole = Network([first, *known.weights[1:]], known.biases, known.activations)
        return in_own_inputs(whole, self._probe.region)


def _normalised(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector))
