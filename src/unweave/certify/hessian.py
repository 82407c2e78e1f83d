"""The smallest eigenvalue of the Hessian of the training loss, from Hessian-vector products.

L(w) = 1/(2 N) sum_i |f_w(x_i) - y_i|^2. The product H v comes from one pass forward and one back in which
every quantity q carries its derivative R q along v (Pearlmutter [hessian-product]): with z_l = a_{l-1} W_l +
b_l and a_l = g_l(z_l),

    R z_l = R a_{l-1} W_l + a_{l-1} V_l + v_l,                 R a_l = g_l'(z_l) R z_l,
    R delta_l = (R delta_{l+1} W^T + delta_{l+1} V^T) g_l' + (delta_{l+1} W^T) g_l'' R z_l,
    R dL/dW_l = (R a_{l-1})^T delta_l + a_{l-1}^T R delta_l.

Few parameters: H is formed and diagonalized. Many: Lanczos, whose smallest Ritz value is never below the
smallest eigenvalue and comes with a residual |H v - value v| within which some eigenvalue lies. Kinks count
as having no curvature, so that for ReLU networks it is the Hessian of the piece around w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.lanczos import lanczos_extremes

_FIRST_LANCZOS_STEPS = 40  # then doubled: seldom enough, but cheap


@dataclass(frozen=True, eq=False)
class HessianMinimum:
    """The smallest eigenvalue of the Hessian, or the smallest Ritz value."""

    value: float
    vector: Array
    """(P,) unit vector, parameters layer by layer, weights row by row and then biases."""
    residual: float
    """|H v - value v|: some eigenvalue is this close to value, and none found is smaller."""
    largest: float
    """Largest eigenvalue (or Ritz value), against which ``residual`` is to be read."""
    products: int
    """Hessian-vector products taken."""
    dense: bool
    """Whether H was formed, so that value is the smallest eigenvalue and not only close to some."""


class LossHessian:
    """H v at the parameters of a network, for samples x (N, n) and y (N, K)."""

    def __init__(self, network: Network, x: ArrayLike, y: ArrayLike) -> None:
        self._x, self._y = _checked(network, x, y)
        self._parameters = NetworkParameters.from_network(network)
        self._weights = network.weights
        self.size = network.n_parameters
        values, self._inputs, self._first, self._second = self._x, [], [], []
        for weight, bias, name in zip(network.weights, network.biases, network.activations, strict=True):
            self._inputs.append(values)
            values, first, second = get_activation(name).jet(values @ weight + bias, 2)
            self._first.append(first)
            self._second.append(second)
        self._error = (values - self._y) / len(self._x)
        self._back = self._backward()

    def gradient(self) -> Array:
        """(P,) gradient of the loss."""
        deltas = [b * f for b, f in zip(self._back, self._first, strict=True)]
        return _flat([(a.T @ d, d.sum(axis=0)) for a, d in zip(self._inputs, deltas, strict=True)])

    def product(self, vector: Array) -> Array:
        """(P,) H v. Cost: that of some six evaluations of the network on the samples."""
        moves = self._parameters.split(vector)
        layers = range(len(self._weights))
        before: list[Array] = []  # R z_l
        inputs = [np.zeros_like(self._x)]  # R a_{l-1}
        for k in layers:
            before.append(inputs[k] @ self._weights[k] + self._inputs[k] @ moves[k][:-1] + moves[k][-1])
            inputs.append(self._first[k] * before[k])
        parts: list[tuple[Array, Array]] = []
        moved = inputs[-1] / len(self._x)  # R of dL/da_l
        for k in reversed(layers):
            delta = self._back[k] * self._first[k]
            moved_delta = moved * self._first[k] + self._back[k] * self._second[k] * before[k]
            parts.append((inputs[k].T @ delta + self._inputs[k].T @ moved_delta, moved_delta.sum(axis=0)))
            moved = moved_delta @ self._weights[k].T + delta @ moves[k][:-1].T
        return _flat(parts[::-1])

    def _backward(self) -> list[Array]:
        """dL/da_l (N, m_l) of every layer."""
        back = [self._error]
        for k in reversed(range(1, len(self._weights))):
            back.append((back[-1] * self._first[k]) @ self._weights[k].T)
        return back[::-1]


def hessian_min_eig(
    network: Network,
    x: ArrayLike,
    y: ArrayLike,
    steps: int = 320,
    tolerance: float = 1e-6,
    seed: int | np.random.Generator = 0,
    dense_parameters: int = 500,
) -> HessianMinimum:
    """Smallest eigenvalue of the Hessian of the loss at ``network``, samples x (N, n), y (N, K).

    Up to ``dense_parameters`` parameters the Hessian is formed. Beyond, Lanczos runs with 40, 80, ... up to
    ``steps`` steps, until the residual is at most ``tolerance`` times the largest eigenvalue.

    Example:
        >>> from unweave import random_network
        >>> net = random_network([3, 4, 1], seed=1000)
        >>> x = np.random.default_rng(1000).standard_normal((50, 3))
        >>> hessian_min_eig(net, x, net(x)).value > 0      # at its own answers: a strict minimum
        True
    """
    if steps < 1 or not tolerance > 0:
        raise InvalidInput(
            f"steps must be at least 1 and tolerance positive. Got {steps} and {tolerance} instead. "
            f"For example 320 and 1e-6."
        )
    hessian = LossHessian(network, x, y)
    if hessian.size <= dense_parameters:
        return _dense(hessian)
    rng = np.random.default_rng(seed)
    products, taken = 0, min(_FIRST_LANCZOS_STEPS, steps)
    while True:
        (low, vector), (high, _) = lanczos_extremes(hessian.product, hessian.size, taken, rng)
        residual = float(np.linalg.norm(hessian.product(vector) - low * vector))
        products += min(taken, hessian.size) + 1
        largest = max(abs(low), abs(high))
        if residual <= tolerance * largest or taken >= min(steps, hessian.size):
            return HessianMinimum(low, vector, residual, largest, products, False)
        taken = min(2 * taken, steps)


def _dense(hessian: LossHessian) -> HessianMinimum:
    matrix = np.stack([hessian.product(row) for row in np.eye(hessian.size)])
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    residual = float(np.linalg.norm(hessian.product(vectors[:, 0]) - values[0] * vectors[:, 0]))
    largest = float(np.abs(values).max())
    return HessianMinimum(float(values[0]), vectors[:, 0], residual, largest, hessian.size + 1, True)


def _flat(parts: list[tuple[Array, Array]]) -> Array:
    return np.concatenate([np.concatenate([weight.ravel(), bias]) for weight, bias in parts])


def _checked(network: Network, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    network.require_floats("hessian_min_eig")
    if network.skip is not None or network.activations[-1] == SOFTMAX:
        raise InvalidInput(
            f"network must have no skip and no softmax output. Got {network!r} instead. The loss is the mean "
            f"squared error of a plain network."
        )
    rows, labels = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    labels = labels[:, None] if labels.ndim == 1 else labels
    fits = rows.ndim == 2 and rows.shape[1] == network.n_inputs and len(rows) >= 1
    if not fits or labels.shape != (len(rows), network.n_outputs):
        raise InvalidInput(
            f"x and y must be of shapes (N, {network.n_inputs}) and (N, {network.n_outputs}). Got "
            f"{rows.shape} and {labels.shape} instead. One row per sample."
        )
    if not (np.isfinite(rows).all() and np.isfinite(labels).all()):
        raise InvalidInput("x and y must be finite. Got NaN or infinite entries instead. Remove those rows.")
    return rows, labels
