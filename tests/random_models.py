"""Networks with one hidden layer of all shapes that matter, and places to look at them."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters

SHAPES = [(4, 3, 1, False), (4, 3, 1, True), (3, 5, 3, False), (3, 5, 3, True)]
CASES = pytest.mark.parametrize(("d", "m", "k", "skip"), SHAPES)


def random_model(
    d: int, m: int, k: int, skip: bool, seed: int = 1000, name: str = "tanh"
) -> NetworkParameters:
    rng = np.random.default_rng(seed)
    return NetworkParameters.shallow(
        activation=get_activation(name),
        weights=rng.standard_normal((d, m)) / np.sqrt(d),
        biases=rng.uniform(-1, 1, m),
        outgoing=rng.standard_normal((m, k)),
        offset=rng.standard_normal(k),
        skip=rng.standard_normal((d, k)) if skip else None,
    )


def sites_of(d: int, n: int = 7, seed: int = 1001) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))
