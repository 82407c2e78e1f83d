from __future__ import annotations

import numpy as np
import pytest

from unweave import get_activation, random_network
from unweave.derivatives.lattice_jets import LatticeJets, LatticeSampler
from unweave.derivatives.truncation import without_lattice_truncation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing

NETWORK = random_network([5, 7, 2], seed=1000, outer="normal")
MODEL = NetworkParameters.shallow(
    get_activation("tanh"),
    NETWORK.weights[0],
    NETWORK.biases[0],
    NETWORK.weights[1],
    NETWORK.biases[1],
)


def errors(jets: LatticeJets) -> tuple[float, float]:
    z = jets.sites @ MODEL.weights[0] + MODEL.biases[0]
    _, _, second, third = MODEL.activation.jet(z, 3)
    squares = symmetric_packing(5).outer(MODEL.weights[0].T)
    hessians = np.einsum("nm,mk,mp->nkp", second, MODEL.weights[1], squares)
    thirds = np.einsum("nm,mk,jm,mp->nkjp", third, MODEL.weights[1], MODEL.weights[0], squares)
    return float(np.abs(jets.hessians - hessians).max()), float(np.abs(jets.thirds - thirds).max())


def both(step: float, mirrored: bool) -> tuple[tuple[float, float], tuple[float, float]]:
    sampler = LatticeSampler(NETWORK, step, mirrored)
    rng = np.random.default_rng(1000)
    for _ in range(2):
        sampler.add(rng.standard_normal(5))
    jets = sampler.jets()
    return errors(jets), errors(without_lattice_truncation(jets, MODEL))


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_network_itself_takes_the_leading_terms_away(mirrored: bool) -> None:
    # What is left is two orders of the step smaller, and with the constants of tanh less than a tenth.
    before, after = both(5e-2, mirrored)
    assert after[0] < 0.02 * before[0]
    assert after[1] < 0.02 * before[1]
    _, finer = both(2.5e-2, mirrored)
    for coarse, fine, order in zip(after, finer, (4, 4) if mirrored else (4, 3), strict=True):
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.6)
