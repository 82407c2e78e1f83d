"""Planted one-hidden-layer networks and coarse versions of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import unweave
from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.probing.noise import estimate_noise
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.target import as_queries


def planted(
    inputs: int,
    width: int,
    outputs: int,
    seed: int,
    activation: str = "tanh",
    output: str = "identity",
    norm: float = 1.0,
) -> unweave.Network:
    """Weights of length ``norm``, biases in [-1/2, 1/2], outer ones of modulus 1/2 to 2 (a link: less)."""
    rng = np.random.default_rng(seed)
    incoming = rng.standard_normal((inputs, width))
    incoming *= norm / np.linalg.norm(incoming, axis=0)
    biases = rng.uniform(-0.5, 0.5, width)
    outgoing = rng.uniform(0.5, 2, (width, outputs)) * rng.choice([-1, 1], (width, outputs))
    if output != "identity":
        outgoing *= 1.5 / np.sqrt(width)  # answers that are not saturated
    return unweave.Network([incoming, outgoing], [biases, np.zeros(outputs)], [activation, output])


def rounded(function: Callable[[Array], Array], decimals: int) -> Callable[[Array], Array]:
    return lambda x: np.round(function(x), decimals)


def noisy(function: Callable[[Array], Array], sigma: float, seed: int) -> Callable[[Array], Array]:
    rng = np.random.default_rng(seed)

    def answer(x: Array) -> Array:
        y = np.asarray(function(x))
        return y + sigma * rng.standard_normal(y.shape)

    return answer


def in_single_precision(network: unweave.Network) -> Callable[[Array], Array]:
    """Weights, states and answers in float32."""
    single = unweave.Network(
        [w.astype(np.float32) for w in network.weights],
        [b.astype(np.float32) for b in network.biases],
        network.activations,
    )
    return lambda x: single(x.astype(np.float32)).astype(np.float32)


def rows_of(
    target: Callable[[Array], Array], inputs: int, seed: int = 1000, region: Region | None = None
) -> AnsweredRows:
    """Rows of ``target`` as the route has them."""
    rng = np.random.default_rng(seed)
    view = NormalisedQueries(
        as_queries(target, input_dim=inputs), Region.standard(inputs) if region is None else region
    )
    return AnsweredRows(view, estimate_noise(view, rng), rng)
