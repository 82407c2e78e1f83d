"""How much noise the parameters of a network tolerate before its answers move by more than a margin.

For layers y_l = g_l(y_{l-1} W_l + b_l), all g_l 1-Lipschitz with g_l(0) = 0, and inputs |x| <= B, noise U_l
on the weights and u_l on the biases moves the output by at most Delta_d, where

    R_l     = |W_l| R_{l-1} + |b_l|,                                       R_0 = B,
    Delta_l = (|W_l| + |U_l|) Delta_{l-1} + |U_l| R_{l-1} + |u_l|,         Delta_0 = 0

(spectral norms). A Gaussian matrix of standard deviation sigma, r x c, is at most
sigma (sqrt r + sqrt c + s) with probability 1 - exp(-s^2/2), a vector of c entries sigma (sqrt c + s). So the
largest sigma with Delta_d <= margin, all layers holding at once with probability 1 - failure, is one
bisection (``form="recursion"``, the default).

Two other forms serve for comparison, both for networks without biases, D being the largest dimension:

- ``"closed"``: sigma = t / sqrt(2 D log(S/failure)), S = sum_l (r_l + c_l) and
  t = min( min_l |W_l|/d, margin/(e B prod|W| sum 1/|W_l|) ): the same guarantee by looser inequalities;
- ``"published"`` ([mathematics] Thm. 6.2.1 for one network): t = min( beta/d, margin/(e d B beta^{d-1}) ),
  beta^d = prod|W|, h the widest hidden layer. It assumes "without loss of generality" that all layers have
  one norm. Rescaling to that leaves the function as it is, but not the effect of the noise: with layers
  scaled by 100 and 1/100 it is exceeded in every draw. It is no guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.network import Network

Form = Literal["recursion", "closed", "published"]

LIPSCHITZ_ONE = ("relu", "leaky_relu", "tanh", "sine", "identity")
"""Activations with |g(a) - g(b)| <= |a - b| and g(0) = 0."""

_SIGMA_BISECTIONS = 200  # of log sigma over the range of float64: down to rounding


@dataclass(frozen=True)
class LayerNorms:
    """Spectral norms |W_l| and lengths |b_l| of the layers, with the shapes of the W_l."""

    weights: tuple[float, ...]
    biases: tuple[float, ...]
    shapes: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, network: Network) -> LayerNorms:
        """Measure a network."""
        network.require_floats("certify")
        return cls(
            tuple(float(np.linalg.norm(w, 2)) for w in network.weights),
            tuple(float(np.linalg.norm(b)) for b in network.biases),
            tuple((int(w.shape[0]), int(w.shape[1])) for w in network.weights),
        )

    @property
    def geometric_mean(self) -> float:
        """beta = (prod_l |W_l|)^(1/d)."""
        with np.errstate(divide="ignore"):
            return float(np.exp(np.mean(np.log(self.weights))))


def noise_resilience_sigma(
    network: Network, input_norm: float, margin: float, failure: float = 0.5, form: Form = "recursion"
) -> float:
    """Standard deviation of Gaussian noise, the same on all parameters, that the network tolerates.

    With probability at least 1 - ``failure`` over the noise, the answers at all |x| <= ``input_norm`` at once
    move by at most ``margin`` in Euclidean norm. Biases are perturbed too if the network has any that is not
    zero. Returns 0 where nothing is guaranteed: activations other than `LIPSCHITZ_ONE` (output included), a
    skip matrix, or biases in the closed and the published form.

    Example:
        >>> from unweave import random_network
        >>> net = random_network([10, 20, 2], activation="relu", bias=0.0, outer="unit", seed=1000)
        >>> round(noise_resilience_sigma(net, 1.0, 0.5), 4)
        0.0184
    """
    _check(input_norm, margin, failure)
    if form not in get_args(Form):
        raise InvalidInput(
            f"form must be one of {', '.join(get_args(Form))}. Got {form!r} instead. Choose one."
        )
    norms = LayerNorms.of(network)
    if not is_resilient_kind(network):
        return 0.0
    if form == "recursion":
        scales = [1.0] * len(norms.weights)
        return _largest_factor(norms, scales, input_norm, margin, failure)
    if any(norms.biases) or not all(norms.weights):
        return 0.0
    d, beta = len(norms.weights), norms.geometric_mean
    if form == "published":
        widest = max(network.hidden, default=1)
        t = min(beta / d, margin / (math.e * d * input_norm * beta ** (d - 1)))
        return float(t / np.sqrt(2 * widest * np.log(2 * d * widest / failure)))
    rows = np.array(norms.weights)
    t = min(rows.min() / d, margin / (math.e * input_norm * np.prod(rows) * np.sum(1 / rows)))
    largest, total = max(map(max, norms.shapes)), sum(map(sum, norms.shapes))
    return float(t / np.sqrt(2 * largest * np.log(total / failure)))


def noise_resilience_sigmas(
    network: Network, input_norm: float, margin: float, failure: float = 0.5
) -> tuple[float, ...]:
    """One standard deviation per layer, each in proportion to its layer's norm over that of unit noise.

    The same guarantee as `noise_resilience_sigma`. Layers rescaled by c and 1/c are given noise rescaled by c
    and 1/c, so that the relative noise does not depend on how the layers are scaled; one sigma for all has to
    suit the smallest.
    """
    _check(input_norm, margin, failure)
    norms = LayerNorms.of(network)
    if not is_resilient_kind(network) or not all(norms.weights):
        return (0.0,) * len(norms.weights)
    unit = unit_noise_norms(norms, failure)
    scales = [w / u for w, (u, _) in zip(norms.weights, unit, strict=True)]
    factor = _largest_factor(norms, scales, input_norm, margin, failure)
    return tuple(factor * scale for scale in scales)


def deviation_bound(norms: LayerNorms, input_norm: float, noise: Sequence[tuple[float, float]]) -> float:
    """Delta_d for noise with |U_l| and |u_l| as given: what outputs move by at most, |x| <= input_norm."""
    reach, moved = float(input_norm), 0.0
    for weight, bias, (on_weight, on_bias) in zip(norms.weights, norms.biases, noise, strict=True):
        moved = (weight + on_weight) * moved + on_weight * reach + on_bias
        reach = weight * reach + bias
    return moved


def unit_noise_norms(norms: LayerNorms, failure: float) -> list[tuple[float, float]]:
    """Bounds on |U_l| and |u_l| for sigma = 1 that hold all at once with probability 1 - failure."""
    with_biases = any(norms.biases)
    events = len(norms.shapes) * (2 if with_biases else 1)
    tail = np.sqrt(2 * np.log(events / failure))
    return [
        (float(np.sqrt(r) + np.sqrt(c) + tail), float(np.sqrt(c) + tail) if with_biases else 0.0)
        for r, c in norms.shapes
    ]


def is_resilient_kind(network: Network) -> bool:
    """Whether the bound covers the network: no skip, activations of `LIPSCHITZ_ONE`."""
    return network.skip is None and set(network.activations) <= set(LIPSCHITZ_ONE)


def _largest_factor(
    norms: LayerNorms, scales: Sequence[float], input_norm: float, margin: float, failure: float
) -> float:
    """Largest f such that noise of standard deviation f scales[l] in layer l keeps the margin."""
    unit = [(s * w, s * b) for s, (w, b) in zip(scales, unit_noise_norms(norms, failure), strict=True)]

    def moves(factor: float) -> float:
        return deviation_bound(norms, input_norm, [(factor * w, factor * b) for w, b in unit])

    return _largest_where(lambda factor: moves(factor) <= margin)


def _largest_where(holds: Callable[[float], bool]) -> float:
    """Largest float at which a monotone condition holds, from below; 0 if it holds nowhere."""
    low, high = np.log(np.finfo(np.float64).tiny), np.log(np.finfo(np.float64).max) / 4
    if not holds(float(np.exp(low))):
        return 0.0
    for _ in range(_SIGMA_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(float(np.exp(middle))) else (low, middle)
    return float(np.exp(low))


def draw_noise(network: Network, sigmas: float | Sequence[float], rng: np.random.Generator) -> Network:
    """The network with Gaussian noise added, of one standard deviation or of one per layer.

    Biases are perturbed if any of them is not zero, as `noise_resilience_sigma` reckons.
    """
    network.require_floats("draw_noise")
    layers = len(network.weights)
    per_layer = [sigmas] * layers if isinstance(sigmas, int | float) else list(sigmas)
    if len(per_layer) != layers:
        raise InvalidInput(f"sigmas must be one, or {layers}. Got {len(per_layer)} instead. One per layer.")
    with_biases = any(np.any(b) for b in network.biases)
    weights = [w + s * rng.standard_normal(w.shape) for w, s in zip(network.weights, per_layer, strict=True)]
    biases: list[Array] = list(network.biases)
    if with_biases:
        biases = [b + s * rng.standard_normal(b.shape) for b, s in zip(biases, per_layer, strict=True)]
    return Network(weights, biases, network.activations, network.skip)


def _check(input_norm: float, margin: float, failure: float) -> None:
    if not (np.isfinite(input_norm) and input_norm > 0 and np.isfinite(margin) and margin > 0):
        raise InvalidInput(
            f"input_norm and margin must be positive and finite. Got {input_norm} and {margin} instead. "
            f"input_norm bounds |x|, margin what the answers may move by."
        )
    if not 0 < failure < 1:
        raise InvalidInput(f"failure must be between 0 and 1. Got {failure} instead. For example 0.5.")
