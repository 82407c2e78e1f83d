"""Labelled data of a classifier: margins, margin loss, and what all bounds on risk share.

The margin of (x, y) is f(x)[y] - max_{i != y} f(x)[i]; the margin loss L_gamma is the fraction of samples
whose margin is at most gamma. All bounds here are of the form ([mathematics] Thm. 6.1.2)

    E L_0(f_w~) <= L^_{gamma/2}(f_w) + sqrt( (KL(posterior | prior) + log(3 m / delta)) / (m - 1) )

with probability 1 - delta over the m samples: w~ is w with Gaussian noise, conditioned on moving no answer by
more than gamma/4, which must have probability 1/2 at least. It bounds the risk of that *noisy* network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unweave.arrays import Array, IntArray
from unweave.certify.perturbation import LayerNorms
from unweave.errors import InvalidInput
from unweave.networks.network import Network

BASEL = np.pi**2 / 6
"""Sum of 1/j^2: the price of a choice among j = 1, 2, ..."""
SMALLEST_MARGIN = 2.0**-60
"""Smallest margin tried: below it, answers of order one differ by rounding."""


@dataclass(frozen=True)
class RiskBound:
    """A bound on the risk of the noisy classifier; infinite where one of its hypotheses fails."""

    value: float
    """margin loss + complexity; anything above 1 says nothing."""
    margin_loss: float
    """Fraction of the samples with margin at most gamma/2."""
    complexity: float
    """The square root; inf where a hypothesis fails."""
    margin: float
    """gamma"""
    sigma: float = np.nan
    """Standard deviation of the noise; of the layer with the least, where they differ."""
    divergence: float = np.nan
    """KL(posterior | prior), or an upper bound of it."""
    confidence: float = np.nan
    """Probability over the samples with which it holds."""
    proved: bool = True
    """False for forms that were published but do not follow from their proof."""
    reason: str = ""
    """The hypothesis that fails; empty if none does."""

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than that a risk is at most 1."""
        return not self.value < 1

    def __str__(self) -> str:
        if self.reason:
            return f"no bound: {self.reason}"
        name = "risk" if self.proved else "risk (as stated, which the proof does not give)"
        return f"{name} <= {self.value:.3g} = {self.margin_loss:.3g} + {self.complexity:.3g}" + (
            ", vacuous" if self.vacuous else ""
        )


@dataclass(frozen=True, eq=False)
class LabelledData:
    """m samples x (m, n) with labels y (m,) in 0 .. classes - 1."""

    x: Array
    y: IntArray

    @classmethod
    def of(cls, network: Network, x: ArrayLike, y: ArrayLike) -> LabelledData:
        """Check samples against a classifier of two outputs or more."""
        network.require_floats("certify")
        rows, labels = np.asarray(x, dtype=np.float64), np.asarray(y)
        shaped = rows.ndim == 2 and rows.shape[1] == network.n_inputs and len(rows) >= 2
        if not shaped or not np.isfinite(rows).all():
            raise InvalidInput(
                f"x must be finite and (m, {network.n_inputs}), m at least 2. Got shape {rows.shape} "
                f"instead. Give one row per sample."
            )
        if network.n_outputs < 2:
            raise InvalidInput(
                "network must have one output per class, at least two. Got one output instead. Add a second "
                "output of zeros to a network of one."
            )
        inside = labels.shape == (len(rows),) and np.isin(labels, np.arange(network.n_outputs)).all()
        if not inside:
            raise InvalidInput(
                f"y must be {len(rows)} labels in 0 .. {network.n_outputs - 1}. Got shape {labels.shape} "
                f"instead, or other labels. Number the classes like the outputs."
            )
        return cls(rows, labels.astype(np.int64))

    @property
    def m(self) -> int:
        """Number of samples."""
        return len(self.x)

    @property
    def largest_norm(self) -> float:
        """max |x|."""
        return float(np.linalg.norm(self.x, axis=1).max())

    def margins(self, network: Network) -> Array:
        """(m,) f(x)[y] - max_{i != y} f(x)[i]."""
        return margins(network(self.x), self.y)

    def margin_loss(self, network: Network, margin: float) -> float:
        """Fraction of the samples whose margin is at most ``margin``."""
        return float(np.mean(self.margins(network) <= margin))


def margins(outputs: Array, labels: IntArray) -> Array:
    """(m,) output of the label minus the largest other one, of outputs (m, classes)."""
    others = np.array(outputs, dtype=np.float64)
    rows = np.arange(len(others))
    own = others[rows, labels].copy()
    others[rows, labels] = -np.inf
    return np.asarray(own - others.max(axis=1))


def kl_square_root(divergence: float, samples: int, log_terms: float) -> float:
    """sqrt((KL + log terms) / (m - 1))."""
    return float(np.sqrt((divergence + log_terms) / (samples - 1)))


def balanced(network: Network) -> Network:
    """The same function with layers of one spectral norm, for a ReLU network without biases."""
    if homogeneous_problem(network):
        raise InvalidInput(
            f"network must have relu units, no biases and no layer of zeros. Got {network!r} instead. "
            f"Only positive homogeneity lets factors move between layers."
        )
    norms = LayerNorms.of(network)
    beta = norms.geometric_mean
    weights = [w * (beta / norm) for w, norm in zip(network.weights, norms.weights, strict=True)]
    return Network(weights, network.biases, network.activations)


def homogeneous_problem(network: Network) -> str:
    """Reason why factors cannot move between the layers; empty if they can."""
    if len(network.weights) < 2:
        return "the network must have a hidden layer"
    if network.skip is not None or any(np.any(bias) for bias in network.biases):
        return "the network must have no biases and no skip"
    if set(network.activations[:-1]) != {"relu"} or network.activations[-1] != "identity":
        return "the network must have relu units and an identity output"
    return "" if all(np.any(weight) for weight in network.weights) else "a layer has no weights but zeros"


def norm_problem(data: LabelledData, input_norm: float) -> str:
    """Report of an |x| that exceeds the bound on inputs; empty if none does."""
    allowed = input_norm * (1 + 4 * np.finfo(np.float64).eps)  # rows normalized to it may be off by rounding
    return "" if data.largest_norm <= allowed else f"|x| = {data.largest_norm:.3g} exceeds {input_norm:.3g}"


def infinite(loss: float, margin: float, reason: str, proved: bool = True) -> RiskBound:
    """No bound, and why."""
    return RiskBound(np.inf, loss, np.inf, margin, proved=proved, reason=reason)


def checked(
    network: Network, x: ArrayLike, y: ArrayLike, margin: float, input_norm: float, delta: float
) -> LabelledData:
    """The samples, once all arguments are usable."""
    for name, value in (("margin", margin), ("input_norm", input_norm)):
        if not (np.isfinite(value) and value > 0):
            raise InvalidInput(
                f"{name} must be positive and finite. Got {value} instead. Choose it in advance."
            )
    if not 0 < delta < 1:
        raise InvalidInput(f"delta must be between 0 and 1. Got {delta} instead. For example 0.05.")
    return LabelledData.of(network, x, y)


def require_alike(network: Network, others: Sequence[Network]) -> None:
    """Raise unless all networks have the same widths."""
    shapes = [w.shape for w in network.weights]
    for other in others:
        if not isinstance(other, Network) or [w.shape for w in other.weights] != shapes:
            raise InvalidInput(
                f"networks must have the widths of {network!r}. Got {other!r} instead. Distances are taken "
                f"parameter by parameter."
            )


def layer_distances(a: Network, b: Network) -> list[float]:
    """|A_l - B_l|^2 with the biases, layer by layer."""
    pairs = zip(a.weights, b.weights, a.biases, b.biases, strict=True)
    return [float(np.sum((w - v) ** 2) + np.sum((p - q) ** 2)) for w, v, p, q in pairs]


def squared_distances(networks: Sequence[Network], others: Sequence[Network]) -> Array:
    """(k, l) |A_i - B_j|^2 over all parameters, by products of matrices: k l distances in one pass."""
    total = np.zeros((len(networks), len(others)))
    for parts in zip(*((*n.weights, *n.biases) for n in (*networks, *others)), strict=True):
        rows = np.array([part.reshape(-1) for part in parts]) - parts[0].reshape(-1)  # near one another
        squares = np.einsum("ij,ij->i", rows, rows)
        left, right = rows[: len(networks)], rows[len(networks) :]
        total += squares[: len(left), None] + squares[len(left) :] - 2 * left @ right.T
    return np.asarray(np.maximum(total, 0.0))


def integer_cost(j: int) -> float:
    """-log of a probability over the integers that falls like 1/j^2."""
    return float(np.log((2 * BASEL - 1) * (1 + abs(j)) ** 2))


def grid_point(value: float, low: float, high: float, points: int) -> float:
    """The middle of value's cell, of ``points`` equal cells in [low, high]."""
    width = (high - low) / points
    cell = 0 if width == 0 else min(points - 1, int((value - low) / width))
    return float(low + (cell + 0.5) * width)
