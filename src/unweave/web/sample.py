"""The network that comes with the page, for whoever wants to see a run before they have a model at hand."""

from __future__ import annotations

from unweave.networks.network import Network
from unweave.networks.random import random_network


def sample_network() -> Network:
    """Return a network of 10 inputs and 12 tanh units, recovered in a second or two."""
    return random_network([10, 12, 1], activation="tanh", seed=0, outer="signed", norms=(0.5, 2), bias=1)
