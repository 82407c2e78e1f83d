"""A dictionary from signals: descent on the weight-tied autoencoder, then exact atoms by least squares.

    W <- W - eta dL/dW,      eta by backtracking (`unweave.optimize.armijo`).

The rows end longer than the atoms, since the bias that keeps units silent also shrinks what they send back.
Their directions are the atoms.

The bias: 2 m1 k mu (`training_bias`), without the distance delta that [mathematics] Thm. 4.3.1 adds to mu.
With it, no unit fires from starts farther than 0.2, and the gradient is zero; with bias zero the atoms are
not found. A falling distance |W - A| alone shows nothing: from far away it falls because rows shrink. Look at
cosines.

`refine_dictionary` makes the atoms exact. Where the support S of every signal is known, y = A_S x_S is linear
in the values and linear in the atoms:

    x_S <- argmin |A_S x - y|  for every signal,      A <- argmin sum |A x - y|^2,  columns to length one.

Descent on the autoencoder ends with atoms that are off by the bias (cosine 0.999) and right supports; from
there some fifteen rounds reach rounding, and the residual shows it without the truth. A wrong support
leaves a residual of the size of the signals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.arrays import Array, BoolArray, IntArray
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.optimize.armijo import armijo_descent
from unweave.sparse_coding.autoencoder import autoencoder_gradient, autoencoder_loss, autoencoder_network
from unweave.sparse_coding.generative import SparseModel, checked_matrix

_FIRST_MOVE = 1e-3  # of |W|: longer first steps lower the loss and still silence units for good
_ROUND_PROGRESS = 0.9  # residual after over before a round: a higher ratio ends the rounds
_RESIDUAL_FLOOR = 1e-15  # residual over the signals: a smaller one is rounding


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


@dataclass(frozen=True, eq=False)
class DictionaryFit:
    """Atoms and codes that explain the signals."""

    atoms: Array
    """(n, h), columns of length one."""
    codes: Array
    """(N, h), zero off the supports."""
    residual: float
    """|A x - y| over |y|, over all signals."""
    rounds: int


def refine_dictionary(signals: Any, atoms: Any, supports: BoolArray, rounds: int = 60) -> DictionaryFit:
    """Refine ``atoms`` (n, h) on signals (N, n) with known ``supports`` (N, h).

    Cost: N n k^2 + N h^2 + h^3 flops a round.
    """
    signals, atoms = checked_matrix(signals, "signals"), checked_matrix(atoms, "atoms")
    supports = np.asarray(supports, dtype=bool)
    if supports.shape != (len(signals), atoms.shape[1]) or len(atoms) != signals.shape[1]:
        raise InvalidInput(
            f"supports must be of shape ({len(signals)}, {atoms.shape[1]}) and atoms have "
            f"{signals.shape[1]} rows. Got {supports.shape} and {len(atoms)} rows instead. Give one row per "
            f"signal and one column per atom."
        )
    if not supports.any(axis=0).all():
        unused = int((~supports.any(axis=0)).sum())
        raise InvalidInput(
            f"supports must use every atom. Got {unused} unused ones instead. Leave those atoms out, or give "
            f"more signals."
        )
    if supports.sum(axis=1).max() > len(atoms):
        raise InvalidInput(
            f"supports must have at most {len(atoms)} entries, the length of a signal. Got one of "
            f"{supports.sum(axis=1).max()} instead. Raise the bias that they come from."
        )
    size = float(np.linalg.norm(signals)) or 1.0
    best: DictionaryFit | None = None
    for now in range(rounds):
        codes = _codes(signals, atoms, supports)
        residual = float(np.linalg.norm(codes @ atoms.T - signals)) / size
        last = best
        if best is None or residual < best.residual:
            best = DictionaryFit(atoms, codes, residual, now)
        if last is not None and not _RESIDUAL_FLOOR < residual < _ROUND_PROGRESS * last.residual:
            break
        atoms = np.linalg.lstsq(codes, signals, rcond=None)[0].T
        atoms = atoms / np.linalg.norm(atoms, axis=0)
    assert best is not None
    return best


def _codes(signals: Array, atoms: Array, supports: BoolArray) -> Array:
    """Least squares on every support, all signals with equally many entries at once."""
    codes = np.zeros(supports.shape)
    sizes = supports.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]):
        rows = np.flatnonzero(sizes == size)
        picked = np.nonzero(supports[rows])[1].reshape(len(rows), size)
        chosen = atoms.T[picked]  # (rows, size, n)
        # Through the QR factorization of A_S: normal equations would square the condition of the support.
        q, r = np.linalg.qr(chosen.transpose(0, 2, 1))
        right = np.einsum("rnk,rn->rk", q, signals[rows])
        try:
            codes[rows[:, None], picked] = np.linalg.solve(r, right[..., None])[..., 0]
        except np.linalg.LinAlgError as error:
            raise InvalidInput(
                "atoms must be independent on every support. Got a support whose atoms repeat each other "
                "instead. Leave one of them out."
            ) from error
    return codes
