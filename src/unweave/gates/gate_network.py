"""A gate as a network."""

from __future__ import annotations

from unweave.arrays import Array
from unweave.networks.network import Network


def gate_network(weights: Array, activation: str = "relu") -> Network:
    """x -> act(w . x), w (n,), as a hidden layer of one unit and an output of weight one.

    This is the form in which `unweave.recover` returns a single unit, so that both compare.

    Example:
        >>> import numpy as np
        >>> gate_network(np.array([1.0, -2.0]))
        Network(2-1-1, relu, identity output, 5 parameters)
    """
    return Network([weights[:, None], [[1.0]]], [[0.0], [0.0]], [activation, "identity"])
