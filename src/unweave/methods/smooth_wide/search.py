"""Search for one smooth hidden layer with more units than derivatives show.

In d inputs Hessians determine at most d(d-1)/2 units. The far field shows any number of them one by one
(`far_units`). What it does not show, and all units where it is out of reach, is grown under a falling ridge
(`networks.ridge_continuation`) until the fit is exact. Rows are drawn where the target bends, as units are
added.

Cost: 4 d + 100 rows per unit in the far field, and 3 rows per parameter of the largest fit near by.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.errors import NonFiniteAnswers
from unweave.methods.shared.profiles.profiles import SMOOTH_ACTIVATIONS
from unweave.methods.shared.value_search import NEGLIGIBLE_SKIP_SHARE
from unweave.methods.smooth_wide.far_units import FarUnitOptions, far_units
from unweave.methods.smooth_wide.growth import Grown, Growth, GrowthOptions
from unweave.networks.activations import get_activation
from unweave.networks.mirrored_units import mirror_back
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult, fit_values
from unweave.search import Candidate, Context, Evidence, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs

_ALONG = np.linspace(-1.5, 1.5, 9)  # places on a line, in units of the scale
SATURATING = ("tanh", "sigmoid", "erf")
STRAIGHT = ("softplus", "gelu", "swish")


class WideReason(Reason):
    """Why no network of this class was found."""

    NOT_EXACT = (
        "{units} {activation} units leave a residual of {residual:.2g}, and more of them gain little: "
        "still more units, another activation, or more than one hidden layer"
    )


@dataclass(frozen=True, kw_only=True)
class WideOptions:
    """How many rows are asked where, and how units are grown on them."""

    growth: GrowthOptions = field(default_factory=GrowthOptions)
    far: FarUnitOptions = field(default_factory=FarUnitOptions)
    useful_start: float = 0.1
    """Misfit of units from the far field with which growth begins from them."""
    rows_per_parameter: float = 3.0
    """Rows of a fit, per parameter and divided by the outputs."""
    most_shown: int = 60
    """Units for which rows are asked at the beginning, at most."""
    exact_residual: float = 1e-13
    """Relative misfit of values that counts as exact."""
    scales: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 8.0, 16.0)
    """Sizes of the region, in units of its scale, of which the smallest is taken where the target bends."""
    bent: float = 0.7
    """Misfit of parabolas, relative to the largest at any scale, with which it does."""
    lines: int = 12
    """Lines on which bending is measured, at every scale."""
    far_distance: float = 1e4
    """Distance in normalised inputs at which units of any usual steepness are saturated, or straight."""
    far_points: int = 12
    """Rays along which answers are compared at that distance."""
    same_far: float = 1e-3
    """Relative change along a ray up to which a far answer counts as constant, or as straight."""

    def rows_for(self, units: int, inputs: int, outputs: int) -> int:
        """Return the number of rows of a fit."""
        return int(self.rows_per_parameter * units * (inputs + 1 + outputs) / outputs) + 20


class SmoothWideSearch(Search):
    """Grows units on random rows."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._options: WideOptions = context.options
        inputs = self.findings.region.n_inputs
        self._points = np.empty((0, inputs))
        self._answers = np.empty((0, self.findings.n_outputs))
        self._shape = inputs, self.findings.n_outputs
        self._scale = 1.0
        self._found = Candidate()

    def candidate(self) -> Candidate:
        """Return the exact network, if there is one."""
        return self._found

    def run(self) -> None:
        """Choose the scale of the rows, grow units, and undo mirrored ones."""
        with self.journal.stage("scale of rows") as stage:
            self._scale = self._chosen_scale()
            names = self._possible_activations()
            stage.figures.update(scale=self._scale, activations=len(names))
        self._ask(self._fewest_rows)
        self._center, self._spread = self._answers.mean(axis=0), self._answers.std(axis=0)
        self._spread = np.where(self._spread > 0, self._spread, 1.0)
        floor = max(self._options.exact_residual, 10 * self.findings.noise.relative)
        growth = Growth(
            self._rows,
            [get_activation(n) for n in names],
            floor,
            self.rng,
            self._options.growth,
            self.on_step,
        )
        start = self._far_start(names)
        with self.journal.stage("growing units") as stage:
            grown = growth.run(start)
            if grown is not None:
                stage.figures.update(activation=grown.activation, units=grown.units, residual=grown.residual)
        if grown is None:
            return
        if not grown.exact or grown.fitted is None:
            raise GaveUp(
                WideReason.NOT_EXACT, units=grown.units, activation=grown.activation, residual=grown.residual
            )
        self._found = self._told(grown, grown.fitted)

    def _far_start(self, names: tuple[str, ...]) -> NetworkParameters | None:
        """Return the units that the far field shows, if it shows any."""
        family = [get_activation(name) for name in names if name in SATURATING + STRAIGHT]
        if self.findings.region.has_box or not family or len(family) < len(names):
            return None
        with self.journal.stage("far units") as stage:
            view, (inputs, answers) = self.context.view, self._rows(0)
            try:
                start = far_units(view, inputs, answers, self._scale, family, self.rng, self._options.far)
            except NonFiniteAnswers:
                return None
            if start is not None:
                misfit = float(np.sqrt(np.mean((start.values(inputs) - answers) ** 2)))
                stage.figures.update(units=start.width, activation=start.activation.name, residual=misfit)
                start = start if misfit < self._options.useful_start else None
        return start

    def _told(self, grown: Grown, fitted: ValueFitResult) -> Candidate:
        model = mirror_back(fitted.model)
        if model.skip is not None and np.abs(model.skip).max() <= NEGLIGIBLE_SKIP_SHARE:
            with self.journal.stage("last fit"):
                inputs, answers = self._rows(grown.units)
                fitted = fit_values(replace(model, skip=None), inputs, answers, on_step=self.on_step)
                model = fitted.model
        ambiguity = None
        if fitted.error_bar is None:
            ambiguity = "the values do not determine all parameters: other units fit as well"
        evidence = Evidence(
            width=grown.units,
            found=grown.units,
            fit_history=fitted.history,
            fit_floor=fitted.floor,
            prediction_floor=fitted.prediction_floor,
            condition=fitted.condition,
            parameter_error_bar=fitted.error_bar,
        )
        network = in_own_inputs(self._in_region(model), self.findings.region)
        return Candidate(network, evidence, ambiguity=ambiguity)

    def _in_region(self, model: NetworkParameters) -> Network:
        """Return the network in normalised inputs and the target's own answers."""
        skip = None if model.skip is None else model.skip / self._scale * self._spread
        return replace(
            model,
            weights=(model.weights[0] / self._scale, model.weights[1] * self._spread),
            biases=(model.biases[0], model.biases[1] * self._spread + self._center),
            skip=skip,
        ).to_network()

    @property
    def _fewest_rows(self) -> int:
        """Enough for a few units more than Hessians show: on fewer rows any units fit."""
        inputs, outputs = self._shape
        shown = max(inputs * (inputs - 1) // 2, self._options.growth.first_units)
        return self._options.rows_for(min(shown, self._options.most_shown), inputs, outputs)

    def _rows(self, units: int) -> tuple[Array, Array]:
        """Return enough rows for ``units``: inputs of unit variance, standardized answers."""
        count = max(self._options.rows_for(units, *self._shape), self._fewest_rows)
        self._ask(count - len(self._points))
        answers = (self._answers[:count] - self._center) / self._spread
        return self._points[:count] / self._scale, answers

    def _ask(self, count: int) -> None:
        if count > 0:
            points = self._scale * self.findings.region.sample(count, self.rng)
            self._answers = np.concatenate([self._answers, self.context.view(points)])
            self._points = np.concatenate([self._points, points])

    def _chosen_scale(self) -> float:
        """Return how far out rows are drawn: where the target bends nearly as much as it does far out.

        Nearer, units are all but parabolas, which are hard to tell apart; farther, they are steps or kinks.
        """
        if self.findings.region.has_box:
            return 1.0
        shares: list[float] = []
        lines = self.rng.standard_normal((2, self._options.lines, 1, self._points.shape[1]))
        points = lines[0] + _ALONG[:, None] * lines[1]
        for scale in self._options.scales:
            try:
                answers = self.context.view(scale * points.reshape(-1, points.shape[2]))
            except NonFiniteAnswers:
                break
            shares.append(_bent_share(answers.reshape(self._options.lines, len(_ALONG), -1)))
        enough = self._options.bent * max(shares, default=0.0)
        return next(
            (s for s, share in zip(self._options.scales, shares, strict=False) if share >= enough), 1.0
        )

    def _possible_activations(self) -> tuple[str, ...]:
        """Return the activations to try: far out, units are constant along rays, or straight."""
        names = self.request.activations_among(SMOOTH_ACTIVATIONS)
        if len(names) == 1 or self.findings.region.has_box:
            return names
        points = self._options.far_distance * self.rng.standard_normal(
            (self._options.far_points, self._points.shape[1])
        )
        try:
            one, two, three = np.split(self.context.view(np.concatenate([points, 2 * points, 3 * points])), 3)
        except NonFiniteAnswers:
            return names
        size = np.abs(one).max()
        change, bend = np.abs(two - one).max(axis=1), np.abs(three - 2 * two + one).max(axis=1)
        if np.median(change) <= self._options.same_far * size:
            return tuple(name for name in names if name in SATURATING)
        if np.median(bend) <= self._options.same_far * np.median(change):
            return tuple(name for name in names if name in STRAIGHT)
        return tuple(name for name in names if name not in SATURATING + STRAIGHT)


def _bent_share(answers: Array) -> float:
    """Return the misfit of parabolas to answers on lines (l, t, K), relative to their spread, at most."""
    parabola = np.linalg.qr(np.vander(_ALONG, 3))[0]
    misfit = answers - np.einsum("tq,sq,lsk->ltk", parabola, parabola, answers)
    spread = answers - answers.mean(axis=(0, 1))
    sizes = np.sqrt(np.sum(misfit**2, axis=(0, 1)) / np.maximum(np.sum(spread**2, axis=(0, 1)), 1e-300))
    return float(sizes.max())
