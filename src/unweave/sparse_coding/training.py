"""A dictionary from signals, by descent on the weight-tied autoencoder.

    W <- W - eta dL/dW,

eta halved until the loss falls by 1e-4 eta |dL/dW|^2 (Armijo) and grown after success. The rows end longer
than the atoms, since the bias that keeps units silent also shrinks what they send back; their directions are
the atoms. Rows of length one are what is returned.

The bias: 2 m1 k mu (`training_bias`), without the distance delta that Theorem 4.3.1 adds to mu. With it, no
unit fires from starts farther than 0.2, and the gradient is zero; with bias zero the atoms are not found.
A falling distance |W - A| alone shows nothing: from far away it falls because rows shrink. Look at cosines.
Where the supports are right, `refine_dictionary` makes the atoms exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.sparse_coding.autoencoder import autoencoder_gradient, autoencoder_loss, autoencoder_network
from unweave.sparse_coding.generative import SparseModel, checked_matrix

_DECREASE = 1e-4
_GROWTH = 1.3
_FIRST_STEP = 1e-3  # of the length of W
_SMALLEST_STEP = 1e-14  # of the first: no step lowers the loss any more, which is rounding


@dataclass(frozen=True)
class AutoencoderOptions:
    """When to stop."""

    steps: int = 1500
    tolerance: float = 2e-5
    """Norm of the gradient relative to the first one."""


@dataclass(frozen=True, eq=False)
class AutoencoderFit:
    """Where descent ended."""

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
    loss = autoencoder_loss(encoder, signals, bias)
    gradient = autoencoder_gradient(encoder, signals, bias)
    first = norm = float(np.linalg.norm(gradient))
    if first == 0:
        raise InvalidInput(
            f"bias must let some unit fire at the start. Got {bias:g}, at which all are silent, instead. "
            f"Lower it, or start nearer."
        )
    losses = [loss]
    # Long first steps lower the loss and still silence units for good; growth makes up for a short one.
    step = longest = _FIRST_STEP * float(np.linalg.norm(encoder)) / first
    while len(losses) <= options.steps and norm > options.tolerance * first:
        trial = encoder - step * gradient
        trial_loss = autoencoder_loss(trial, signals, bias)
        if trial_loss <= loss - _DECREASE * step * norm**2:
            encoder, loss = trial, trial_loss
            gradient = autoencoder_gradient(encoder, signals, bias)
            norm = float(np.linalg.norm(gradient))
            losses.append(loss)
            step *= _GROWTH
        else:
            step /= 2
            if step < _SMALLEST_STEP * longest:
                break
    return AutoencoderFit(
        encoder, float(bias), np.array(losses), norm / first, bool(norm <= options.tolerance * first)
    )


def atom_cosines(found: Array, dictionary: Array) -> tuple[Array, IntArray]:
    """Cosine (h,) of every atom of ``dictionary`` (n, h) with the found one (n, h) that is matched to it.

    The matching, (h,) column numbers of ``found``, maximises the sum of the cosines.
    """
    found = checked_matrix(found, "found", dictionary.shape)
    lengths = np.linalg.norm(found, axis=0)
    cosines = dictionary.T @ (found / np.where(lengths > 0, lengths, 1.0))
    rows, matching = linear_sum_assignment(-cosines)
    return cosines[rows, matching], matching.astype(np.int64)
