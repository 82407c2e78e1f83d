"""Combine networks: composition, sums, stacked outputs. Exact ones stay exact.

    compose:  (f o g)(x) = f(g(x))          hidden layers add up, and so do the sizes: the affine maps between
                                            g's last and f's first gates are multiplied into one;
    add:      c_1 f_1(x) + c_2 f_2(x) ...   side by side, sizes add up;
    stack:    (f_1(x), f_2(x), ...)         side by side, outputs one after the other.

Networks put side by side need equally many layers. A shallower one is padded at its outputs with
z = relu(z) - relu(-z): two gates per output and missing layer ([mathematics] Lemmas 2.A.2 to 2.A.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unweave.arrays import AnyArray
from unweave.construct.exactness import Number, alike, array, depth, identity, is_exact, number, zeros
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.rationals import sparse_product

RELU, IDENTITY = "relu", "identity"


def affine_network(matrix: Any, offset: Any = None, exact: bool | None = None) -> Network:
    """x -> x @ matrix + offset as a network without gates; matrix (n, K), offset (K,), zero if not given.

    Example:
        >>> affine_network([[1.0], [2.0]], [3.0])([10.0, 100.0])
        array([213.])
    """
    exact = is_exact(exact, matrix, offset)
    weight = array(matrix, exact, "matrix")
    if weight.ndim != 2:
        raise InvalidInput(f"matrix must be of shape (n, K). Got shape {weight.shape} instead. Reshape it.")
    bias = zeros(weight.shape[1], exact) if offset is None else array(offset, exact, "offset")
    return Network([weight], [bias], [IDENTITY])


def compose(outer: Network, inner: Network) -> Network:
    """x -> outer(inner(x)): size(outer) + size(inner) gates, hidden layers added up.

    Any activations; where the inner network's output is not the identity it becomes a hidden layer itself.

    Example:
        >>> absolute = Network([[[1.0, -1.0]], [[1.0], [1.0]]], [[0.0, 0.0], [-1.0]], ["relu", "identity"])
        >>> twice = compose(absolute, absolute)     # | |x| - 1 | - 1
        >>> twice.hidden, twice([[0.0], [1.0], [3.0]]).ravel().tolist()
        ((2, 2), [0.0, -1.0, 1.0])
    """
    _require_networks((outer, inner))
    if outer.n_inputs != inner.n_outputs:
        raise InvalidInput(
            f"outer must have as many inputs as inner has outputs, {inner.n_outputs}. Got {outer.n_inputs} "
            f"instead. compose(outer, inner) is outer(inner(x)); the order may be reversed."
        )
    outer, inner = alike((outer, inner))
    if inner.activations[-1] != IDENTITY:
        return Network(
            [*inner.weights, *outer.weights],
            [*inner.biases, *outer.biases],
            [*inner.activations, *outer.activations],
        )
    matrix = _product(inner.weights[-1], outer.weights[0])
    offset = _product(inner.biases[-1][None], outer.weights[0])[0] + outer.biases[0]
    return Network(
        [*inner.weights[:-1], matrix, *outer.weights[1:]],
        [*inner.biases[:-1], offset, *outer.biases[1:]],
        [*inner.activations[:-1], *outer.activations],
    )


def stack(*networks: Network) -> Network:
    """x -> (f_1(x), f_2(x), ...), all of them reading the same inputs; activations must agree layer by layer.

    Networks of relu layers may differ in depth: the shallower ones are padded.
    """
    _require_networks(networks)
    if len({network.n_inputs for network in networks}) != 1:
        raise InvalidInput(
            f"networks must read the same inputs. Got {[n.n_inputs for n in networks]} of them instead. "
            f"Compose with an affine_network that selects the inputs of each."
        )
    layers = max(depth(network) for network in networks)
    padded = [pad(network, layers) for network in alike(networks)]
    activations = padded[0].activations
    for network in padded:
        if network.activations != activations:
            raise InvalidInput(
                f"networks must have the same activations layer by layer. Got {activations} and "
                f"{network.activations} instead. A layer of a Network has one activation."
            )
    exact = padded[0].is_exact
    weights: list[AnyArray] = [np.concatenate([network.weights[0] for network in padded], axis=1)]
    for layer in range(1, layers):
        weights.append(_block_diagonal([network.weights[layer] for network in padded], exact))
    biases = [np.concatenate([network.biases[layer] for network in padded]) for layer in range(layers)]
    return Network(weights, biases, activations)


def add(*networks: Network, coefficients: Sequence[Number] | None = None) -> Network:
    """x -> sum_i c_i f_i(x), coefficients 1 if not given; outputs must be of one number, sizes add up.

    Example:
        >>> from unweave.construct import max_net, size
        >>> spread = add(max_net(4), compose(max_net(4), affine_network(-np.eye(4))))
        >>> float(spread([3.0, -1.0, 4.0, 1.0])[0]), size(spread) == 2 * size(max_net(4))
        (5.0, True)
    """
    _require_networks(networks)
    if len({network.n_outputs for network in networks}) != 1:
        raise InvalidInput(
            f"networks must have equally many outputs. Got {[n.n_outputs for n in networks]} instead. "
            f"To put outputs side by side, use stack."
        )
    if any(network.activations[-1] != IDENTITY for network in networks):
        raise InvalidInput(
            f"networks must have an identity output to be added. Got {[n.activations[-1] for n in networks]} "
            f"instead. Compose them with affine_network(identity matrix) first."
        )
    given = [1] * len(networks) if coefficients is None else list(coefficients)
    if len(given) != len(networks):
        raise InvalidInput(
            f"coefficients must be one per network, {len(networks)}. Got {len(given)} instead."
            f" Give 1 for a plain sum."
        )
    exact = is_exact(None, given) or any(network.is_exact for network in networks)
    block = identity(networks[0].n_outputs, exact)
    total = np.concatenate([number(c, exact, "coefficients") * block for c in given])
    return compose(affine_network(total, exact=exact), stack(*networks))


def pad(network: Network, layers: int) -> Network:
    """The same function with ``layers`` layers, by z = relu(z) - relu(-z) at the outputs: 2 gates each."""
    missing = layers - depth(network)
    if missing < 0:
        raise InvalidInput(
            f"layers must be at least the {depth(network)} that the network has. Got {layers} instead. "
            f"A network cannot be made shallower."
        )
    if missing == 0:
        return network
    if set(network.activations[:-1]) - {RELU} or network.activations[-1] != IDENTITY:
        raise InvalidInput(
            f"network must have relu units and an identity output to be made deeper. Got {network!r} "
            f"instead. Only relu passes a number on: z = relu(z) - relu(-z)."
        )
    exact, n_outputs = network.is_exact, network.n_outputs
    unit = identity(n_outputs, exact)
    last = np.concatenate([network.weights[-1], -network.weights[-1]], axis=1)
    bias = np.concatenate([network.biases[-1], -network.biases[-1]])
    # Both halves are non-negative from here on, and relu leaves them unchanged.
    through = [identity(2 * n_outputs, exact)] * (missing - 1)
    weights = [*network.weights[:-1], last, *through, np.concatenate([unit, -unit])]
    biases = [
        *network.biases[:-1],
        bias,
        *[zeros(2 * n_outputs, exact)] * (missing - 1),
        zeros(n_outputs, exact),
    ]
    return Network(weights, biases, [RELU] * (layers - 1) + [IDENTITY])


def _product(left: AnyArray, right: AnyArray) -> AnyArray:
    return sparse_product(left, right) if right.dtype == object else left @ right


def _block_diagonal(blocks: Sequence[AnyArray], exact: bool) -> AnyArray:
    rows, columns = (sum(block.shape[axis] for block in blocks) for axis in (0, 1))
    result = zeros((rows, columns), exact)
    row = column = 0
    for block in blocks:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result


def _require_networks(networks: Sequence[Any]) -> None:
    if not networks:
        raise InvalidInput("networks must hold at least one network. None was given.")
    for network in networks:
        if not isinstance(network, Network):
            raise InvalidInput(
                f"networks must be unweave.Network. Got {type(network).__name__} instead. Build one with "
                f"unweave.construct, or read a file with unweave.load."
            )
        if network.skip is not None:
            raise InvalidInput(
                f"networks must have no skip matrix. Got {network!r} instead. Drop the skip, and add an "
                f"affine_network in its place."
            )
