"""The surfaces of the second layer's units, from kinks that no hyperplane of the first explains."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_pairs.bent import Bent, BentOptions, grow
from unweave.methods.relu_pairs.first_layer import FirstLayer
from unweave.methods.relu_pairs.planes import Kink
from unweave.search import Journal


@dataclass(frozen=True, kw_only=True)
class SurfacesOptions:
    """Which kinks are grown, and how many at once."""

    bent: BentOptions = field(default_factory=BentOptions)
    at_once: int = 4
    """Kinks that are grown together: of several on one surface all but one are in vain."""
    on_plane: float = 1e-4
    """Distance from a hyperplane, relative to 1 + |x|, and ..."""
    plane_errors: float = 10.0
    """... in errors of the hyperplane, up to which a kink is its own."""
    same: float = 0.5
    """Share of the places of one surface that lie on another one that is the same."""


class Surfaces:
    """Grows surfaces; holds what it found at any time."""

    def __init__(
        self, first: FirstLayer, journal: Journal, rng: np.random.Generator, options: SurfacesOptions
    ) -> None:
        self._first, self._journal, self._rng, self._options = first, journal, rng, options
        self._width, self._seen = 0, 0
        self.found: list[Bent] = []

    def search(self) -> None:
        """Grow all kinks that are there and that nothing explains."""
        first, options = self._first, self._options
        layer = first.layer
        if layer.width != self._width:  # surfaces bend at the hyperplanes that are known
            self._width, self._seen, self.found = layer.width, 0, []
        kinks = first.rest[self._seen :]
        self._seen = len(first.rest)
        if not kinks:
            return
        errors = first.plane_errors()
        d = len(layer.weights)
        basis = np.eye(d) if layer.width >= d else np.linalg.qr(layer.weights)[0]
        with self._journal.stage("surfaces") as stage:
            before, tried = len(self.found), 0
            left = sorted(kinks, key=lambda kink: kink.error)
            while left := [kink for kink in left if not self._explained(kink, errors)]:
                taken, left = left[: options.at_once], left[options.at_once :]
                tried += len(taken)
                surfaces = [Bent(layer, errors, basis, kink, options.bent) for kink in taken]
                error = first.answer_error()
                grown = grow(first.read, first.region, surfaces, error, self._rng, options.bent)
                for surface in sorted(grown, key=lambda surface: -surface.hits):
                    if not any(other.explains(surface.places).mean() > options.same for other in self.found):
                        self.found.append(surface)
            stage.figures.update(found=len(self.found), new=len(self.found) - before, tried=tried)

    def _explained(self, kink: Kink, errors: Array) -> bool:
        """Return whether a kink lies on a hyperplane or on a surface that is known."""
        layer, size = self._first.layer, 1 + float(np.abs(kink.point).max())
        heights = np.abs(kink.point @ layer.weights + layer.biases)
        near = self._options.plane_errors * errors + self._options.on_plane
        if (heights <= near * size).any():
            return True
        return any(surface.explains(kink.point[None])[0] for surface in self.found)
