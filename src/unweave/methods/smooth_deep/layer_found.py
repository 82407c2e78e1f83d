"""What a search for one layer hands on."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.arrays import Array
from unweave.methods.smooth_deep.known_layers import Layer
from unweave.networks.links import Link


@dataclass(frozen=True, eq=False)
class LayerFound:
    """A layer, and what it tells about the next."""

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
    """The output activation that makes the Hessians jointly diagonal, after the last hidden layer."""
    problem: str | None = None
    """Why the layer is not to be trusted, or None."""

    @property
    def is_last(self) -> bool:
        """Whether only the output layer follows."""
        return self.next_range is None
