"""Exact atoms from supports: least squares for codes and for atoms in turn.

Where the support S of every signal is known, y = A_S x_S is linear in the values and linear in the atoms:

    x_S <- argmin |A_S x - y|  for every signal,      A <- argmin sum |A x - y|^2,  columns to length one.

Descent on the autoencoder ends with atoms that are off by the bias (cosine 0.999) and right supports; from
there some fifteen rounds reach rounding, and the residual shows it without the truth. A wrong support
leaves a residual of the size of the signals.

Cost per round: N n k^2 + N h^2 + h^3 flops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.errors import InvalidInput
from unweave.sparse_coding.generative import checked_matrix

_ROUND_PROGRESS = 0.9  # residual after over before a round: a higher ratio ends the rounds
_RESIDUAL_FLOOR = 1e-15  # residual over the signals: a smaller one is rounding


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
    """Refine ``atoms`` (n, h) on signals (N, n) with known ``supports`` (N, h)."""
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
