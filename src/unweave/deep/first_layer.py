"""The first layer from the far field, and the range of the second.

1. directions from far-field circles (`unweave.deep.far_field`);
2. norms from the shape of the steps (`unweave.deep.step_profiles`);
3. biases and the second layer's width from gradients: linear algebra for tanh (`unweave.deep.first_biases`),
   then norms, biases and range together (`unweave.deep.gradient_subspace`);
4. if the second layer is as wide as the first, gradients are silent, and Hessians give the biases
   (`unweave.deep.hessian_tail`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.deep.base_points import AMPLITUDE
from unweave.deep.differences import hessian_stencils
from unweave.deep.far_field import Unit, units_on_circle
from unweave.deep.first_biases import ROWS_PER_UNIT, LinearBiases, linear_biases
from unweave.deep.gradient_subspace import GradientSubspace, LayerState
from unweave.deep.hessian_tail import HessianTail, TailState, tail_dimension
from unweave.deep.known_layers import Ask, Layer
from unweave.deep.layer_found import LayerFound
from unweave.deep.output_layer import OutputActivation
from unweave.deep.projected_descent import Descent, descend
from unweave.deep.reading_frame import GradientSample, sample_gradients
from unweave.deep.saturating import Saturating
from unweave.deep.step_profiles import StepProfile, fit_step_profile
from unweave.journal import Journal

_FEWEST_CIRCLES, _MOST_CIRCLES = 3, 25
_CIRCLES_WITHOUT = 6  # circles without any unit after which there is none to be seen
_CLEAR_RANK = 30.0  # gap of the spectrum that shows the second layer's width
_ACCEPTED = 1e-6  # relative residual of a gradient fit that is a solution; wrong minima stay above 1e-4
_HESSIAN_STEP = 2e-3
_TAIL_AMPLITUDE = 1.3  # of the pre-activations at which Hessians are taken
_TAIL_STARTS = 6
_TAIL_ACCEPTED = 3e-3  # residual of a Hessian tail: differences of second order leave up to 1e-3


@dataclass(frozen=True)
class _Rough:
    """The layer before its biases are known."""

    mixing: Array
    biases: Array


class FirstLayerSearch:
    """Finds the first layer of a target that can be asked far out."""

    def __init__(
        self,
        ask: Ask,
        frame: Array,
        sample: GradientSample | None,
        outputs: tuple[OutputActivation, ...],
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

    def _ask(self, c: Array) -> Array:
        return self._ask_inputs(c @ self._frame.T)

    def find_directions(self) -> str | None:
        """Circle until there are as many units as coordinates they read; returns why there are not."""
        wanted = self._frame.shape[1]
        for self.circles in range(1, _MOST_CIRCLES + 1):
            units_on_circle(self._ask, wanted, self.units, self._rng)
            self._journal.tell(len(self.units), wanted, "directions")
            complete = len(self.units) >= wanted and self.circles >= _FEWEST_CIRCLES
            if complete or (self.circles >= _CIRCLES_WITHOUT and not self.units):
                break
        if len(self.units) > wanted:
            return (
                f"layer 1 has at least {len(self.units)} units but reads only {wanted} coordinates: "
                "layers must not be wider than what they read"
            )
        if len(self.units) < wanted:
            return f"far away only {len(self.units)} units of layer 1 are seen, gradients show {wanted}"
        return None

    def find_profiles(self, g: Saturating) -> list[StepProfile]:
        """Norms and rough biases; asking for another ``g`` costs no query."""
        profiles = []
        for number, unit in enumerate(self.units):
            profiles.append(fit_step_profile(self._ask, unit, g))
            self._journal.tell(number + 1, len(self.units), "units")
        return profiles

    def find_biases(
        self, profiles: list[StepProfile], g: Saturating, next_width: int | None, next_is_last: bool | None
    ) -> LayerFound:
        """The layer with its biases, and what the second layer reads."""
        directions = np.array([unit.direction for unit in self.units]).T
        signs = np.array([1.0 if profile.norm > 0 else -1.0 for profile in profiles])
        norms = np.array([abs(profile.norm) for profile in profiles])
        rough = _Rough(directions * signs * norms, np.array([profile.bias for profile in profiles]))
        m = len(norms)
        if next_width is None or next_width < m:
            found = self._from_gradients(rough, g, next_width)
            if found is not None:
                return found
        return self._from_hessians(rough, g, m, next_is_last)

    def _from_gradients(self, rough: _Rough, g: Saturating, next_width: int | None) -> LayerFound | None:
        """None if the gradients show no second layer that is narrower than the first."""
        m = len(rough.biases)
        if m < 2:
            return None
        coordinates, gradients = self._gradients(rough, g)
        linear: LinearBiases | None = None
        biases, k, gap = rough.biases, next_width, None
        if g.name == "tanh":
            linear = linear_biases(rough.mixing, coordinates, gradients)
            if linear.gap > _CLEAR_RANK:  # what is seen counts more than what was said
                k = linear.next_width
            elif k is None:
                return None
            else:
                linear = linear_biases(rough.mixing, coordinates, gradients, k)
            biases, gap = linear.biases, linear.gap
        if k is None:
            k = m // 2  # without a closed form the width is read off a fit that leaves room
        problem = GradientSubspace(coordinates, gradients, g, directions_known=True)
        fit = self._best_fit(problem.compressed(k), rough, biases, k, exact_start=linear is not None)
        state, residual = fit.state, fit.residual
        if residual > _ACCEPTED and next_width is None and linear is None:
            return None
        complaint = None
        if residual > _ACCEPTED:
            complaint = f"biases of layer 1 leave a residual of {residual:.1e} in the gradients"
        layer = Layer(self._frame, state.mixing, state.biases)
        return LayerFound(layer, state.next_range, residual, gap, None, 1, problem=complaint)

    def _best_fit(
        self, problem: GradientSubspace, rough: _Rough, biases: Array, k: int, exact_start: bool
    ) -> Descent[LayerState]:
        m = len(biases)
        best: Descent[LayerState] | None = None
        for attempt in range(1 if exact_start else 8):
            start = biases
            if attempt == 1:
                start = biases / 2
            elif attempt > 1:
                start = biases + 0.3 * self._rng.standard_normal(m)
            state = problem.with_range(LayerState(rough.mixing, start, np.zeros((m, k))), k)
            fit = descend(problem, state, steps=40, damping=1e-4 if exact_start else 1e-2)
            if best is None or fit.residual < best.residual:
                best = fit
            if best.residual < _ACCEPTED:
                break
        assert best is not None
        return best

    def _gradients(self, rough: _Rough, g: Saturating) -> tuple[Array, Array]:
        """Gradients in the frame, those that showed it included."""
        m = len(rough.biases)
        coordinates, gradients = np.zeros((0, m)), np.zeros((0, m, self._n_outputs))
        if self._sample is not None:
            coordinates = self._sample.points @ self._frame
            gradients = self._frame.T @ self._sample.gradients
        missing = int(np.ceil(ROWS_PER_UNIT * m / self._n_outputs)) + 4 - len(coordinates)
        if missing > 0:
            z = g.inverse(np.array(AMPLITUDE)) * self._rng.choice([-1.0, 1.0], (missing, m))
            z = z * self._rng.uniform(0.2, 1.0, (missing, m))
            more = sample_gradients(self._ask, _coordinates_at(rough, z))
            coordinates = np.concatenate([coordinates, more.points])
            gradients = np.concatenate([gradients, more.gradients])
        return coordinates, gradients

    def _from_hessians(self, rough: _Rough, g: Saturating, k: int, next_is_last: bool | None) -> LayerFound:
        m = len(rough.biases)
        count = int(np.ceil(max(1.5 * k, 60) / self._n_outputs)) + 20
        dimension = tail_dimension(k, count * self._n_outputs, next_is_last)
        c = _coordinates_at(rough, _TAIL_AMPLITUDE * self._rng.uniform(-1, 1, (count, m)))

        def around(sites: IntArray, moves: Array) -> Array:
            return self._ask(c[sites] + moves)

        stencils = hessian_stencils(around, np.full(count, _HESSIAN_STEP), m)
        best: Descent[TailState] | None = None
        attempt = 0
        for attempt, output in itertools.product(range(1, _TAIL_STARTS + 1), self._outputs):
            usable = output.usable(stencils.centre)
            if usable.sum() * self._n_outputs <= dimension:
                continue
            gradients, hessians = stencils.take(usable).derivatives(output.undo)
            biases = (rough.biases, rough.biases / 2, 0 * rough.biases)[min(attempt, 3) - 1]
            if attempt > 3:
                biases = rough.biases + 0.3 * self._rng.standard_normal(m)
            start = TailState(rough.mixing, biases)
            problem = HessianTail(c[usable], gradients, hessians, dimension, g, start, directions_known=True)
            fit = descend(problem, start, steps=60, enough=1e-7)
            if best is None or fit.residual < best.residual:
                best = fit
            if best.residual < _TAIL_ACCEPTED:
                break
        assert best is not None
        complaint = None
        if best.residual > _TAIL_ACCEPTED:
            complaint = f"biases of layer 1 leave a residual of {best.residual:.1e} in the Hessians"
        layer = Layer(self._frame, best.state.mixing, best.state.biases)
        return LayerFound(layer, np.eye(m), best.residual, None, None, attempt, problem=complaint)


def _coordinates_at(rough: _Rough, z: Array) -> Array:
    """Coordinates (n, m) at which the pre-activations are about ``z``."""
    return np.asarray(np.linalg.solve(rough.mixing.T, (z - rough.biases).T).T)
