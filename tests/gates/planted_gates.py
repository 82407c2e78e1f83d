"""Gates and samples that the tests of `unweave.gates` share."""

from __future__ import annotations

import numpy as np


def planted_gate(inputs: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A unit w* (n,), Gaussian x (rows, n) and clean labels (rows,)."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(inputs)
    truth /= np.linalg.norm(truth)
    x = rng.standard_normal((rows, inputs))
    return truth, x, np.maximum(x @ truth, 0)
