"""Exact gradients and Hessians of a known `Network` of any depth.

With z^l the pre-activations of layer l and V^l(x) = d z^l / d x (D x m_l),

    V^1 = W^1,      V^l = V^{l-1} diag(g'(z^{l-1})) W^l,
    Hess f_k = sum_l V^l diag( (d f_k / d y^l) * g''(z^l) ) V^l^T.

The columns of V^l are the entangled weights of layer l. Used as an oracle against differences, and for
whatever needs derivatives of a network that is known; never for a target.
"""

from __future__ import annotations

import numpy as np

from unweave.activations import SOFTMAX, get_activation
from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.network import Network


def network_gradients(network: Network, points: Array) -> Array:
    """Gradients (n, K, D) of all outputs at ``points`` (n, D)."""
    first, _ = _layer_derivatives(network, points)
    tangent = np.broadcast_to(network.weights[0], (len(points), *network.weights[0].shape))
    for weight, slope in zip(network.weights[1:], first[:-1], strict=True):
        tangent = (tangent * slope[:, None, :]) @ weight
    if network.skip is not None:
        tangent = tangent + network.skip
    return (tangent * first[-1][:, None, :]).transpose(0, 2, 1)


def network_hessians(network: Network, points: Array) -> Array:
    """Hessians (n, K, D, D) of all outputs at ``points`` (n, D): O(n K D^2 sum of widths) flops."""
    first, second = _layer_derivatives(network, points)
    n, depth, outputs = len(points), len(network.weights), network.n_outputs
    tangents = [np.broadcast_to(network.weights[0], (n, *network.weights[0].shape))]
    for weight, slope in zip(network.weights[1:], first[:-1], strict=True):
        tangents.append((tangents[-1] * slope[:, None, :]) @ weight)
    if network.skip is not None:
        tangents[-1] = tangents[-1] + network.skip
    result = np.zeros((n, outputs, network.n_inputs, network.n_inputs))
    sensitivity = np.broadcast_to(np.eye(outputs), (n, outputs, outputs))  # d f_k / d y^l, (n, K, m_l)
    for layer in reversed(range(depth)):
        curvature = sensitivity * second[layer][:, None, :]
        tangent = tangents[layer]
        result += np.einsum("nik,nok,njk->noij", tangent, curvature, tangent, optimize=True)
        sensitivity = (sensitivity * first[layer][:, None, :]) @ network.weights[layer].T
    return result


def _layer_derivatives(network: Network, points: Array) -> tuple[list[Array], list[Array]]:
    """g'(z^l) and g''(z^l) of every layer, each (n, m_l)."""
    first, second = [], []
    state = points
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        if network.activations[layer] == SOFTMAX:
            raise InvalidInput(
                "network must act elementwise in every layer. Got a softmax output instead. "
                "Take derivatives of its logits: the same network with an identity output."
            )
        z = state @ weight + bias
        if layer == len(network.weights) - 1 and network.skip is not None:
            z = z + points @ network.skip
        state, slope, curvature = get_activation(network.activations[layer]).jet(z, 2)
        first.append(slope)
        second.append(curvature)
    return first, second
