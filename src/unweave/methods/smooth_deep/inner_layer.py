"""A layer whose inputs can be set through the known layers below it.

1. Hessians of the rest with respect to what the layer reads, at widely spread points; joint
   diagonalisation gives a start (`layer_start`), which is exact if only the output layer follows;
2. gradients at other points: the layer and the range of the next, exactly (`gradient_subspace`);
3. if that ends in a wrong minimum, which its residual shows, the Hessians improve the start
   (`hessian_tail`), and 2 is done again; then all once more with more points.
Where the next layer is as wide as this one, gradients say nothing, and 3 stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.site_differences import (
    GRADIENT_REACH,
    HESSIAN_REACH,
    HessianStencils,
    gradients_around,
    hessian_stencils,
)
from unweave.methods.smooth_deep.gradient_subspace import (
    GradientSubspace,
    LayerState,
    is_solution,
    narrowed,
    range_gap,
)
from unweave.methods.smooth_deep.hessian_tail import HessianTail, TailState, has_tail, tail_dimension
from unweave.methods.smooth_deep.known_layers import KnownLayers, Layer, Peeled
from unweave.methods.smooth_deep.layer_search import DeepReason, LayerFound, LayerSetting
from unweave.methods.smooth_deep.layer_start import LayerStart, layer_start
from unweave.networks.links import Link
from unweave.numerics.least_squares.manifold_descent import Descent, descend
from unweave.search import GaveUp


class InnerLayerSearch:
    """Finds one layer given all below it."""

    def __init__(self, setting: LayerSetting, known: KnownLayers, frame: Array) -> None:
        self._setting = setting
        self._known = known
        self._frame = frame
        self._n_outputs = setting.n_outputs
        self._options = setting.options.inner_layer
        self._tail = setting.options.tail
        self._width = frame.shape[1]
        self._stencils: list[HessianStencils] = []
        self._coordinates: list[Array] = []
        self._attempts = 0

    def run(self, next_width: int | None, last: bool | None, next_is_last: bool | None) -> LayerFound:
        """Find the layer.

        ``next_width``: width of the next hidden layer if known. ``last`` and ``next_is_last``: whether
        this or the next is the last hidden layer; None to find out.
        """
        best: LayerFound | None = None
        for found in self._attempted(next_width, last, next_is_last):
            if found.problem is None:
                return found
            if best is None or found.residual < best.residual:
                best = found
        if best is None:
            raise GaveUp(DeepReason.NO_ROOM)
        return best

    def _attempted(
        self, next_width: int | None, last: bool | None, next_is_last: bool | None
    ) -> Iterator[LayerFound]:
        """Yield ever more expensive attempts at the layer."""
        options = self._options
        per_unit, fewest = options.hessians
        few = int(np.ceil(options.hessians_if_last * self._width / self._n_outputs)) + 10
        many = max(fewest, int(per_unit * self._width / self._n_outputs))
        for number in range(options.rounds):
            amplitude = self._amplitude(number)
            self._attempts += 1
            if not self._sample_hessians(few if number == 0 else many, amplitude):
                continue
            start, output = self._start(normalise=number != 1)
            if last or start.mismatch < options.last:
                yield self._as_last(start, output, told=bool(last))
                continue
            if number == 0 and many > few and self._sample_hessians(many - few, amplitude):
                start, _ = self._start(normalise=True)
            if next_width is None or next_width < self._width:
                yield from self._from_gradients(start, next_width, amplitude)
            self._attempts += 1
            if next_width is not None:
                yield from self._from_tail(start, next_width, next_is_last, amplitude)
            else:  # no narrower layer follows: one as wide, which must be the last to be within reach
                yield from self._from_tail(start, self._width, True, amplitude)

    def _amplitude(self, number: int) -> float:
        amplitude, g = self._setting.options.points.amplitude, self._known.g
        if number == 0:
            return amplitude
        factor = self._setting.rng.uniform(*self._options.amplitude_factors)
        z = float(g.inverse(np.array(amplitude))) * factor
        return float(g.values(np.array(z)))

    def _sample_hessians(self, count: int, amplitude: float) -> bool:
        step = self._options.hessian_step
        base = self._setting.points.around(self._known, self._frame, count, step, HESSIAN_REACH, amplitude)
        if base is None:
            return False
        peeled = Peeled(self._setting.ask, self._known, base.states, self._frame)
        self._stencils.append(hessian_stencils(peeled, base.steps, self._width))
        self._coordinates.append(peeled.coordinates)
        return True

    def _start(self, normalise: bool) -> tuple[LayerStart, Link]:
        """Find the output activation whose start has the least mismatch, from all Hessians so far."""
        stencils = HessianStencils.concatenate(self._stencils)
        coordinates = np.concatenate(self._coordinates)
        best: tuple[LayerStart, Link] | None = None
        for output in self._setting.outputs:
            usable = output.unsaturated(stencils.centre)
            if usable.sum() < max(2, self._width // self._n_outputs):
                continue
            gradients, hessians = stencils.take(usable).derivatives(output.inverse)
            good = np.isfinite(hessians).all(axis=(1, 2, 3)) & np.isfinite(gradients).all(axis=(1, 2))
            data = coordinates[usable][good], gradients[good], hessians[good]
            start = layer_start(*data, self._known.g, normalise, self._setting.options.start)
            if best is None or start.mismatch < best[0].mismatch:
                best = start, output
        assert best is not None  # the identity, or the caller's activation, is never saturated everywhere
        return best

    def _as_last(self, start: LayerStart, output: Link, told: bool) -> LayerFound:
        complaint = None
        if start.mismatch > (self._options.last_if_told if told else self._options.last):
            complaint = f"Hessians are not jointly diagonal ({start.mismatch:.1e}): more layers follow"
        layer = Layer(self._frame, start.mixing, start.biases)
        residual = float(np.sqrt(max(start.mismatch, 0.0)))
        return LayerFound(layer, None, residual, None, start.off_diagonal, self._attempts, output, complaint)

    def _from_gradients(
        self, start: LayerStart, next_width: int | None, amplitude: float
    ) -> Iterator[LayerFound]:
        for k in self._widths_to_try(next_width):
            fitted = self._gradient_fit(start, k, amplitude)
            if fitted is None:
                return
            descent, problem = fitted
            if next_width is None and descent.residual < self._options.worth_narrowing:
                descent = narrowed(problem, descent)
            gap = range_gap(problem, descent.state)
            solved = is_solution(descent.residual, gap, problem.options)
            yield LayerFound(
                layer=Layer(self._frame, descent.state.mixing, descent.state.biases),
                next_range=descent.state.next_range,
                residual=descent.residual,
                gap=gap,
                off_diagonal=start.off_diagonal,
                attempts=self._attempts,
                problem=None if solved else f"gradients leave a residual of {descent.residual:.1e}",
            )
            if solved:
                return

    def _widths_to_try(self, next_width: int | None) -> Iterator[int]:
        if next_width is not None:
            yield next_width
            return
        tried = set()
        for share in self._options.trial_widths:
            k = min(self._width - 1, max(1, int(np.ceil(share * self._width))))
            if k not in tried and k > 0:
                tried.add(k)
                yield k

    def _gradient_fit(
        self, start: LayerStart, k: int, amplitude: float
    ) -> tuple[Descent[LayerState], GradientSubspace] | None:
        m, options = self._width, self._options
        unknowns = m * m + m + m * k
        count = int(np.ceil(options.equations * unknowns / ((m - k) * min(self._n_outputs, k)))) + 10
        base = self._setting.points.around(
            self._known,
            self._frame,
            count,
            options.gradient_step,
            GRADIENT_REACH,
            amplitude,
            options.shortest_radius,
        )
        if base is None:
            return None
        peeled = Peeled(self._setting.ask, self._known, base.states, self._frame)
        gradients = gradients_around(peeled, base.steps, m)
        good = np.isfinite(gradients).all(axis=(1, 2))
        data = peeled.coordinates[good], gradients[good]
        problem = GradientSubspace(*data, self._known.g, options=self._setting.options.subspace).compressed(k)
        state = problem.with_range(LayerState(start.mixing, start.biases, np.zeros((m, k))), k)
        return descend(problem, state, on_step=self._tell), problem

    def _from_tail(
        self, start: LayerStart, k: int, next_is_last: bool | None, amplitude: float
    ) -> Iterator[LayerFound]:
        """Improve the start by Hessians in the states, then by gradients where they say something."""
        improved = self._improved(start, k, next_is_last)
        if improved is None:
            return
        better = replace(start, mixing=improved.state.mixing, biases=improved.state.biases)
        if k < self._width:
            yield from self._from_gradients(better, k, amplitude)
            return
        solved = improved.residual < self._tail.solved
        yield LayerFound(
            layer=Layer(self._frame, better.mixing, better.biases),
            next_range=np.eye(self._width),
            residual=improved.residual,
            gap=None,
            off_diagonal=start.off_diagonal,
            attempts=self._attempts,
            problem=None if solved else f"Hessians leave a residual of {improved.residual:.1e}",
        )

    def _improved(self, start: LayerStart, k: int, next_is_last: bool | None) -> Descent[TailState] | None:
        """Solve the Hessian tail, with differences in the start's own pre-activations."""
        m, options = self._width, self._options
        per_unit, fewest = options.tail_hessians
        count = int(np.ceil(max(per_unit * k, fewest) / self._n_outputs)) + 10
        directions = self._frame @ np.linalg.inv(start.mixing).T
        base = self._setting.points.around(
            self._known,
            directions,
            count,
            options.tail_step,
            HESSIAN_REACH,
            options.tail_amplitude,
            options.shortest_radius,
        )
        if base is None:
            return None
        peeled = Peeled(self._setting.ask, self._known, base.states, directions)
        places = base.states.last @ self._frame @ start.mixing
        stencils = hessian_stencils(peeled, base.steps, m)
        state = TailState(np.eye(m), start.biases)
        best: Descent[TailState] | None = None
        for output in self._setting.outputs:
            usable = output.unsaturated(stencils.centre)
            gradients, hessians = stencils.take(usable).derivatives(output.inverse)
            dimension = tail_dimension(k, int(usable.sum()) * self._n_outputs, next_is_last)
            if not has_tail(dimension, int(usable.sum()) * self._n_outputs, m):
                continue
            data = places[usable], gradients, hessians
            problem = HessianTail(*data, dimension, self._known.g, state, options=self._tail)
            steps, enough = options.tail_steps, self._tail.enough
            fit = descend(problem, state, steps=steps, enough=enough, on_step=self._tell)
            if best is None or fit.residual < best.residual:
                best = fit
            if best.residual < self._tail.solved:
                break
        if best is None:
            return None
        found = TailState(start.mixing @ best.state.mixing, best.state.biases)
        return Descent(found, best.residual, best.history)

    def _tell(self, step: int, residual: float) -> None:
        self._setting.journal.tell(step, None, f"steps, residual {residual:.1e}")
