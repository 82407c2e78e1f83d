"""The energy barrier of quadratic networks, from the study of their stationary points.

Weights of rank below d have a risk of at least C s_min(W*)^4. For Gaussian inputs the least such risk is
2 (d + 2)/(d + 1) s_min^4, found here by minimisation over matrices of rank d - 1 from several starts; the
source's bound with C = 2 is below it, as it must be.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize

from unweave.arrays import Array
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_least, close
from unweave.quadratic import population_barrier, population_risk

INPUTS = (3, 5, 10)
_OPTIONS = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
_OURS = (
    "the sharp constant 2 (d + 2)/(d + 1) is derived here; the source says that its own is tight up to one"
)


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One W* per number of inputs, with twice as many units."""
    for inputs in INPUTS:
        cell = f"d = {inputs}"
        progress(cell)
        rng = np.random.default_rng([seed, inputs])
        weights = rng.standard_normal((inputs, 2 * inputs))
        matrix = weights @ weights.T
        least = least_risk(matrix, rng)
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        yield at_least(f"{cell}: least risk over s_min^4", 2.0, least / smallest**2)
        yield close(f"{cell}: least risk of rank d - 1", population_barrier(matrix), least, 1e-6, _OURS)


def least_risk(matrix: Array, rng: np.random.Generator) -> float:
    """Least E(|W^T x|^2 - x^T M x)^2 over W (d, d - 1), from starts near the spectral cut and afar."""
    inputs = len(matrix)

    def risk(vector: Array) -> tuple[float, Array]:
        w = vector.reshape(inputs, inputs - 1)
        a = w @ w.T - matrix
        return population_risk(a), (2 * (4 * a + 2 * np.trace(a) * np.eye(inputs)) @ w).reshape(-1)

    values, vectors = np.linalg.eigh(matrix)
    near = vectors[:, 1:] * np.sqrt(values[1:])
    starts = [near + 0.1 * rng.standard_normal(near.shape) for _ in range(3)]
    starts += [2 * rng.standard_normal(near.shape) for _ in range(3)]
    ends = (minimize(risk, w.ravel(), jac=True, method="L-BFGS-B", options=_OPTIONS) for w in starts)
    return min(float(end.fun) for end in ends)
