"""Samples with whitened inputs and standardized answers, and the way back to their own units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.whitening import Whitening


@dataclass(frozen=True, eq=False)
class StandardizedSamples:
    """Inputs with covariance one in the directions in which they vary, answers with mean 0 and spread 1."""

    whitening: Whitening
    inputs: Array
    """(n, r)"""
    answers: Array
    """(n, K)"""
    center: Array
    """(K,) mean of the answers given"""
    spread: Array
    """(K,) their standard deviation, 1 where that is zero"""

    @classmethod
    def of(cls, x: Array, y: Array) -> StandardizedSamples:
        """Standardize samples x (n, d), y (n, K)."""
        whitening = Whitening.of(x)
        center, spread = y.mean(axis=0), y.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        return cls(whitening, whitening(x), (y - center) / spread, center, spread)

    def residual(self, model: NetworkParameters) -> float:
        """Return the root mean square misfit of the worst output, over the answers' spread."""
        misfit = model.values(self.inputs) - self.answers
        return float(np.sqrt(np.mean(misfit**2, axis=0)).max())

    @property
    def affine_residual(self) -> float:
        """Root mean square of what an affine map leaves of the worst output."""
        columns = np.column_stack([self.inputs, np.ones(len(self.inputs))])
        left = self.answers - columns @ np.linalg.lstsq(columns, self.answers, rcond=None)[0]
        return float(np.sqrt(np.mean(left**2, axis=0)).max())

    def network(self, model: NetworkParameters) -> Network:
        """Return the network of ``model``, which reads and answers standardized, for the samples given."""
        weights, biases, skip = list(model.weights), list(model.biases), model.skip
        weights[0] = self.whitening.matrix @ weights[0]
        biases[0] = biases[0] - self.whitening.mean @ weights[0]
        weights[-1] = weights[-1] * self.spread
        biases[-1] = biases[-1] * self.spread + self.center
        if skip is not None:
            skip, shift = self.whitening.affine_back(skip * self.spread, np.zeros(len(self.spread)))
            biases[-1] = biases[-1] + shift
        return replace(model, weights=tuple(weights), biases=tuple(biases), skip=skip).to_network()

    def model(self, network: Network) -> NetworkParameters:
        """Return ``network``, which has a hidden layer, reading and answering standardized; see `network`."""
        model, whitening = NetworkParameters.from_network(network), self.whitening
        back = np.linalg.pinv(whitening.matrix)  # x - mean = x~ back, as far as inputs vary
        weights, biases, skip = list(model.weights), list(model.biases), model.skip
        biases[0] = biases[0] + whitening.mean @ weights[0]
        weights[0] = back @ weights[0]
        offset = biases[-1] - self.center
        if skip is not None:
            offset, skip = offset + whitening.mean @ skip, back @ skip / self.spread
        weights[-1], biases[-1] = weights[-1] / self.spread, offset / self.spread
        return replace(model, weights=tuple(weights), biases=tuple(biases), skip=skip)
