"""Scales, biases and output layer with the directions held fixed.

w_k = s_k u_k: 2m + (m + 1) K unknowns instead of m (D + 1) + (m + 1) K. A neuron whose scale and bias came
out wrong from few noisy Hessians is put right here, before all parameters are let go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.numerics.least_squares.formed_jacobian import FormedJacobian

_STEPS = 40


@dataclass(frozen=True, eq=False)
class ScaleFit:
    """Least squares on values in (s, b, last layer), for the model's own directions."""

    template: NetworkParameters
    directions: Array
    """(D, m) unit columns"""
    points: Array
    answers: Array
    factors: Array
    """(1, K) one over the noise of each output"""

    @property
    def n_equations(self) -> int:
        """n K."""
        return int(self.answers.size)

    def model(self, vector: Array) -> NetworkParameters:
        """The model with these unknowns."""
        m = self.directions.shape[1]
        full = np.concatenate(
            [np.vstack([self.directions * vector[:m], vector[m : 2 * m]]).reshape(-1), vector[2 * m :]]
        )
        return self.template.from_vector(full)

    def residual(self, vector: Array) -> Array:
        """Weighted data minus model."""
        difference = self.answers - self.model(vector).values(self.points)
        return np.asarray((difference * self.factors).reshape(-1))

    def linearise(self, vector: Array) -> FormedJacobian:
        """The chain rule through w_k = s_k u_k."""
        dense = ValueJacobian(self.model(vector), self.points, self.factors).dense()
        (rows, m), end = self.template.shapes[0], self.template.ends[0]
        first = dense[:, :end].reshape(len(dense), rows, m)
        scales = np.einsum("ndm,dm->nm", first[:, :-1], self.directions)
        return FormedJacobian(np.hstack([scales, first[:, -1], dense[:, end:]]))


def fit_scales(model: NetworkParameters, points: Array, answers: Array, factors: Array) -> NetworkParameters:
    """``model`` with scales, biases and last layer that fit ``answers`` (n, K) at ``points`` (n, D)."""
    scales = np.linalg.norm(model.weights[0], axis=0)
    directions = model.weights[0] / np.where(scales > 0, scales, 1.0)
    problem = ScaleFit(model, directions, points, answers, factors)
    start = np.concatenate([scales, model.biases[0], model.to_vector()[model.ends[0] :]])
    options = LevenbergMarquardtOptions(damping=1e-2, steps=_STEPS, stalls=3)
    with np.errstate(over="ignore", invalid="ignore"):  # a fit that runs away shows in those that follow
        try:
            return problem.model(levenberg_marquardt(problem, start, options).vector)
        except ValueError:  # so far out that there is no Jacobian any more
            return model
