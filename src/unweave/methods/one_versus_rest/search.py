r"""K logistic models whose answers are divided by their sum.

p_k = s(z_k) / sum_j s(z_j) with z = x W + b and s the sigmoid. As log s(z) = -softplus(-z), it is a network:
softplus units that read -z, each of which lowers the logit of its own class of a softmax. The logarithms of
the answers, centered over the classes, are those of s(z), centered; least squares on them has (D + 1) K
unknowns and n (K - 1) equations. Where all z_k are low the model is a softmax of z: its fit is the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.numerics.least_squares.formed_jacobian import FormedJacobian
from unweave.numerics.memory import require
from unweave.search import Candidate, Evidence, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, kw_only=True)
class OneVersusRestOptions:
    """How many rows are asked, and how far the fit goes."""

    equations_per_unknown: float = 1.5
    """Answers per parameter that are fitted."""
    spare_rows: int = 10
    """Rows beyond those, which keep the fit of few inputs well conditioned."""
    steps: int = 100
    """Steps of the fit, at most; a right start needs about ten."""

    largest_residual: float = 1e-8
    """Residual of the fit, relative to the logarithms, beyond which they are no such models."""

    def rows(self, inputs: int, classes: int) -> int:
        """Return how many rows are asked."""
        return (
            int(np.ceil(self.equations_per_unknown * (inputs + 1) * classes / (classes - 1)))
            + self.spare_rows
        )


class OneVersusRestReason(Reason):
    """Why no such model was found."""

    SATURATED = "some probabilities are exactly zero: their logarithms say nothing"
    NOT_EXPLAINED = "such models leave {residual:.2g} of the logarithms of the probabilities"


@dataclass(frozen=True, eq=False)
class _CenteredLogarithms:
    """Least squares on log p, centred over the classes."""

    design: Array
    """(n, D + 1) points and ones."""
    centered: Array
    """(n, K)"""

    @property
    def n_equations(self) -> int:
        """n K, of which n say nothing."""
        return int(self.centered.size)

    def residual(self, vector: Array) -> Array:
        """Data minus model."""
        logs = log_expit(self._z(vector))
        return np.asarray(self.centered - logs + logs.mean(axis=1, keepdims=True)).reshape(-1)

    def linearise(self, vector: Array) -> FormedJacobian:
        """d (log s_j - mean) / d (W, b)_dk = (delta_jk - 1/K) s(-z_k) x_d."""
        classes = self.centered.shape[1]
        require(self.centered.size * vector.size, "the Jacobian of models of one class against the rest")
        slopes = (np.eye(classes) - 1 / classes) * expit(-self._z(vector))[:, None, :]
        products = slopes[:, :, None, :] * self.design[:, None, :, None]
        return FormedJacobian(products.reshape(self.centered.size, -1))

    def _z(self, vector: Array) -> Array:
        return self.design @ vector.reshape(self.design.shape[1], -1)


class OneVersusRestSearch(Search):
    """Least squares from the softmax that fits best."""

    _found = Candidate()

    def run(self) -> None:
        """Ask the rows and fit."""
        findings, region, options = self.findings, self.findings.region, self.context.options
        inputs, classes = region.n_inputs, findings.n_outputs
        with self.journal.stage("one versus rest") as stage:
            points = region.sample(options.rows(inputs, classes), self.rng)
            answers = self.context.view(points)
            if not (answers > 0).all():
                raise GaveUp(OneVersusRestReason.SATURATED)
            logs = np.log(answers)
            design = np.concatenate([points, np.ones((len(points), 1))], axis=1)
            problem = _CenteredLogarithms(design, logs - logs.mean(axis=1, keepdims=True))
            start = np.linalg.lstsq(design, problem.centered, rcond=None)[0]
            size = float(np.sqrt(np.mean(problem.centered**2)))
            fit = levenberg_marquardt(
                problem,
                start.reshape(-1),
                LevenbergMarquardtOptions(damping=1e-3, rounding=_EPS * size, steps=options.steps),
                self.on_step,
            )
            stage.figures.update(residual=fit.rms, steps=len(fit.history) - 1)
        if not fit.rms < options.largest_residual * size:  # a judge need not be troubled
            raise GaveUp(OneVersusRestReason.NOT_EXPLAINED, residual=fit.rms / size if size else np.inf)
        weights = fit.vector.reshape(inputs + 1, classes)
        network = Network(
            [-weights[:-1], -np.eye(classes)],
            [-weights[-1], np.zeros(classes)],
            ["softplus", "softmax"],
        )
        residual = np.sqrt(np.mean((answers - network(points)) ** 2, axis=0))
        floor = float(np.max(findings.noise.sigma_per_output / findings.spread))
        free = max(len(points) * (classes - 1) - weights.size, 1)
        bar = None
        if fit.covariance_diagonal is not None:
            bar = max(fit.rms, _EPS * size) * float(np.sqrt(fit.covariance_diagonal.max()))
        evidence = Evidence(
            fit_history=(float(np.max(residual / findings.spread)),),
            fit_floor=floor,
            prediction_floor=floor * float(np.sqrt(weights.size / free)),
            parameter_error_bar=bar,
        )
        note = f"the target is {classes} logistic models, one per class, divided by their sum"
        self._found = Candidate(in_own_inputs(network, region), evidence, (note,), tentative=True)

    def candidate(self) -> Candidate:
        """Return the model, once it is fitted."""
        return self._found
