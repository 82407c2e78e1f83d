"""The generative model, and the certificate that its supports come back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.sparse_coding import (
    SparseModel,
    certify_support_recovery,
    coherence,
    gaussian_dictionary,
    gen_sparse_model,
    near_dictionary,
    spikes_and_waves,
    support_rates,
)


def test_codes_follow_the_model() -> None:
    rng = np.random.default_rng(1000)
    model = SparseModel(gaussian_dictionary(10, 20, rng), 3, 1.0, 4.0)
    codes = model.codes(20_000, rng)
    assert ((codes > 0).sum(axis=1) == 3).all()
    on = codes[codes > 0]
    assert on.min() >= 1
    assert on.max() <= 4
    # Means of 60 000 values and of 20 000 indicators: four standard errors.
    assert on.mean() == pytest.approx(model.mean, abs=4 * 0.87 / np.sqrt(60_000))
    assert (on**2).mean() == pytest.approx(model.mean_square, abs=4 * 4.5 / np.sqrt(60_000))
    np.testing.assert_allclose((codes > 0).mean(axis=0), 3 / 20, atol=4 * 0.36 / np.sqrt(20_000))
    np.testing.assert_allclose(model.signals(codes[:5]), codes[:5] @ model.dictionary.T)


@pytest.mark.parametrize("inputs", [4, 64, 256])
def test_spikes_and_waves_have_the_least_coherence_of_two_bases(inputs: int) -> None:
    atoms = spikes_and_waves(inputs)
    assert atoms.shape == (inputs, 2 * inputs)
    assert coherence(atoms) == pytest.approx(1 / np.sqrt(inputs), rel=1e-12)


def extremes_by_enumeration(
    products: np.ndarray, sparsity: int, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """Largest response off the support and smallest on it, over all corners of all supports."""
    atoms = len(products)
    off, on = np.full(atoms, -np.inf), np.full(atoms, np.inf)
    for size in range(1, sparsity + 1):
        for support in itertools.combinations(range(atoms), size):
            for values in itertools.product((low, high), repeat=size):
                seen = products[:, list(support)] @ np.array(values)
                outside = np.ones(atoms, dtype=bool)
                outside[list(support)] = False
                off[outside] = np.maximum(off[outside], seen[outside])
                on[~outside] = np.minimum(on[~outside], seen[~outside])
    return off, on


@pytest.mark.parametrize("sparsity", [1, 2, 3])
def test_the_certificate_is_the_worst_case(sparsity: int) -> None:
    rng = np.random.default_rng(1001)
    atoms = gaussian_dictionary(6, 7, rng)
    encoder = near_dictionary(atoms, 0.4, rng).T
    found = certify_support_recovery(encoder, atoms, sparsity, 1.0, 2.5)
    off, on = extremes_by_enumeration(encoder @ atoms, sparsity, 1.0, 2.5)
    np.testing.assert_allclose(found.on_support, on, rtol=1e-12)
    # A unit that no signal drives above zero is off at zero already.
    np.testing.assert_allclose(found.off_support, np.maximum(off, 0), rtol=1e-12)
    low, high = found.interval
    assert found.certified == (low < high)


@pytest.mark.parametrize(
    ("inputs", "sparsity", "distance"), [(256, 2, 0.0), (256, 2, 0.005), (1024, 3, 0.0), (1024, 3, 0.01)]
)
def test_in_the_regime_of_the_theorem_every_support_comes_back(
    inputs: int, sparsity: int, distance: float
) -> None:
    rng = np.random.default_rng(1002)
    model = SparseModel(spikes_and_waves(inputs), sparsity, 8.0, 10.0)
    encoder = near_dictionary(model.dictionary, distance, rng).T
    found = certify_support_recovery(encoder, model.dictionary, sparsity, 8.0, 10.0)
    assert found.theorem_holds
    assert found.certified
    assert found.distance == pytest.approx(distance, abs=1e-12)
    low, high = found.coherence_interval
    exact_low, exact_high = found.interval
    assert exact_low <= low * (1 + 1e-12)
    assert low < high <= exact_high * (1 + 1e-12)
    assert found.bias is not None
    codes = model.codes(500, rng)
    signals = model.signals(codes)
    for bias in (found.theorem_bias, found.bias, low, np.nextafter(exact_high, 0) - 1e-9):
        assert found.allows(bias)
        rates = support_rates(encoder, signals, codes, bias)
        assert (rates.exact, rates.missed, rates.false) == (1, 0, 0)


def test_outside_the_regime_the_certificate_says_no() -> None:
    rng = np.random.default_rng(1003)
    dense = SparseModel(spikes_and_waves(256), 12, 8.0, 10.0)
    found = certify_support_recovery(dense.dictionary.T, dense.dictionary, 12, 8.0, 10.0)
    assert not found.theorem_holds
    assert not found.certified
    assert found.bias is None
    low, high = found.coherence_interval
    assert low > high
    # The simulation of the source: 50 inputs, Gaussian atoms, values in [1, 10].
    atoms = gaussian_dictionary(50, 256, rng)
    published = certify_support_recovery(atoms.T, atoms, 2, 1.0, 10.0)
    assert not published.theorem_holds
    assert not published.certified
    model = SparseModel(atoms, 2, 1.0, 10.0)
    codes = model.codes(500, rng)
    rates = support_rates(atoms.T, model.signals(codes), codes, published.theorem_bias)
    assert rates.missed > 0.9  # with its own bias hardly any unit of the support fires


def test_what_the_certificate_refuses_has_a_counterexample() -> None:
    # The worst signals of both kinds are real: off-support response above the on-support one.
    rng = np.random.default_rng(1004)
    atoms = gaussian_dictionary(8, 12, rng)
    found = certify_support_recovery(atoms.T, atoms, 3, 1.0, 3.0)
    assert not found.certified
    products = atoms.T @ atoms
    np.fill_diagonal(products, 0)
    unit = int(found.off_support.argmax())
    worst = np.argsort(products[unit])[-3:]
    code = np.zeros((1, 12))
    code[0, worst[products[unit][worst] > 0]] = 3.0
    response = (code @ atoms.T) @ atoms[:, unit]
    assert response[0] == pytest.approx(found.off_support.max(), rel=1e-12)
    assert response[0] > found.on_support.min()


def test_a_far_encoder_is_not_certified() -> None:
    atoms = spikes_and_waves(64)
    found = certify_support_recovery(-atoms.T, atoms, 1, 8.0, 10.0)
    assert found.theorem_needs == np.inf
    assert not found.certified
    assert not found.allows(0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2 * np.eye(4), 1, 1.0, 2.0), "dictionary must have columns of length one"),
        ((np.eye(4)[0], 1, 1.0, 2.0), "dictionary must be of shape"),
        ((np.full((2, 2), np.nan), 1, 1.0, 2.0), "dictionary must be finite"),
        ((np.eye(4), 0, 1.0, 2.0), "sparsity must be between 1 and the number of atoms, 4"),
        ((np.eye(4), 5, 1.0, 2.0), "sparsity must be between"),
        ((np.eye(4), 1, -1.0, 2.0), "low and high must be finite with 0 < low <= high"),
        ((np.eye(4), 1, 3.0, 2.0), "low and high must be"),
        ((np.eye(4), 1, 1.0, np.nan), "low and high must be"),
    ],
)
def test_bad_models(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SparseModel(*arguments)


def test_bad_arguments() -> None:
    atoms = spikes_and_waves(4)
    with pytest.raises(InvalidInput, match="encoder must be of shape"):
        certify_support_recovery(atoms, atoms, 1, 1.0, 2.0)
    with pytest.raises(InvalidInput, match="inputs must be a power of two"):
        spikes_and_waves(12)
    with pytest.raises(InvalidInput, match="rng must be given"):
        gen_sparse_model(4, 8, 1, 1.0, 2.0)
    with pytest.raises(InvalidInput, match=r"dictionary must be of shape \(4, 9\)"):
        gen_sparse_model(4, 9, 1, 1.0, 2.0, dictionary=atoms)
    with pytest.raises(InvalidInput, match="signals must be one per code"):
        support_rates(atoms.T, np.zeros((3, 4)), np.zeros((2, 8)), 1.0)
    model = gen_sparse_model(5, 9, 2, 1.0, 2.0, rng=np.random.default_rng(1005))
    assert (model.n_inputs, model.n_atoms) == (5, 9)


@pytest.mark.parametrize("shape", [(1.0, 1.0), (0.3, 3.0), (2.0, 5.0)])
def test_moments_of_other_laws(shape):
    model = SparseModel(spikes_and_waves(16), 2, 1.0, 9.0, shape)
    codes = model.codes(100_000, np.random.default_rng(1000))
    values = codes[codes > 0]
    assert values.min() >= 1.0
    assert values.max() <= 9.0
    assert values.mean() == pytest.approx(model.mean, rel=0.02)
    assert (values**2).mean() == pytest.approx(model.mean_square, rel=0.03)


def test_the_probability_of_the_theorem_matters_where_most_values_are_small():
    atoms = spikes_and_waves(1024)
    model = SparseModel(atoms, 1, 1.0, 20.0, (0.2, 4.0))
    found = certify_support_recovery(atoms.T, atoms, 1, 1.0, 20.0, mean=model.mean)
    assert found.theorem_holds
    assert 2 * model.mean < 20.0
    codes = model.codes(4000, np.random.default_rng(1000))
    rates = support_rates(atoms.T, model.signals(codes), codes, found.theorem_bias)
    assert rates.missed == 0
    assert 0 < rates.false <= np.exp(-2 * model.mean**2 / 19.0**2)
    uniform = SparseModel(atoms, 1, 1.0, 20.0)
    codes = uniform.codes(4000, np.random.default_rng(1000))
    certain = certify_support_recovery(atoms.T, atoms, 1, 1.0, 20.0).theorem_bias
    assert support_rates(atoms.T, uniform.signals(codes), codes, certain).false == 0


def test_impossible_laws_are_refused():
    atoms = spikes_and_waves(16)
    with pytest.raises(InvalidInput, match="shape"):
        SparseModel(atoms, 1, 1.0, 2.0, (0.0, 1.0))
    with pytest.raises(InvalidInput, match="mean"):
        certify_support_recovery(atoms.T, atoms, 1, 1.0, 2.0, mean=3.0)
