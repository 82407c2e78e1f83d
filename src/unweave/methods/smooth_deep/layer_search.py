"""What the searches for one layer have in common: what they may use, what they return, why they give up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.smooth_deep.base_points import PointSource
from unweave.methods.smooth_deep.known_layers import Ask, Layer
from unweave.methods.smooth_deep.options import SmoothDeepOptions
from unweave.networks.links import Link
from unweave.search import Journal, Reason


@dataclass(frozen=True, eq=False)
class LayerSetting:
    """All that the search for one layer may use."""

    ask: Ask
    points: PointSource
    outputs: tuple[Link, ...]
    """Output activations that the answers allow."""
    n_outputs: int
    """Number of outputs with independent gradients."""
    journal: Journal
    rng: np.random.Generator
    options: SmoothDeepOptions


@dataclass(frozen=True, eq=False)
class LayerFound:
    """A layer, and what it shows of the next."""

    layer: Layer
    next_range: Array | None
    """(m_l, m_{l+1}) orthonormal basis of what the next layer reads; None after the last hidden layer."""
    residual: float
    """Relative part of the gradients that the layer leaves unexplained."""
    gap: float | None
    """Ratio of singular values at the end of the next layer's range."""
    off_diagonal: float | None
    """Squared share of the Hessians that joint diagonalisation leaves."""
    attempts: int
    output: Link | None = None
    """Output activation that makes the Hessians jointly diagonal, after the last hidden layer."""
    problem: str | None = None
    """Why the layer is not to be trusted, or None."""

    @property
    def is_last(self) -> bool:
        """Whether only the output layer follows."""
        return self.next_range is None

    def figures(self) -> dict[str, float | int | str]:
        """Return what the journal tells of the layer."""
        figures: dict[str, float | int | str] = {"width": self.layer.width, "residual": self.residual}
        if self.next_range is not None:
            figures["next width"] = self.next_range.shape[1]
        if self.gap is not None:
            figures["gap"] = self.gap
        if self.off_diagonal is not None:
            figures["off-diagonal"] = self.off_diagonal
        figures["attempts"] = self.attempts
        return figures


class DeepReason(Reason):
    """Why no network with several smooth hidden layers was found, in the sentences that users read."""

    LAYER = "layer {number}: {what}"
    LAST_LAYER = "{what}"
    NO_END = "no end after {layers} layers"
    NO_ROOM = "no point leaves room for differences"
    TOO_WIDE = (
        "layer 1 has at least {units} units but reads only {read} coordinates: layers must not be wider than "
        "what they read"
    )
    TOO_FEW_SEEN = "far away only {units} units of layer 1 are seen where {wanted} were expected"
