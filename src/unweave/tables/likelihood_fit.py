r"""Maximum likelihood of classes as least squares whose weights follow the point.

A network answers probabilities p(x; theta) through a sigmoid or softmax, and -log likelihood is to be least.
With v(p) = p(1 - p) for a sigmoid and v(p) = p for each class of a softmax,

    r = (y - p) / sqrt(v(p)),      J = (d p / d theta) / sqrt(v(p))

give J^T r = minus its gradient, and J^T J is its generalised Gauss-Newton matrix. So a step of Levenberg-
Marquardt is one of reweighted least squares; whether it helped is read off the deviance, not off |r|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.value_fit import ValueFit

_LEAST_PROBABILITY = 1e-10  # below, squares of the weights would lose the other rows in float32


@dataclass(frozen=True, eq=False)
class LikelihoodFit(ValueFit):
    """Answers (n, K) are the classes' indicators; ``weights`` (n,) the roots of the rows' weights."""

    def residual(self, vector: Array) -> Array:
        """Pearson residuals (n K,)."""
        probabilities = self.template.from_vector(vector).values(self.points)
        return np.asarray(((self.answers - probabilities) * self._spread(probabilities)).reshape(-1))

    def linearise(self, vector: Array) -> ValueJacobian:
        """The Jacobian of the probabilities in units of their standard deviations."""
        model = self.template.from_vector(vector)
        return ValueJacobian(model, self.points, self._spread(model.values(self.points)))

    def size_squared(self, vector: Array) -> float:
        """Deviance: twice minus the log likelihood, weighted."""
        probabilities = self.template.from_vector(vector).values(self.points)
        losses = log_losses(self.answers, probabilities)
        return 2 * float(np.sum(losses if self.weights is None else losses * self.weights**2))

    def _spread(self, probabilities: Array) -> Array:
        """One over the standard deviation of an indicator, times the rows' weights, (n, K)."""
        safe = np.maximum(probabilities, _LEAST_PROBABILITY)
        if not self.template.is_softmax:
            safe = safe * np.maximum(1 - probabilities, _LEAST_PROBABILITY)
        factors = 1 / np.sqrt(safe)
        return np.asarray(factors if self.weights is None else factors * self.weights[:, None])


def log_losses(indicators: Array, probabilities: Array) -> Array:
    """Return minus the log probability (n,) of what is indicated, (n, K); one column: yes or no."""
    tiny = float(np.finfo(np.float64).tiny)
    logs = -np.log(np.maximum(probabilities, tiny))
    if indicators.shape[1] > 1:
        return np.asarray((indicators * logs).sum(axis=1))
    against = -np.log(np.maximum(1 - probabilities, tiny))
    return np.asarray((indicators * logs + (1 - indicators) * against).sum(axis=1))
