"""From directions to a network that explains the answers: fit, add what is missing, drop what does not act.

1. scales, biases and output layer with the directions fixed, then all parameters;
2. neurons that the residual Hessians or the residual answers show are added, while that helps;
3. neurons that an activation with g(-z) = g(z) + l z was free to mirror are turned round;
4. neurons without which the answers are explained as well (BIC) are left out. Step 2 adds such: as long as
   others are missing, a neuron that only fits what those leave helps, and once they are found it does not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.averaging import AveragedFit, fit_averaged
from unweave.methods.shared.coarse_answers.leaving_out import least_significance, pruned
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.methods.shared.profiles.profiles import Profiles
from unweave.methods.smooth_coarse.behind_links import Seen
from unweave.methods.smooth_coarse.residual_neurons import with_averaged_neurons, with_missing_neuron
from unweave.methods.smooth_coarse.scale_fit import fit_scales
from unweave.methods.smooth_coarse.start import first_network
from unweave.networks.activations import get_activation
from unweave.networks.mirrored_units import may_be_mirrored, unmirrored
from unweave.networks.parameters import NetworkParameters

ROWS_TO_LOOK = 4.0
"""Rows per parameter on which activations and widths are decided."""

_ROWS_FOR_SCALES = 6  # equations per unknown when only scales are fitted ...
_FEWEST_FOR_SCALES = 64  # ... and rows at least
_DAMPING_FAR, _DAMPING_TURNED = 1e-2, 1e-4
_MOST_PEELED = (3, 0.4)  # neurons that are added to a fit: so many, or this share of those found
_PEELING_GAINS = 0.97  # factor by which the misfit must fall for a further neuron to be kept
_ACTS = 2.0  # standard errors by which an outgoing weight must differ from zero
_LOSS_BY_TURNING = 1.05  # factor by which the misfit may rise when the skip is left out


class NeuronFits:
    """Fits of one hidden layer to the rows at hand."""

    def __init__(
        self, rows: AnsweredRows, rng: np.random.Generator, on_step: Callable[[int, float], None]
    ) -> None:
        self._rows, self._rng, self._on_step = rows, rng, on_step

    def from_directions(self, seen: Seen, directions: Array, name: str, profiles: Profiles) -> AveragedFit:
        """A network with activation ``name`` from ``directions`` (m, D) and their profiles."""
        rows, mirrors = self._rows, may_be_mirrored(get_activation(name))
        start = first_network(
            directions, profiles, name, seen.link, rows.points, rows.answers, rows.largest_sigma, mirrors
        )
        fit = self.averaged(self._scales_fitted(NetworkParameters.from_network(start)), _DAMPING_FAR)
        return self.settled(self.peeled(fit, seen))

    def averaged(self, model: NetworkParameters, damping: float) -> AveragedFit:
        """All parameters, to all rows at hand."""
        rows = self._rows
        return fit_averaged(
            model, rows.points, rows.answers, rows.sigma, damping=damping, on_step=self._on_step
        )

    def peeled(self, fit: AveragedFit, seen: Seen) -> AveragedFit:
        """With the neurons that the residuals show, as long as they help."""
        rows = self._rows
        for _ in range(max(_MOST_PEELED[0], int(_MOST_PEELED[1] * fit.model.width))):
            if fit.misfit <= rows.acceptable_misfit() or rows.leaves_most(fit.misfit):
                break
            rows.extend_to(ROWS_TO_LOOK * fit.model.size)
            shown = with_missing_neuron(fit.model, seen.taken, seen.weights, self._rng)
            starts = [] if shown is None else [shown]
            left = rows.left_behind(fit.model.values(rows.points), seen.link)
            starts += with_averaged_neurons(fit.model, rows.points, left, self._rng)
            larger = [self.averaged(self._scales_fitted(start), _DAMPING_FAR) for start in starts]
            best = min(larger, key=lambda each: each.misfit)
            if best.misfit > _PEELING_GAINS * fit.misfit:
                break
            fit = best
        return fit

    def settled(self, fit: AveragedFit) -> AveragedFit:
        """With neurons turned the right way round, and without those that are not needed.

        A skip that is there only for mirrored neurons takes over those that are nearly linear: they may be
        left out in its favour only if it can be left out itself afterwards.
        """
        turned = self._unmirrored(fit)
        if turned.model.skip is not None:
            smaller = pruned(turned, self._rows, skip_helps=True, on_step=self._on_step)
            if smaller is not turned:
                smaller = self._unmirrored(smaller)
                turned = smaller if smaller.model.skip is None else turned
        return pruned(turned, self._rows, on_step=self._on_step)

    def _scales_fitted(self, model: NetworkParameters) -> NetworkParameters:
        rows = self._rows
        unknowns = 2 * model.width + model.size - model.ends[0]
        count = min(len(rows), max(_FEWEST_FOR_SCALES, _ROWS_FOR_SCALES * unknowns // rows.n_outputs))
        return fit_scales(model, rows.points[:count], rows.answers[:count], 1 / rows.sigma[None, :])

    def _unmirrored(self, fit: AveragedFit) -> AveragedFit:
        """Neurons turned the right way round, the skip left out, if the answers agree."""
        if fit.standard_errors is None or fit.model.skip is None:
            return fit
        last = fit.standard_errors[fit.model.ends[-2] :].reshape(fit.model.shapes[-1])
        model = unmirrored(fit.model, float(np.median(last[fit.model.width : -1])))
        if model is None:
            return fit
        without = self.averaged(model, _DAMPING_TURNED)
        allowed = max(self._rows.acceptable_misfit(), _LOSS_BY_TURNING * fit.misfit)
        return without if without.misfit <= allowed else fit


def is_determined(fit: AveragedFit) -> bool:
    """Whether every neuron has an outgoing weight that differs from zero by more than its standard error."""
    return least_significance(fit) > _ACTS
