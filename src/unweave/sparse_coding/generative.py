"""Sparse codes and the signals that a dictionary makes of them.

A signal is y = A x: A (n, h) has unit columns (atoms), x (h,) has a support S of k entries, drawn uniformly
among all sets of that size, and values on it that are independent, x_i = a + (b - a) z with z of the Beta
distribution with parameters p, q: uniform on [a, b] for p = q = 1, most of them near a for p < q. Hence

    P[i in S] = k/h,    E[x_i | i in S] = m1 = a + (b - a) p/(p + q),
    E[x_i^2 | i in S] = m2 = m1^2 + (b - a)^2 p q / ((p + q)^2 (p + q + 1)).

For uniform values 2 m1 >= b, and the bias of [mathematics] Thm. 4.3.1 silences all units off the support
with certainty. Its probability only matters for laws with 2 m1 < b.

What recovery depends on is the coherence mu = max_{i != j} |<A_i, A_j>|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput

_LENGTH_ROUNDING = 1e-8  # difference of the length of an atom from one that is rounding


@dataclass(frozen=True, eq=False)
class SparseModel:
    """Dictionary A (n, h), support size k, values in [low, high]."""

    dictionary: Array
    sparsity: int
    low: float
    high: float
    shape: tuple[float, float] = (1.0, 1.0)
    """p and q of the values' Beta distribution."""

    def __post_init__(self) -> None:
        atoms = checked_matrix(self.dictionary, "dictionary")
        object.__setattr__(self, "dictionary", atoms)
        lengths = np.linalg.norm(atoms, axis=0)
        if np.abs(lengths - 1).max() > _LENGTH_ROUNDING:
            raise InvalidInput(
                f"dictionary must have columns of length one. Got lengths from {lengths.min():g} to "
                f"{lengths.max():g} instead. Divide every column by its length."
            )
        check_codes(self.n_atoms, self.sparsity, self.low, self.high)
        if len(self.shape) != 2 or not all(np.isfinite(part) and part > 0 for part in self.shape):
            raise InvalidInput(
                f"shape must be two positive numbers. Got {self.shape!r} instead. (1, 1) is uniform."
            )

    @property
    def n_inputs(self) -> int:
        """n"""
        return int(self.dictionary.shape[0])

    @property
    def n_atoms(self) -> int:
        """h"""
        return int(self.dictionary.shape[1])

    @property
    def coherence(self) -> float:
        """mu."""
        return coherence(self.dictionary)

    @property
    def mean(self) -> float:
        """m1."""
        p, q = self.shape
        return self.low + (self.high - self.low) * p / (p + q)

    @property
    def mean_square(self) -> float:
        """m2."""
        p, q = self.shape
        variance = (self.high - self.low) ** 2 * p * q / ((p + q) ** 2 * (p + q + 1))
        return self.mean**2 + variance

    def codes(self, count: int, rng: np.random.Generator) -> Array:
        """Codes (count, h), ``sparsity`` entries of each row in [low, high] and the others zero."""
        picked = np.argpartition(rng.random((count, self.n_atoms)), self.sparsity - 1, axis=1)
        codes = np.zeros((count, self.n_atoms))
        if self.shape == (1.0, 1.0):
            values = rng.uniform(self.low, self.high, (count, self.sparsity))
        else:
            values = self.low + (self.high - self.low) * rng.beta(*self.shape, (count, self.sparsity))
        np.put_along_axis(codes, picked[:, : self.sparsity], values, axis=1)
        return codes

    def signals(self, codes: Array) -> Array:
        """y = A x (count, n) for codes (count, h)."""
        return np.asarray(codes @ self.dictionary.T)


def coherence(dictionary: Array) -> float:
    """max_{i != j} |<A_i, A_j>| of a dictionary (n, h)."""
    gram = np.abs(dictionary.T @ dictionary)
    np.fill_diagonal(gram, 0.0)
    return float(gram.max())


def spikes_and_waves(inputs: int) -> Array:
    """[I | H/sqrt(n)] (n, 2 n), H a Hadamard matrix: coherence 1/sqrt(n). n must be a power of two."""
    if inputs < 1 or inputs & (inputs - 1):
        raise InvalidInput(
            f"inputs must be a power of two. Got {inputs} instead. Hadamard matrices are built by doubling."
        )
    waves = scipy.linalg.hadamard(inputs) / np.sqrt(inputs)
    return np.hstack([np.eye(inputs), waves])


def gaussian_dictionary(inputs: int, atoms: int, rng: np.random.Generator) -> Array:
    """Random unit columns (n, h): coherence about sqrt(2 log(h^2/2)/n)."""
    columns = rng.standard_normal((inputs, atoms))
    return np.asarray(columns / np.linalg.norm(columns, axis=0))


def gen_sparse_model(
    inputs: int,
    atoms: int,
    sparsity: int,
    low: float,
    high: float,
    dictionary: Any = None,
    rng: np.random.Generator | None = None,
) -> SparseModel:
    """A model with the given dictionary (n, h), or a random one.

    Example:
        >>> model = gen_sparse_model(16, 32, 2, 8.0, 10.0, dictionary=spikes_and_waves(16))
        >>> model.coherence
        0.25
    """
    if dictionary is None:
        if rng is None:
            raise InvalidInput("rng must be given if dictionary is not. Give a Generator.")
        dictionary = gaussian_dictionary(inputs, atoms, rng)
    model = SparseModel(dictionary, sparsity, low, high)
    if (model.n_inputs, model.n_atoms) != (inputs, atoms):
        raise InvalidInput(
            f"dictionary must be of shape ({inputs}, {atoms}). Got {model.dictionary.shape} instead. Its "
            f"columns are the atoms."
        )
    return model


def near_dictionary(dictionary: Array, distance: float, rng: np.random.Generator) -> Array:
    """Every column moved by ``distance`` in a random direction, (n, h)."""
    n, h = dictionary.shape
    return np.asarray(dictionary + distance * gaussian_dictionary(n, h, rng))


def check_codes(atoms: int, sparsity: int, low: float, high: float) -> None:
    """Raise unless k-sparse codes with values in [low, high] exist for this number of atoms."""
    if not 1 <= sparsity <= atoms:
        raise InvalidInput(
            f"sparsity must be between 1 and the number of atoms, {atoms}. Got {sparsity} instead. It is the "
            f"number of entries of a code that are not zero."
        )
    if not (np.isfinite([low, high]).all() and 0 < low <= high):
        raise InvalidInput(
            f"low and high must be finite with 0 < low <= high. Got {low!r} and {high!r} instead. The values "
            f"of a code on its support lie between them."
        )


def checked_matrix(value: Any, name: str, shape: tuple[int, ...] | None = None) -> Array:
    """``value`` as a finite float64 matrix of that shape."""
    matrix = np.asarray(value, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape or (shape is not None and matrix.shape != shape):
        expected = "(n, h), a column per atom" if shape is None else f"{shape}"
        raise InvalidInput(
            f"{name} must be of shape {expected}. Got {matrix.shape} instead. Transpose or reshape it."
        )
    if not np.isfinite(matrix).all():
        raise InvalidInput(f"{name} must be finite. Got NaN or infinite entries instead. Check its source.")
    return matrix
