"""What a cheap look at a target, or at samples, has found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.probing.lines import KinkEvidence
from unweave.probing.noise import Noise
from unweave.targets.region import Region


@dataclass(frozen=True, eq=False)
class Findings:
    """What a cheap look at the target has found.

    ``region`` normalises the inputs; ``noise`` is the error of the answers; ``output_scale`` (m,) their
    standard deviation over the region. ``kinks``: piecewise smooth, not smooth, with ``kink_evidence``; or so
    behind one of the ``links``. ``constant`` and ``linear``: so to within the noise, as far as the probe
    went. ``searched``: location and scales had to be searched for. ``queries``: what the look has cost.
    """

    region: Region
    noise: Noise
    n_outputs: int
    output_scale: Array
    kinks: bool
    kink_evidence: KinkEvidence
    constant: bool
    linear: bool
    searched: bool
    queries: int
    layered: bool = False
    """Whether the far field rules out a single hidden layer; only looked at when the depth is not known."""
    rectifies: bool | None = None
    """Whether answers grow along rays far out as those of rectifying units do; None where nobody looked."""
    links: tuple[str, ...] = ("identity",)
    """Output activations whose range holds all answers seen, the simplest first."""
    labels: int = 0
    """Number of different answers if they are names of classes, else 0."""
    straight_links: tuple[str, ...] = ()
    """Output activations behind which all lines were straight, as far as they could be read."""
    parabolic_links: tuple[str, ...] = ()
    """Output activations behind which all lines were parabolas; not looked at where they were straight."""
    steps: bool = False
    """Whether the target answers in steps at thresholds of single inputs, as trees do."""
    examples: Array | None = None
    """(n, D) typical inputs that the user gave."""
    flat: bool = False
    """Whether answers are piecewise constant, as far as the probe went."""

    @property
    def spread(self) -> Array:
        """(m,) standard deviation of the answers, 1 where they do not vary: what errors are measured in."""
        return np.where(self.output_scale > 0, self.output_scale, 1.0)

    @property
    def is_affine(self) -> bool:
        """Whether nothing curved or kinked was seen."""
        return self.constant or self.linear

    @property
    def is_noisy(self) -> bool:
        """Whether the answers' error is known as a number, and no rounding of floating-point arithmetic."""
        return self.noise.kind in ("rounded", "noisy")
