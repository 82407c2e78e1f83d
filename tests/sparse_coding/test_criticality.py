from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.sparse_coding import (
    SparseModel,
    criticality_hypotheses,
    near_dictionary,
    proxy_gradient,
    spikes_and_waves,
)
from unweave.sparse_coding.autoencoder import _coefficients


@pytest.mark.parametrize("distance", [0.0, 0.02, 0.2])
@pytest.mark.parametrize(("inputs", "sparsity"), [(16, 2), (64, 2), (64, 4)])
def test_the_exact_parts_are_within_the_bounds(inputs: int, sparsity: int, distance: float) -> None:
    model = SparseModel(spikes_and_waves(inputs), sparsity, 1.0, 2.0)
    encoder = near_dictionary(model.dictionary, distance, np.random.default_rng(1000)).T
    found = criticality_hypotheses(encoder, model)
    exact = proxy_gradient(encoder, model, found.bias)
    for interval, values in (
        (found.along_encoder, exact.along_encoder),
        (found.along_atom, exact.along_atom),
    ):
        assert interval.low <= values.min()
        assert values.max() <= interval.high
    # The parts that multiply m2: the same polynomial with m1 = eps = 0.
    bare = SimpleNamespace(n_atoms=model.n_atoms, sparsity=sparsity, mean=0.0, mean_square=model.mean_square)
    on_rows, on_atoms = _coefficients(encoder @ model.dictionary, encoder @ encoder.T, bare, 0.0)
    on_rows, on_atoms = (sparsity / model.n_atoms * part for part in (on_rows, on_atoms))
    q, m2 = sparsity / model.n_atoms, model.mean_square
    assert np.diag(on_rows).min() >= m2 * q * (1 - distance) ** 2 - 1e-12
    np.fill_diagonal(on_rows, 0.0)
    np.fill_diagonal(on_atoms, 0.0)
    rest = on_rows @ encoder + on_atoms @ model.dictionary.T
    assert np.linalg.norm(rest, axis=1).max() <= found.remainder


def test_exponents_and_hypotheses() -> None:
    model = SparseModel(spikes_and_waves(1024), 2, 8.0, 10.0)
    h = 2048
    encoder = near_dictionary(model.dictionary, h**-0.3, np.random.default_rng(1000)).T
    found = criticality_hypotheses(encoder, model)
    assert found.hold
    assert h**found.p == pytest.approx(2.0)
    assert h**-found.xi == pytest.approx(found.coherence) == pytest.approx(1 / 32)
    assert h ** -(found.p + found.nu_squared) == pytest.approx(h**-0.3)
    for changes, words in (
        ({"sparsity": 46}, "p < 1/2"),
        ({"low": 0.1}, "a >= b h^-nu^2"),
        ({"low": 0.1, "shape": (1.0, 50.0)}, "exp(k m1^2 / (2 (b - a)^2)) >= h"),
    ):
        assert words in criticality_hypotheses(encoder, dataclasses.replace(model, **changes)).failing
    near = near_dictionary(model.dictionary, 1e-4, np.random.default_rng(1000)).T
    assert criticality_hypotheses(near, model).failing == ("p + nu^2 < xi",)
    with pytest.raises(InvalidInput, match="distance 1"):
        criticality_hypotheses(-model.dictionary.T, model)
