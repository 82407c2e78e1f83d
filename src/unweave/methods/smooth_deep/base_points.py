"""Points for questions about an inner layer: its pre-activations are large, and stencils have room.

The states of a layer live in a shrinking part of the box (-1, 1)^m as depth grows. To make a deep unit's
pre-activation large, its wanted direction is pulled back through the known layers as signs: the first layer's
states are put near the corner that all of them point to, with some signs flipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.smooth_deep.known_layers import KnownLayers, States
from unweave.methods.smooth_deep.options import PointOptions
from unweave.targets.region import Region


@dataclass(frozen=True, eq=False)
class BasePoints:
    """Base points, and (n,) the steps that stencils around them may take."""

    states: States
    steps: Array


class PointSource:
    """Draws base points for layers of any depth, inside ``region``'s box if it has one."""

    def __init__(self, region: Region, rng: np.random.Generator, options: PointOptions | None = None) -> None:
        self._region = region
        self._rng = rng
        self._options = options or PointOptions()

    def inputs(self, count: int, margin: float = 0.0) -> Array:
        """Draw normalised inputs (n, D) at which first-layer units are partly saturated."""
        if self._region.has_box:
            return self._region.sample(count, self._rng, margin=margin)
        return self._options.spread * self._rng.standard_normal((count, self._region.n_inputs))

    def for_values(self, known: KnownLayers, count: int) -> Array:
        """Draw inputs (n, D) for fits to values: half of them where the first layer's units act."""
        points = self.inputs(count)
        if not self._region.has_box and known.layers:
            width = known.layers[0].width
            states = self._rng.uniform(-1, 1, (self._options.value_draws * (count // 2), width))
            drawn = known.inputs_with_first_states(self._options.value_amplitude * states)
            # Those nearest to the origin: far out, pre-activations are rounded more coarsely.
            nearest = np.argsort(np.linalg.norm(drawn, axis=1))[: count // 2]
            points[: count // 2] = drawn[nearest]
        return points

    def around(
        self,
        known: KnownLayers,
        frame: Array,
        count: int,
        longest: float,
        reach: float,
        amplitude: float | None = None,
        shortest_radius: float = 1.0,
    ) -> BasePoints | None:
        """Draw about ``count`` points for stencils of ``reach`` steps in frame^T y; None if none has room.

        Amplitudes are uniform between ``shortest_radius`` and one times ``amplitude``, by default the
        options' own.
        """
        options, bounds = self._options, self._region.normalised_bounds
        smallest = options.smallest_step
        while smallest > options.last_smallest_step:
            found, steps, size = [], [], options.amplitude if amplitude is None else amplitude
            for _ in range(options.rounds):
                inputs = self._drawn(known, frame, count, size, shortest_radius)
                states = known.states(inputs)
                h = known.safe_steps(states, frame, longest, reach, bounds, options.room_used)
                room = h >= smallest * longest
                found.append(inputs[room])
                steps.append(h[room])
                if sum(map(len, steps)) >= count:
                    break
                if room.mean() < options.enough_room:
                    size = float(known.g.values(options.calmer * known.g.inverse(np.array(size))))
            if sum(map(len, steps)) >= min(count, max(options.fewest, count // 4)):
                kept = np.concatenate(found)[:count]
                return BasePoints(known.states(kept), np.concatenate(steps)[:count])
            smallest *= options.smaller_steps
        return None

    def _drawn(
        self, known: KnownLayers, frame: Array, count: int, amplitude: float, shortest: float
    ) -> Array:
        if self._region.has_box or not known.layers:
            return self.inputs(count)
        wanted = self._rng.standard_normal((count, frame.shape[1])) @ frame.T
        for layer in reversed(known.layers[1:]):
            wanted = wanted @ layer.weights.T
        signs = np.sign(wanted) * np.where(self._rng.random(wanted.shape) < self._options.flipped, -1.0, 1.0)
        sizes = amplitude * self._rng.uniform(shortest, 1.0, (count, 1)) if shortest < 1 else amplitude
        return known.inputs_with_first_states(signs * sizes)
