"""The first layer from the far field, and the range of the second.

1. directions from far-field circles (`unweave.methods.smooth_deep.far_field`);
2. norms from the shape of the steps (`unweave.methods.smooth_deep.step_profiles`);
3. biases and the second layer's width from gradients: linear algebra for tanh (`first_biases`),
   then norms, biases and range together (`unweave.methods.smooth_deep.gradient_subspace`);
4. if the second layer is as wide as the first, gradients are silent, and Hessians give the biases
   (`unweave.methods.smooth_deep.hessian_tail`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.smooth_deep.base_points import AMPLITUDE
from unweave.methods.smooth_deep.differences import hessian_stencils
from unweave.methods.smooth_deep.far_field import Unit, units_on_circle
from unweave.methods.smooth_deep.first_biases import ROWS_PER_UNIT, LinearBiases, linear_biases
from unweave.methods.smooth_deep.gradient_subspace import (
    GradientSubspace,
    LayerState,
    is_solution,
    narrowed,
    range_gap,
)
from unweave.methods.smooth_deep.hessian_tail import HessianTail, TailState, has_tail, tail_dimension
from unweave.methods.smooth_deep.known_layers import Ask, Layer
from unweave.methods.smooth_deep.layer_found import LayerFound
from unweave.methods.smooth_deep.projected_descent import Descent, descend
from unweave.methods.smooth_deep.reading_frame import GradientSample, sample_gradients
from unweave.methods.smooth_deep.reasons import DeepReason
from unweave.methods.smooth_deep.saturating import Saturating
from unweave.methods.smooth_deep.step_profiles import DOUBTFUL, StepProfiles, fit_step_profiles
from unweave.networks.links import Link
from unweave.search import GaveUp, Journal

_FEWEST_CIRCLES, _MOST_CIRCLES = 3, 25
_ENOUGH_CIRCLES = 8
_QUIET_CIRCLES = 7  # without a new unit: there are no more
_MORE_CIRCLES = 4  # for units whose steps do not fit
_LOW_STEP = 1e-5  # height of a step relative to the answers that leaves a direction to 1e-6
_CLEAR_RANK = 30.0  # gap of the spectrum that shows the second layer's width
_LARGEST_STATE = 2.5  # pre-activation beyond which a unit's slope says little about its bias
_GRADIENT_AMOUNTS = (1.0, 3.0)  # more of them if the first do not fit
_GRADIENT_STARTS = 4
_DRAWN = 4
_HESSIAN_STEP = 2e-3
_TAIL_AMPLITUDE = 1.3  # of the pre-activations at which Hessians are taken
_TAIL_STARTS = 6
_TAIL_ACCEPTED = 3e-3  # residual of a Hessian tail: differences of second order leave up to 1e-3


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
        """c (n, m) with B^T c = s."""
        return np.asarray(np.linalg.solve(self.mixing.T, s.T).T)


class FirstLayerSearch:
    """Finds the first layer of a target that can be asked far out."""

    def __init__(
        self,
        ask: Ask,
        frame: Array,
        sample: GradientSample | None,
        outputs: tuple[Link, ...],
        n_outputs: int,
        journal: Journal,
        rng: np.random.Generator,
    ) -> None:
        self._ask_inputs = ask
        self._frame = frame
        self._sample = sample
        self._outputs = outputs
        self._n_outputs = n_outputs
        self._journal = journal
        self._rng = rng
        self.units: list[Unit] = []
        self.circles = 0
        self._size = 0.0

    def _ask(self, c: Array) -> Array:
        return self._ask_inputs(c @ self._frame.T)

    def find_directions(self) -> None:
        """Circle until there are as many units as coordinates they read."""
        wanted = self._frame.shape[1]
        quiet = 0
        while self.circles < _MOST_CIRCLES:
            before = len(self.units)
            self._circle()
            quiet = quiet + 1 if len(self.units) == before else 0
            complete = len(self.units) >= wanted and self.circles >= _FEWEST_CIRCLES
            if complete and (self.circles >= _ENOUGH_CIRCLES or not self._feeble()):
                break
            if quiet >= _QUIET_CIRCLES:
                break
        self.check_count()

    def check_count(self) -> None:
        """Give up if the units seen so far cannot be the layer."""
        seen, wanted = len(self.units), self._frame.shape[1]
        if seen > wanted:
            raise GaveUp(DeepReason.TOO_WIDE, units=seen, read=wanted)
        if seen < wanted:
            raise GaveUp(DeepReason.TOO_FEW_SEEN, units=seen, wanted=wanted)

    def _circle(self) -> None:
        self.circles += 1
        size = units_on_circle(self._ask, self._frame.shape[1], self.units, self._rng)
        self._size = max(self._size, size)
        self._journal.tell(len(self.units), self._frame.shape[1], "directions")

    def _feeble(self) -> bool:
        """Whether some direction was measured at a step that is too low for it to be exact."""
        return min(unit.height for unit in self.units) < _LOW_STEP * self._size

    def find_profiles(self, g: Saturating) -> StepProfiles:
        """Norms and rough biases; asking for another ``g`` costs few queries."""
        profiles = fit_step_profiles(self._ask, self.units, g)
        for _ in range(_MORE_CIRCLES):
            if profiles.residuals.max() < DOUBTFUL or profiles.typical_residual > DOUBTFUL:
                break  # all is well, or the activation is another
            self._circle()
            again = fit_step_profiles(self._ask, self.units, g)
            if len(again.residuals) == len(profiles.residuals):
                profiles = again.where_better_than(profiles)
        return profiles

    def find_biases(
        self, profiles: StepProfiles, g: Saturating, next_width: int | None, next_is_last: bool | None
    ) -> LayerFound:
        """The layer with its biases, and what the second layer reads."""
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
        """None if the gradients show no second layer that is narrower than the first."""
        if len(rough.biases) < 2:
            return None
        found: LayerFound | None = None
        for attempt, amount in enumerate(_GRADIENT_AMOUNTS, start=1):
            places, gradients = self._gradients(rough, g, amount)
            problem = GradientSubspace(places, gradients, g, directions_known=True)
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
        clear = seen.gap > _CLEAR_RANK
        if next_width is None:
            return self._refined(rough, problem, seen) if clear else None
        told = linear_biases(np.eye(m), places, gradients, next_width)
        # Fewer directions than units that were said are believed at once; more only if nothing else fits.
        order = [seen, told] if clear and seen.next_width < next_width else [told, seen] if clear else [told]
        found = [self._refined(rough, problem, order[0])]
        if found[0].problem is not None and len(order) > 1:
            found.append(self._refined(rough, problem, order[1]))
        return min(found, key=lambda layer: layer.residual)

    def _refined(self, rough: _Rough, problem: GradientSubspace, linear: LinearBiases) -> LayerFound:
        """Norms, biases and range together, from the closed form."""
        m, k = len(rough.biases), linear.next_width
        compressed = problem.compressed(k)
        state = compressed.with_range(LayerState(np.eye(m), linear.biases, np.zeros((m, k))), k)
        return self._found(rough, descend(compressed, state, steps=40, damping=1e-4), compressed)

    def _by_starts(
        self, rough: _Rough, problem: GradientSubspace, next_width: int | None
    ) -> LayerFound | None:
        """Without a closed form: from the profiles' biases, with ranges that leave room if k is not known."""
        m = len(rough.biases)
        shares = (next_width,) if next_width is not None else (3 * m // 4, m - 1, m // 2)
        best: LayerFound | None = None
        for k, attempt in itertools.product(dict.fromkeys(shares), range(_GRADIENT_STARTS)):
            if not 0 < k < m:
                continue
            start = rough.biases / (1 + (attempt == 1))
            if attempt > 1:
                start = rough.biases + 0.3 * self._rng.standard_normal(m)
            compressed = problem.compressed(k)
            state = compressed.with_range(LayerState(np.eye(m), start, np.zeros((m, k))), k)
            fit = descend(compressed, state, steps=40)
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
        if not is_solution(fit.residual, gap):
            complaint = f"biases leave a residual of {fit.residual:.1e} in the gradients"
        layer = Layer(self._frame, rough.mixing @ fit.state.mixing, fit.state.biases)
        return LayerFound(layer, fit.state.next_range, fit.residual, gap, None, 1, problem=complaint)

    def _gradients(self, rough: _Rough, g: Saturating, amount: float) -> tuple[Array, Array]:
        """Places s (n, m) and gradients with respect to s (n, m, K), those that showed the frame included."""
        m = len(rough.biases)
        places: list[Array] = []
        gradients: list[Array] = []
        if self._sample is not None:
            at = self._sample.points @ self._frame @ rough.mixing
            calm = np.abs(at + rough.biases).max(axis=1) < _LARGEST_STATE
            pulled = self._frame.T @ self._sample.gradients[calm]
            places.append(at[calm])
            gradients.append(np.asarray(np.linalg.solve(rough.mixing, pulled)))
        missing = int(np.ceil(amount * ROWS_PER_UNIT * m / self._n_outputs)) + 4 - sum(map(len, places))
        if missing > 0:
            # Of several drawings those nearest to the origin: far out, errors of the directions count most.
            drawn = g.inverse(np.array(AMPLITUDE)) * self._rng.choice([-1.0, 1.0], (_DRAWN * missing, m))
            drawn = drawn * self._rng.uniform(0.2, 1.0, drawn.shape) - rough.biases
            nearest = np.argsort(np.linalg.norm(rough.coordinates(drawn), axis=1))[:missing]
            more = sample_gradients(lambda s: self._ask(rough.coordinates(s)), drawn[nearest])
            places.append(more.points)
            gradients.append(more.gradients)
        return np.concatenate(places), np.concatenate(gradients)

    def _from_hessians(self, rough: _Rough, g: Saturating, k: int, next_is_last: bool | None) -> LayerFound:
        m = len(rough.biases)
        count = int(np.ceil(max(1.5 * k, 60) / self._n_outputs)) + 20
        dimension = tail_dimension(k, count * self._n_outputs, next_is_last)
        places = _TAIL_AMPLITUDE * self._rng.uniform(-1, 1, (count, m)) - rough.biases

        def around(sites: IntArray, moves: Array) -> Array:
            return self._ask(rough.coordinates(places[sites] + moves))

        stencils = hessian_stencils(around, np.full(count, _HESSIAN_STEP), m)
        best: Descent[TailState] | None = None
        attempt = 0
        for attempt, output in itertools.product(range(1, _TAIL_STARTS + 1), self._outputs):
            usable = output.unsaturated(stencils.centre)
            if not has_tail(dimension, int(usable.sum()) * self._n_outputs, m):
                continue
            gradients, hessians = stencils.take(usable).derivatives(output.inverse)
            biases = (rough.biases, rough.biases / 2, 0 * rough.biases)[min(attempt, 3) - 1]
            if attempt > 3:
                biases = rough.biases + 0.3 * self._rng.standard_normal(m)
            start = TailState(np.eye(m), biases)
            problem = HessianTail(
                places[usable], gradients, hessians, dimension, g, start, directions_known=True
            )
            fit = descend(problem, start, steps=60, enough=1e-7)
            if best is None or fit.residual < best.residual:
                best = fit
            if best.residual < _TAIL_ACCEPTED:
                break
        if best is None:
            # A single unit, or hardly any outputs: the profiles' biases are all there is to start from.
            return LayerFound(
                Layer(self._frame, rough.mixing, rough.biases), np.eye(m), np.nan, None, None, 1
            )
        complaint = None
        if best.residual > _TAIL_ACCEPTED:
            complaint = f"biases leave a residual of {best.residual:.1e} in the Hessians"
            if next_is_last is False:
                complaint += "; the next layer is as wide and more follow, which is out of reach"
        layer = Layer(self._frame, rough.mixing @ best.state.mixing, best.state.biases)
        return LayerFound(layer, np.eye(m), best.residual, None, None, attempt, problem=complaint)
