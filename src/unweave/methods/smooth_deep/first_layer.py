"""The first layer from the far field, and the range of the second.

1. directions from far-field circles (`far_field`);
2. norms from the shape of the steps (`step_profiles`);
3. biases and the second layer's width from gradients: linear algebra for tanh (`first_biases`),
   then norms, biases and range together (`gradient_subspace`);
4. if the second layer is as wide as the first, gradients say nothing, and Hessians give the biases
   (`hessian_tail`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.derivatives.site_differences import hessian_stencils
from unweave.methods.shared.far_field import Unit, units_on_circle
from unweave.methods.smooth_deep.first_biases import LinearBiases, linear_biases
from unweave.methods.smooth_deep.gradient_subspace import (
    GradientSubspace,
    LayerState,
    is_solution,
    narrowed,
    range_gap,
)
from unweave.methods.smooth_deep.hessian_tail import HessianTail, TailState, has_tail, tail_dimension
from unweave.methods.smooth_deep.known_layers import Layer
from unweave.methods.smooth_deep.layer_search import DeepReason, LayerFound, LayerSetting
from unweave.methods.smooth_deep.reading_frame import GradientSample, sample_gradients
from unweave.methods.smooth_deep.step_profiles import StepProfiles, fit_step_profiles
from unweave.networks.saturation import Saturating
from unweave.numerics.least_squares.manifold_descent import Descent, descend
from unweave.search import GaveUp


@dataclass(frozen=True, eq=False)
class _Rough:
    """The layer before its biases are known.

    Differences are taken in its pre-activations s = B^T c, up to the biases: whatever the condition of B,
    each unit is then moved by itself, and in these coordinates the layer to be found is nearly the identity.
    """

    mixing: Array
    """B with norms from the profiles, (m, m)."""
    biases: Array

    def coordinates(self, s: Array) -> Array:
        """Return c (n, m) with B^T c = s."""
        return np.asarray(np.linalg.solve(self.mixing.T, s.T).T)


class FirstLayerSearch:
    """Finds the first layer of a target that answers far out."""

    def __init__(self, setting: LayerSetting, frame: Array, sample: GradientSample | None) -> None:
        self._setting = setting
        self._frame = frame
        self._sample = sample
        self._n_outputs = setting.n_outputs
        self._rng = setting.rng
        self._options = setting.options.first_layer
        self._circles = setting.options.circles
        self._tail = setting.options.tail
        self.units: list[Unit] = []
        self.circles = 0
        self._size = 0.0

    def _ask(self, c: Array) -> Array:
        return self._setting.ask(c @ self._frame.T)

    def find_directions(self) -> None:
        """Circle until there are as many units as coordinates that they read."""
        wanted, options = self._frame.shape[1], self._circles
        quiet = 0
        while self.circles < options.most:
            before = len(self.units)
            self._circle()
            quiet = quiet + 1 if len(self.units) == before else 0
            complete = len(self.units) >= wanted and self.circles >= options.fewest
            if complete and (self.circles >= options.enough or not self._feeble()):
                break
            if quiet >= options.quiet:
                break
        self.check_count()

    def check_count(self) -> None:
        """Give up if the units seen so far cannot be the layer."""
        seen, wanted = len(self.units), self._frame.shape[1]
        if seen > wanted:
            raise GaveUp(DeepReason.TOO_WIDE, units=seen, read=wanted)
        if seen < max(wanted, 1):
            raise GaveUp(DeepReason.TOO_FEW_SEEN, units=seen, wanted=wanted)

    def _circle(self) -> None:
        self.circles += 1
        size = units_on_circle(self._ask, self._frame.shape[1], self.units, self._rng, self._circles)
        self._size = max(self._size, size)
        self._setting.journal.tell(len(self.units), self._frame.shape[1], "directions")

    def _feeble(self) -> bool:
        """Return whether some direction was measured at a step that is too low for it to be exact."""
        return any(unit.height < self._circles.low_step * self._size for unit in self.units)

    def find_profiles(self, g: Saturating) -> StepProfiles:
        """Find norms and rough biases; asking for another ``g`` costs few queries."""
        options = self._setting.options.profiles
        profiles = fit_step_profiles(self._ask, self.units, g, options)
        for _ in range(self._circles.more):
            if profiles.residuals.max() < options.doubtful or profiles.typical_residual > options.doubtful:
                break  # all is well, or the activation is another
            self._circle()
            again = fit_step_profiles(self._ask, self.units, g, options)
            if len(again.residuals) == len(profiles.residuals):
                profiles = again.where_better_than(profiles)
        return profiles

    def find_biases(
        self, profiles: StepProfiles, g: Saturating, next_width: int | None, next_is_last: bool | None
    ) -> LayerFound:
        """Find the layer with its biases, and what the second layer reads."""
        directions = np.array([unit.direction for unit in self.units]).T
        mixing = directions * (profiles.signs * profiles.norms)
        rough = _Rough(mixing, profiles.biases)
        m = len(profiles.norms)
        if next_width is None or next_width < m:
            found = self._from_gradients(rough, g, next_width)
            if found is not None and (found.problem is None or next_width is not None):
                return found
        return self._from_hessians(rough, g, m, next_is_last)

    def _from_gradients(self, rough: _Rough, g: Saturating, next_width: int | None) -> LayerFound | None:
        """Return None if the gradients show no second layer that is narrower than the first."""
        if len(rough.biases) < 2:
            return None
        found: LayerFound | None = None
        for attempt, amount in enumerate(self._options.amounts, start=1):
            places, gradients = self._gradients(rough, g, amount)
            subspace = self._setting.options.subspace
            problem = GradientSubspace(places, gradients, g, directions_known=True, options=subspace)
            if g.name == "tanh":
                found = self._in_closed_form(rough, problem, places, gradients, next_width)
            else:
                found = self._by_starts(rough, problem, next_width)
            if found is None or found.problem is None:
                break
            found = replace(found, attempts=attempt)
        return found

    def _in_closed_form(
        self,
        rough: _Rough,
        problem: GradientSubspace,
        places: Array,
        gradients: Array,
        next_width: int | None,
    ) -> LayerFound | None:
        m = len(rough.biases)
        seen = linear_biases(np.eye(m), places, gradients)
        clear = seen.gap > self._options.clear_rank
        if next_width is None:
            return self._refined(rough, problem, seen) if clear else None
        told = linear_biases(np.eye(m), places, gradients, next_width)
        # Fewer directions than the caller said are believed at once; more only if nothing else fits.
        order = [seen, told] if clear and seen.next_width < next_width else [told, seen] if clear else [told]
        found = [self._refined(rough, problem, order[0])]
        if found[0].problem is not None and len(order) > 1:
            found.append(self._refined(rough, problem, order[1]))
        return min(found, key=lambda layer: layer.residual)

    def _refined(self, rough: _Rough, problem: GradientSubspace, linear: LinearBiases) -> LayerFound:
        """Fit norms, biases and range together, from the closed form."""
        m, k = len(rough.biases), linear.next_width
        compressed = problem.compressed(k)
        state = compressed.with_range(LayerState(np.eye(m), linear.biases, np.zeros((m, k))), k)
        steps, damping = self._options.fit_steps, self._options.closed_form_damping
        return self._found(rough, descend(compressed, state, steps=steps, damping=damping), compressed)

    def _by_starts(
        self, rough: _Rough, problem: GradientSubspace, next_width: int | None
    ) -> LayerFound | None:
        """Fit without a closed form: from the profiles' biases, with wide ranges where k is not known."""
        m = len(rough.biases)
        shares = (next_width,) if next_width is not None else (3 * m // 4, m - 1, m // 2)
        best: LayerFound | None = None
        for k, attempt in itertools.product(dict.fromkeys(shares), range(self._options.starts)):
            if not 0 < k < m:
                continue
            start = rough.biases / (1 + (attempt == 1))
            if attempt > 1:
                start = rough.biases + self._options.bias_spread * self._rng.standard_normal(m)
            compressed = problem.compressed(k)
            state = compressed.with_range(LayerState(np.eye(m), start, np.zeros((m, k))), k)
            fit = descend(compressed, state, steps=self._options.fit_steps)
            if next_width is None:
                fit = narrowed(compressed, fit)
            found = self._found(rough, fit, compressed)
            if best is None or found.residual < best.residual:
                best = found
            if best.problem is None:
                return best
        return best if next_width is not None else None

    def _found(self, rough: _Rough, fit: Descent[LayerState], problem: GradientSubspace) -> LayerFound:
        gap, complaint = range_gap(problem, fit.state), None
        if not is_solution(fit.residual, gap, problem.options):
            complaint = f"biases leave a residual of {fit.residual:.1e} in the gradients"
        layer = Layer(self._frame, rough.mixing @ fit.state.mixing, fit.state.biases)
        return LayerFound(layer, fit.state.next_range, fit.residual, gap, None, 1, problem=complaint)

    def _gradients(self, rough: _Rough, g: Saturating, amount: float) -> tuple[Array, Array]:
        """Return places s (n, m) and gradients in s (n, m, K), those that showed the frame included."""
        m, options = len(rough.biases), self._options
        places: list[Array] = []
        gradients: list[Array] = []
        if self._sample is not None:
            at = self._sample.points @ self._frame @ rough.mixing
            calm = np.abs(at + rough.biases).max(axis=1) < options.largest_state
            pulled = self._frame.T @ self._sample.gradients[calm]
            places.append(at[calm])
            gradients.append(np.asarray(np.linalg.solve(rough.mixing, pulled)))
        wanted = int(np.ceil(amount * options.rows_per_unit * m / self._n_outputs)) + 4
        missing = wanted - sum(map(len, places))
        if missing > 0:
            # Keep the points nearest to the origin: errors of the directions count most far out.
            farthest = g.inverse(np.array(self._setting.options.points.amplitude))
            drawn = farthest * self._rng.choice([-1.0, 1.0], (options.draws * missing, m))
            drawn = drawn * self._rng.uniform(options.shortest_state, 1.0, drawn.shape) - rough.biases
            nearest = np.argsort(np.linalg.norm(rough.coordinates(drawn), axis=1))[:missing]
            step = self._setting.options.frame.step
            more = sample_gradients(lambda s: self._ask(rough.coordinates(s)), drawn[nearest], step)
            places.append(more.points)
            gradients.append(more.gradients)
        return np.concatenate(places), np.concatenate(gradients)

    def _from_hessians(self, rough: _Rough, g: Saturating, k: int, next_is_last: bool | None) -> LayerFound:
        m, options = len(rough.biases), self._options
        per_unit, fewest = options.hessians
        count = int(np.ceil(max(per_unit * k, fewest) / self._n_outputs)) + 20
        dimension = tail_dimension(k, count * self._n_outputs, next_is_last)
        places = options.tail_amplitude * self._rng.uniform(-1, 1, (count, m)) - rough.biases

        def around(sites: IntArray, moves: Array) -> Array:
            return self._ask(rough.coordinates(places[sites] + moves))

        stencils = hessian_stencils(around, np.full(count, options.hessian_step), m)
        best: Descent[TailState] | None = None
        attempt = 0
        for attempt, output in itertools.product(range(1, options.tail_starts + 1), self._setting.outputs):
            usable = output.unsaturated(stencils.centre)
            if not has_tail(dimension, int(usable.sum()) * self._n_outputs, m):
                continue
            gradients, hessians = stencils.take(usable).derivatives(output.inverse)
            biases = (rough.biases, rough.biases / 2, 0 * rough.biases)[min(attempt, 3) - 1]
            if attempt > 3:
                biases = rough.biases + self._options.bias_spread * self._rng.standard_normal(m)
            start = TailState(np.eye(m), biases)
            data = places[usable], gradients, hessians
            problem = HessianTail(*data, dimension, g, start, directions_known=True, options=self._tail)
            fit = descend(problem, start, steps=options.tail_steps, enough=self._tail.enough)
            if best is None or fit.residual < best.residual:
                best = fit
            if best.residual < self._tail.solved:
                break
        if best is None:
            # A single unit, or too few Hessians: the profiles' biases are the best start.
            return LayerFound(
                Layer(self._frame, rough.mixing, rough.biases), np.eye(m), np.nan, None, None, 1
            )
        complaint = None
        if best.residual > self._tail.solved:
            complaint = f"biases leave a residual of {best.residual:.1e} in the Hessians"
            if next_is_last is False:
                complaint += "; the next layer is as wide and more follow, which is out of reach"
        layer = Layer(self._frame, rough.mixing @ best.state.mixing, best.state.biases)
        return LayerFound(layer, np.eye(m), best.residual, None, None, attempt, problem=complaint)
