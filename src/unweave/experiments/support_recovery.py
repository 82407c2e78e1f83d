"""Theorem 4.3.1 of the mathematics of deep learning: one ReLU layer recovers the support of sparse codes.

y = A x with unit columns of coherence mu, k values in [8, 10]; an encoder whose rows are within delta of the
columns. Where the theorem's condition holds, its bias finds every support; so does every bias in the interval
of the exact certificate. Spikes and waves ([I | Hadamard], mu = 1/sqrt(n)), 2000 codes each.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import equal
from unweave.sparse_coding import (
    SparseModel,
    certify_support_recovery,
    near_dictionary,
    spikes_and_waves,
    support_rates,
)

SETTINGS = ((256, 2, 0.0), (1024, 3, 0.0), (1024, 3, 0.01))
"""Inputs n, sparsity k, distance delta."""
LOW, HIGH, CODES = 8.0, 10.0, 2000
_UNION = "corrected: the printed probability is per coordinate, not for all"


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Fresh codes per setting."""
    for inputs, sparsity, distance in SETTINGS:
        cell = f"n = {inputs}, k = {sparsity}, delta = {distance:g}"
        progress(cell)
        rng = np.random.default_rng([seed, inputs, sparsity])
        model = SparseModel(spikes_and_waves(inputs), sparsity, LOW, HIGH)
        encoder = near_dictionary(model.dictionary, distance, rng).T
        found = certify_support_recovery(encoder, model.dictionary, sparsity, LOW, HIGH)
        codes = model.codes(CODES, rng)
        signals = model.signals(codes)
        yield equal(f"{cell}: condition of the theorem holds", True, found.theorem_holds)
        rates = support_rates(encoder, signals, codes, found.theorem_bias)
        yield equal(f"{cell}: supports found, theorem's bias", 1.0, rates.exact, _UNION)
        bias = found.theorem_bias if found.bias is None else found.bias
        rates = support_rates(encoder, signals, codes, bias)
        yield equal(f"{cell}: certified", True, found.certified)
        yield equal(f"{cell}: supports found, certified bias", 1.0, rates.exact)
