"""Known inputs of the second layer: the signs of the first layer's units, far out.

Far from all hyperplanes every unit of the first layer is 1 or -1 to the last bit, so that

    f(x) = V g(W2 s + b2) + c,      s = sign(u_k . x - p_k)

is one hidden layer with m1 known inputs. Neither norms nor biases of the first layer enter, nor does the
rounding of x. There are 2 sum_{i < D} C(m1 - 1, i) patterns at most; each is asked once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.far_field import Ask
from unweave.methods.smooth_patterns.directions import Hyperplanes
from unweave.networks.links import Link
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class PatternOptions:
    """Where signs are read."""

    radius: float = 1e4
    """Standard deviation of the points, in normalised inputs."""
    clear: float = 25.0
    """Distance from every hyperplane, in widths: tanh is one to the last bit there."""
    least_angle: float = 0.0
    """Angle from every hyperplane: less is mostly an error of its direction."""
    coarse_radius: float = 1e5
    """The radius for answers in float32, ..."""
    coarse_angle: float = 1e-3
    """... and the angle."""
    most_saturated: int = 4
    """Rows asked per row that is wanted, where the output activation is saturated at most of them."""
    rounds: int = 30
    """Draws after which rarer patterns are left out."""


class SignPatterns:
    """Patterns and their answers, asked as they are needed."""

    def __init__(
        self, ask: Ask, planes: Hyperplanes, outputs: int, rng: np.random.Generator, options: PatternOptions
    ) -> None:
        self._ask, self._planes, self._rng, self._options = ask, planes, rng, options
        self._seen: set[bytes] = set()
        self._exhausted = False
        self.points = np.empty((0, planes.directions.shape[1]))
        self.signs = np.empty((0, planes.count))
        self.answers = np.empty((0, outputs))

    def extend(self, count: int) -> None:
        """Ask until there are ``count`` patterns, or no further ones are found."""
        while len(self.signs) < count and not self._exhausted:
            check()
            points, signs = self._drawn(count - len(self.signs))
            self._exhausted = not len(points)
            if len(points):
                self.answers = np.concatenate([self.answers, self._ask(points)])
                self.points = np.concatenate([self.points, points])
                self.signs = np.concatenate([self.signs, signs])

    def rows(self, link: Link, count: int) -> tuple[Array, Array]:
        """Return ``count`` patterns and what lies behind ``link``, or all if there are fewer."""
        wanted = count
        while True:
            self.extend(wanted)
            usable = np.flatnonzero(link.unsaturated(self.answers))
            if len(usable) >= count or self._exhausted or wanted > self._options.most_saturated * count:
                break
            wanted += max(count - len(usable), count // 4)
        chosen = usable[:count]
        return self.signs[chosen], link.inverse(self.answers[chosen])

    def _drawn(self, wanted: int) -> tuple[Array, Array]:
        """Return points (n, D) of new patterns, and these (n, m1)."""
        options, inputs = self._options, self._planes.directions.shape[1]
        points: list[Array] = []
        signs: list[Array] = []
        for _ in range(options.rounds):
            drawn = options.radius * self._rng.standard_normal((max(2 * wanted, 200), inputs))
            patterns, clear = self._planes.signs(drawn, options.clear)
            if options.least_angle > 0:
                angles = np.abs(drawn @ self._planes.directions.T) / np.linalg.norm(drawn, axis=1)[:, None]
                clear &= (angles > options.least_angle).all(axis=1)
            for point, pattern in zip(drawn[clear], patterns[clear], strict=True):
                key = np.packbits(pattern > 0).tobytes()
                if key not in self._seen and len(points) < wanted:
                    self._seen.add(key)
                    points.append(point)
                    signs.append(pattern)
            if len(points) >= wanted:
                break
        return np.array(points).reshape(-1, inputs), np.array(signs).reshape(-1, self._planes.count)
