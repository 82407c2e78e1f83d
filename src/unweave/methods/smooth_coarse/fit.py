"""From directions to a network that explains the answers: fit, add what is missing, drop what does not act.

1. scales, biases and output layer with the directions fixed, w_k = s_k u_k: 2m + (m + 1) K unknowns instead
   of m (D + 1) + (m + 1) K. That puts right a unit whose scale and bias came out wrong from few noisy
   Hessians. Then all parameters;
2. units that the residual Hessians or the residual answers show are added, while that helps;
3. units that an activation with g(-z) = g(z) + l z was free to mirror are turned round;
4. units without which the answers are explained as well (BIC) are left out. Step 2 adds such: as long as
   others are missing, a unit that only fits what those leave helps, and once they are found it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.methods.shared.coarse_answers.averaged_fit import (
    AveragedFit,
    fit_to_rows,
    least_significance,
    prune,
)
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.methods.shared.profiles.profiles import Profiles
from unweave.methods.smooth_coarse.hessians_behind_links import Seen
from unweave.methods.smooth_coarse.missing_units import with_averaged_units, with_missing_unit
from unweave.methods.smooth_coarse.start import first_network
from unweave.networks.activations import get_activation
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.mirrored_units import may_be_mirrored, unmirrored
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import out_of_time
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.numerics.least_squares.formed_jacobian import FormedJacobian
from unweave.numerics.least_squares.problem import Linearisation
from unweave.numerics.memory import allowed_bytes
from unweave.numerics.variable_projection.prune import OnStep

_MOST_FORMED = (
    64_000_000  # entries of the Jacobian of all parameters (512 MB); beyond, products take its place
)
_SCALES_SCHEDULE = LevenbergMarquardtOptions(damping=1e-2, steps=40, stalls=3)  # from a start that is far


@dataclass(frozen=True, kw_only=True)
class UnitFitOptions:
    """How units are fitted to answers, added and left out."""

    rows_per_parameter: float = 4.0
    """Rows per parameter on which activations and widths are decided. Precise answers count as many times
    as there are outputs, ..."""
    rows_per_weight: float = 8.0
    """... but with as many rows at least per weight of one output, which no other output shows."""
    scale_rows: int = 6
    """Equations per unknown when only scales, biases and output layer are fitted."""
    fewest_scale_rows: int = 64
    """Rows of such a fit at least."""
    far_damping: float = 1e-2
    """Damping of a fit of all parameters after that."""
    turned_damping: float = 1e-4
    """Damping of a fit after mirrored units were turned round."""
    most_added: int = 3
    """Units that may be added to a fit ..."""
    most_added_share: float = 0.4
    """... or, if more, this share of those found."""
    gain: float = 0.97
    """Ratio of misfits up to which a further unit is kept."""
    acting_errors: float = 2.0
    """Standard errors by which an outgoing weight of every unit differs from zero in a determined fit."""
    turning_loss: float = 1.05
    """Ratio of misfits up to which the skip may be left out with the units turned round."""


class UnitFits:
    """Fits of one hidden layer to the rows at hand."""

    def __init__(
        self,
        rows: AnsweredRows,
        rng: np.random.Generator,
        on_step: OnStep,
        options: UnitFitOptions | None = None,
    ) -> None:
        self._rows, self._rng, self._on_step = rows, rng, on_step
        self._options = options or UnitFitOptions()

    def from_directions(
        self, seen: Seen, directions: Array, name: str, profiles: Profiles, most_units: float = np.inf
    ) -> AveragedFit:
        """Fit a network with activation ``name`` from ``directions`` (m, D) and their profiles.

        Units are added up to ``most_units``.
        """
        rows, mirrors = self._rows, may_be_mirrored(get_activation(name))
        start = first_network(
            directions, profiles, name, seen.link, rows.points, rows.answers, rows.largest_sigma, mirrors
        )
        fit = self.averaged(
            self._scales_fitted(NetworkParameters.from_network(start)), self._options.far_damping
        )
        return self.settled(self.peeled(fit, seen, most_units))

    def rows_for(self, width: int, parameters: int) -> float:
        """Return how many rows decide on a network of this ``width`` and number of ``parameters``."""
        wanted = self._options.rows_per_parameter * parameters
        if self._rows.noise.kind in ("rounded", "noisy"):
            return wanted
        return min(wanted, max(wanted / self._rows.n_outputs, self._options.rows_per_weight * (width + 1)))

    def averaged(self, model: NetworkParameters, damping: float) -> AveragedFit:
        """Fit all parameters to all rows at hand."""
        return fit_to_rows(model, self._rows, damping=damping, on_step=self._on_step)

    def peeled(self, fit: AveragedFit, seen: Seen, most_units: float = np.inf) -> AveragedFit:
        """Add the units that the residuals show, as long as they help, up to ``most_units``."""
        rows, options = self._rows, self._options
        for _ in range(max(options.most_added, int(options.most_added_share * fit.model.width))):
            done = fit.misfit <= rows.acceptable_misfit() or rows.leaves_most(fit.misfit)
            if done or fit.model.width >= most_units or out_of_time():
                break
            rows.extend_to(self.rows_for(fit.model.width, fit.model.size))
            shown = with_missing_unit(fit.model, seen.taken, seen.weights, self._rng)
            starts = [] if shown is None else [shown]
            left = rows.left_behind(fit.model.values(rows.points), seen.link)
            starts += with_averaged_units(fit.model, rows.points, left, self._rng)
            larger = [self.averaged(self._scales_fitted(start), options.far_damping) for start in starts]
            best = min(larger, key=lambda each: each.misfit)
            if best.misfit > options.gain * fit.misfit:
                break
            fit = best
        return fit

    def settled(self, fit: AveragedFit) -> AveragedFit:
        """Turn units the right way round, and leave out those that are not needed.

        A skip that is there only for mirrored units takes over those that are nearly linear: they may be
        left out in its favour only if it can be left out itself afterwards.
        """
        turned = self._unmirrored(fit)
        if turned.model.skip is not None:
            smaller = prune(turned, self._rows, skip_helps=True, on_step=self._on_step)
            if smaller is not turned:
                smaller = self._unmirrored(smaller)
                turned = smaller if smaller.model.skip is None else turned
        return prune(turned, self._rows, on_step=self._on_step)

    def is_determined(self, fit: AveragedFit) -> bool:
        """Return whether every unit has an outgoing weight that differs from zero by more than its error."""
        return least_significance(fit) > self._options.acting_errors

    def _scales_fitted(self, model: NetworkParameters) -> NetworkParameters:
        rows, options = self._rows, self._options
        unknowns = 2 * model.width + model.size - model.ends[0]
        count = min(
            len(rows), max(options.fewest_scale_rows, options.scale_rows * unknowns // rows.n_outputs)
        )
        return fit_scales(model, rows.points[:count], rows.answers[:count], 1 / rows.sigma[None, :])

    def _unmirrored(self, fit: AveragedFit) -> AveragedFit:
        """Turn units the right way round and leave the skip out, if the answers agree."""
        if fit.standard_errors is None or fit.model.skip is None:
            return fit
        last = fit.standard_errors[fit.model.ends[-2] :].reshape(fit.model.shapes[-1])
        model = unmirrored(fit.model, float(np.median(last[fit.model.width : -1])))
        if model is None:
            return fit
        without = self.averaged(model, self._options.turned_damping)
        allowed = max(self._rows.acceptable_misfit(), self._options.turning_loss * fit.misfit)
        return without if without.misfit <= allowed else fit


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
        """Return the model with these unknowns."""
        m = self.directions.shape[1]
        full = np.concatenate(
            [np.vstack([self.directions * vector[:m], vector[m : 2 * m]]).reshape(-1), vector[2 * m :]]
        )
        return self.template.from_vector(full)

    def residual(self, vector: Array) -> Array:
        """Return weighted data minus model."""
        difference = self.answers - self.model(vector).values(self.points)
        return np.asarray((difference * self.factors).reshape(-1))

    def linearise(self, vector: Array) -> Linearisation:
        """Apply the chain rule through w_k = s_k u_k."""
        jacobian = ScaleJacobian(ValueJacobian(self.model(vector), self.points, self.factors), self)
        numbers = self.n_equations * self.template.size
        if numbers > _MOST_FORMED or 16 * numbers > allowed_bytes():
            return jacobian
        return FormedJacobian(jacobian.dense())


class ScaleJacobian(Linearisation):
    """The Jacobian of a `ScaleFit` as products with that of all parameters, which need not be formed."""

    def __init__(self, inner: Linearisation, fit: ScaleFit) -> None:
        self._inner, self._fit = inner, fit

    def apply(self, vector: RealArray) -> RealArray:
        """J v."""
        directions, m = self._fit.directions.astype(vector.dtype, copy=False), self._fit.directions.shape[1]
        first = np.vstack([directions * vector[:m], vector[m : 2 * m]]).reshape(-1)
        return self._inner.apply(np.concatenate([first, vector[2 * m :]]))

    def adjoint(self, rows: RealArray) -> RealArray:
        """J^T r."""
        full, template = self._inner.adjoint(rows), self._fit.template
        first, end = full[: template.ends[0]].reshape(template.shapes[0]), template.ends[0]
        scales = np.einsum("dm,dm->m", first[:-1], self._fit.directions.astype(full.dtype, copy=False))
        return np.concatenate([scales, first[-1], full[end:]])

    def dense(self) -> Array:
        """J, by way of that of all parameters."""
        dense = self._inner.dense()
        (rows, m), end = self._fit.template.shapes[0], self._fit.template.ends[0]
        first = dense[:, :end].reshape(len(dense), rows, m)
        scales = np.einsum("ndm,dm->nm", first[:, :-1], self._fit.directions)
        return np.hstack([scales, first[:, -1], dense[:, end:]])

    def in_single_precision(self) -> ScaleJacobian:
        """The same with products in float32."""
        return ScaleJacobian(self._inner.in_single_precision(), self._fit)

    def precondition(self, vector: RealArray) -> RealArray:
        """The last layer as among all parameters, where correlated units count; the others one by one."""
        m, end = self._fit.directions.shape[1], self._fit.template.ends[0]
        last = np.zeros(self._fit.template.size, dtype=vector.dtype)
        last[end:] = vector[2 * m :]
        first = vector[: 2 * m] * self._diagonal[: 2 * m].astype(vector.dtype)
        return np.concatenate([first, self._inner.precondition(last)[end:]])

    def preconditioner_diagonal(self) -> Array:
        """Of the parameters themselves; a scale moves its unit as far as all of its weights together."""
        return self._diagonal

    @cached_property
    def _diagonal(self) -> Array:
        full, template = self._inner.preconditioner_diagonal(), self._fit.template
        first, end = full[: template.ends[0]].reshape(template.shapes[0]), template.ends[0]
        scales = 1 / (self._fit.directions**2 / first[:-1]).sum(axis=0)
        return np.concatenate([scales, first[-1], full[end:]])


def fit_scales(model: NetworkParameters, points: Array, answers: Array, factors: Array) -> NetworkParameters:
    """Fit scales, biases and last layer of ``model`` to ``answers`` (n, K) at ``points`` (n, D)."""
    scales = np.linalg.norm(model.weights[0], axis=0)
    directions = model.weights[0] / np.where(scales > 0, scales, 1.0)
    problem = ScaleFit(model, directions, points, answers, factors)
    start = np.concatenate([scales, model.biases[0], model.to_vector()[model.ends[0] :]])
    with np.errstate(over="ignore", invalid="ignore"):  # a fit that runs away shows in those that follow
        try:
            return problem.model(levenberg_marquardt(problem, start, _SCALES_SCHEDULE).vector)
        except ValueError:  # so far out that there is no Jacobian any more
            return model
