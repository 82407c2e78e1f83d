"""A dictionary from signals, by descent on the weight-tied autoencoder.

    W <- W - eta dL/dW,      eta by backtracking (`unweave.optimize.armijo`).

The rows end longer than the atoms, since the bias that keeps units silent also shrinks what they send back.
Their directions are the atoms.

The bias: 2 m1 k mu (`training_bias`), without the distance delta that [mathematics] Thm. 4.3.1 adds to mu.
With it, no unit fires from starts farther than 0.2, and the gradient is zero; with bias zero the atoms are
not found. A falling distance |W - A| alone shows nothing: from far away it falls because rows shrink. Look at
cosines. Where the supports are right, `refine_dictionary` makes the atoms exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.optimize.armijo import armijo_descent
from unweave.sparse_coding.autoencoder import autoencoder_gradient, autoencoder_loss, autoencoder_network
from unweave.sparse_coding.generative import SparseModel, checked_matrix

_FIRST_MOVE = 1e-3  # of |W|: longer first steps lower the loss and still silence units for good


@dataclass(frozen=True)
class AutoencoderOptions:
    """Stopping rules of the descent."""

    steps: int = 1500
    tolerance: float = 2e-5
    """Norm of the gradient relative to the first one."""


@dataclass(frozen=True, eq=False)
class AutoencoderFit:
    """End point of the descent."""

    encoder: Array
    """W (h, n)."""
    bias: float
    losses: Array
    """Loss, the start first: never rising."""
    gradient_norm: float
    """At the end, relative to the start."""
    converged: bool

    @property
    def atoms(self) -> Array:
        """(n, h) the rows of W at length one; rows of zeros stay zero."""
        lengths = np.linalg.norm(self.encoder, axis=1)
        return np.asarray((self.encoder / np.where(lengths > 0, lengths, 1.0)[:, None]).T)

    @property
    def network(self) -> Network:
        """The autoencoder as a network."""
        return autoencoder_network(self.encoder, self.bias)


def training_bias(model: SparseModel) -> float:
    """2 m1 k mu."""
    return 2 * model.mean * model.sparsity * model.coherence


def sparse_autoencoder_fit(
    signals: Any, start: Any, bias: float, options: AutoencoderOptions | None = None
) -> AutoencoderFit:
    """Descend on signals (N, n) from W = ``start`` (h, n). Cost: 12 N n h flops per step."""
    options = options or AutoencoderOptions()
    signals, encoder = checked_matrix(signals, "signals"), checked_matrix(start, "start")
    if encoder.shape[1] != signals.shape[1]:
        raise InvalidInput(
            f"start must have {signals.shape[1]} columns, one per entry of a signal. Got shape "
            f"{encoder.shape} instead. Its rows stand for atoms."
        )
    if not np.isfinite(bias) or bias < 0:
        raise InvalidInput(f"bias must be finite and at least 0. Got {bias!r} instead. See training_bias.")
    first = float(np.linalg.norm(autoencoder_gradient(encoder, signals, bias)))
    if first == 0:
        raise InvalidInput(
            f"bias must let some unit fire at the start. Got {bias:g}, at which all are silent, instead. "
            f"Lower it, or start nearer."
        )
    found = armijo_descent(
        lambda weights: autoencoder_loss(weights, signals, bias),
        lambda weights: autoencoder_gradient(weights, signals, bias),
        encoder,
        _FIRST_MOVE * float(np.linalg.norm(encoder)) / first,
        options.steps,
        lambda _, norm: norm <= options.tolerance * first,
        decrease=1e-4,
        least_step=1e-14,
    )
    relative = found.gradient_norm / first
    converged = bool(found.gradient_norm <= options.tolerance * first)
    return AutoencoderFit(found.point, float(bias), found.losses, relative, converged)


def atom_cosines(found: Array, dictionary: Array) -> tuple[Array, IntArray]:
    """Cosine (h,) of every atom of ``dictionary`` (n, h) with the found one (n, h) that is matched to it.

    The matching, (h,) column numbers of ``found``, maximizes the sum of the cosines.
    """
    found = checked_matrix(found, "found", dictionary.shape)
    lengths = np.linalg.norm(found, axis=0)
    cosines = dictionary.T @ (found / np.where(lengths > 0, lengths, 1.0))
    rows, matching = linear_sum_assignment(-cosines)
    return cosines[rows, matching], matching.astype(np.int64)
