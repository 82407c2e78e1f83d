"""Entangled weights: the gradients of all pre-activations of a known `Network`, and what they compose.

With z^l the pre-activations of layer l, y^l = g_l(z^l), and m_l units in layer l of L,

    V^l(x) = d z^l / d x  (D x m_l),        V^1 = W^1,     V^l = V^{l-1} diag(g'(z^{l-1})) W^l,
    grad f_k = g_L'(z_k^L) v_k^L,
    Hess f_k = sum_l V^l diag(S_k^l) V^l^T,     S_k^l = (d f_k / d y^l) * g_l''(z^l).

The columns of V^l are the entangled weights of layer l: weights of a unit as seen from the inputs, at one
point. Only those of the first layer do not move with x. [identification] Lemma 4.2 bounds the others:

    ||V^l||     <= kappa^{l-1} prod_{j<=l} ||W^j||,
    Lip(V^l)    <= prod_{j<=l} ||W^j|| sum_{k<l} kappa^{l+k-2} max_i |w_i^k| prod_{j<k} ||W^j||,
    ||S_k^l||_F <= kappa^{L-l+1} |w_k^L| prod_{l<j<L} ||W^j||        (l < L;  kappa for l = L),

kappa bounding the first three derivatives of every activation. Cost: O(n D sum m_{l-1} m_l) flops.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.network import Network

_KAPPA_REACH, _KAPPA_NODES = 30.0, 60_001
"""Grid on which the derivatives' suprema are looked for: beyond it every bounded activation is flat."""
_STILL_GROWING = 1e-6
"""Relative change from one node to the last by which a derivative counts as unbounded."""


@dataclass(frozen=True, eq=False)
class EntangledWeights:
    """V^l at n points for all layers, with the pre-activations and slopes they were made of."""

    matrices: tuple[Array, ...]
    """(n, D, m_l) per layer; the first layer is the same matrix at every point."""
    pre_activations: tuple[Array, ...]
    """(n, m_l) z^l per layer."""
    slopes: tuple[Array, ...]
    """(n, m_l) g_l'(z^l) per layer."""
    curvatures: tuple[Array, ...]
    """(n, m_l) g_l''(z^l) per layer."""

    def __len__(self) -> int:
        return len(self.slopes[0])

    def gradients(self) -> Array:
        """Gradients (n, K, D) of the outputs: the last layer's entangled weights times its slopes."""
        return np.ascontiguousarray((self.matrices[-1] * self.slopes[-1][:, None, :]).transpose(0, 2, 1))


@dataclass(frozen=True, eq=False)
class HessianTerms:
    """The Hessians of all outputs as sums of entangled rank-one terms."""

    entangled: EntangledWeights
    coefficients: tuple[Array, ...]
    """(n, K, m_l) S_k^l per layer: what v_j^l v_j^l^T is multiplied by in the Hessian of output k."""

    def hessians(self) -> Array:
        """The sums (n, K, D, D): O(n K D^2 sum of widths) flops."""
        matrix = np.concatenate(self.entangled.matrices, axis=2)  # (n, D, m)
        coefficient = np.concatenate(self.coefficients, axis=2)  # (n, K, m)
        n, inputs, units = matrix.shape
        scaled = (matrix[:, None] * coefficient[:, :, None]).reshape(n, -1, units)
        return np.asarray((scaled @ matrix.mT).reshape(n, -1, inputs, inputs))


def entangled_weights(network: Network, points: Array) -> EntangledWeights:
    """V^l of every layer at ``points`` (n, D). A skip matrix belongs to the last layer's.

    Example
    -------
    >>> from unweave.networks.random import random_network
    >>> network = random_network([4, 3, 2], seed=1)
    >>> [matrix.shape for matrix in entangled_weights(network, np.zeros((5, 4))).matrices]
    [(5, 4, 3), (5, 4, 2)]
    """
    if network.activations[-1] == SOFTMAX:
        raise InvalidInput(
            "network must act elementwise in every layer. Got a softmax output instead. "
            "Take derivatives of its logits: the same network with an identity output."
        )
    last = len(network.weights) - 1
    matrices: list[Array] = []
    states: list[Array] = []
    slopes: list[Array] = []
    curvatures: list[Array] = []
    values = points
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        state = values @ weight + bias
        if layer == 0:
            matrix: Array = np.broadcast_to(weight, (len(points), *weight.shape))
        else:
            matrix = (matrices[-1] * slopes[-1][:, None, :]) @ weight
        if layer == last and network.skip is not None:
            state, matrix = state + points @ network.skip, matrix + network.skip
        values, slope, curvature = get_activation(network.activations[layer]).jet(state, 2)
        matrices.append(matrix)
        states.append(state)
        slopes.append(slope)
        curvatures.append(curvature)
    return EntangledWeights(tuple(matrices), tuple(states), tuple(slopes), tuple(curvatures))


def hessian_terms(network: Network, points: Array) -> HessianTerms:
    """V^l and S_k^l of every layer at ``points`` (n, D); S by back-propagation of d f_k / d y^l."""
    entangled = entangled_weights(network, points)
    n, outputs = len(points), network.n_outputs
    sensitivity: Array = np.broadcast_to(np.eye(outputs), (n, outputs, outputs))  # d f_k / d y^l, (n, K, m_l)
    coefficients = []
    for layer in reversed(range(len(network.weights))):
        coefficients.append(sensitivity * entangled.curvatures[layer][:, None, :])
        sensitivity = (sensitivity * entangled.slopes[layer][:, None, :]) @ network.weights[layer].T
    return HessianTerms(entangled, tuple(reversed(coefficients)))


def network_gradients(network: Network, points: Array) -> Array:
    """Gradients (n, K, D) of all outputs at ``points`` (n, D)."""
    return entangled_weights(network, points).gradients()


def network_hessians(network: Network, points: Array) -> Array:
    """Hessians (n, K, D, D) of all outputs at ``points`` (n, D): O(n K D^2 sum of widths) flops."""
    return hessian_terms(network, points).hessians()


def derivative_bound(network: Network) -> float:
    """kappa: the largest |g'|, |g''|, |g'''| of the network's activations, on a fine grid.

    Infinite where a derivative still grows at the ends of the grid (quadratic, cubic).
    """
    grid = np.linspace(-_KAPPA_REACH, _KAPPA_REACH, _KAPPA_NODES)
    kappa = 0.0
    for name in set(network.activations):
        for derivative in get_activation(name).jet(grid, 3)[1:]:
            size = np.abs(derivative)
            ends, largest = max(size[0], size[-1]), size.max()
            if ends == largest and max(size[1], size[-2]) < ends * (1 - _STILL_GROWING):
                return np.inf
            kappa = max(kappa, float(largest))
    return kappa


def entangled_norm_bounds(network: Network, kappa: float | None = None) -> Array:
    """(L,) bounds of ||V^l(x)|| (spectral norm) that hold at every x ([identification] Lemma 4.2)."""
    kappa = derivative_bound(network) if kappa is None else kappa
    products = np.cumprod(_spectral_norms(network))
    bounds = kappa ** np.arange(len(products)) * products
    if network.skip is not None:
        bounds[-1] += np.linalg.norm(network.skip, 2)
    return np.asarray(bounds)


def entangled_lipschitz_bounds(network: Network, kappa: float | None = None) -> Array:
    """(L,) bounds of ||V^l(x) - V^l(x')|| / |x - x'| (spectral norm), zero for layer 1.

    [identification] Lemma 4.2.
    """
    kappa = derivative_bound(network) if kappa is None else kappa
    norms = _spectral_norms(network)
    before = np.concatenate([[1.0], np.cumprod(norms)])  # before[k]: product of the first k norms
    largest = [float(np.linalg.norm(weight, axis=0).max()) for weight in network.weights]
    bounds = np.zeros(len(norms))
    for layer in range(1, len(norms)):
        # In the formula's numbering l = layer + 1 and k runs from 1; here index = k - 1.
        bounds[layer] = before[layer + 1] * sum(
            kappa ** (layer + index) * largest[index] * before[index] for index in range(layer)
        )
    return bounds


def coefficient_bounds(network: Network, kappa: float | None = None) -> Array:
    """(L, K) bounds of |S_k^l(x)| that hold at every x ([identification] Lemma 4.2)."""
    kappa = derivative_bound(network) if kappa is None else kappa
    norms, depth = _spectral_norms(network), len(network.weights)
    last = np.linalg.norm(network.weights[-1], axis=0)
    bounds = np.full((depth, network.n_outputs), kappa)
    for layer in range(depth - 1):
        bounds[layer] = kappa ** (depth - layer) * last * np.prod(norms[layer + 1 : -1])
    return bounds


def _spectral_norms(network: Network) -> Array:
    return np.array([float(np.linalg.norm(weight, 2)) for weight in network.weights])
