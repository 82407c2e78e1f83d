"""Labelled data of a classifier: margins, margin loss, and what the bounds on risk all start from.

The margin of (x, y) is f(x)[y] - max_{i != y} f(x)[i]; the margin loss L_gamma is the fraction of samples
whose margin is at most gamma. All bounds here are of the form ([mathematics] Thm. 6.1.2)

    E L_0(f_w~) <= L^_{gamma/2}(f_w) + sqrt( (KL(posterior | prior) + log(3 m / delta)) / (m - 1) )

with probability 1 - delta over the m samples: w~ is w with Gaussian noise, conditioned on moving no answer by
more than gamma/4, which must have probability 1/2 at least. It bounds the risk of that *noisy* network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.networks.network import Network


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
