"""One hidden layer in the coordinates of a frame: directions, units, then all parameters at once.

Gauss-Newton at the end stands on the values and gradients already paid for and a few more. What turns out
not to be there, a skip or a unit, is taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.derivatives.sobolev_fit import SobolevFit
from unweave.derivatives.stencils import Jets
from unweave.derivatives.truncation import difference_gradients
from unweave.methods.smooth.evidence import FoundSoFar, SmoothReason
from unweave.methods.smooth.frame_directions import DirectionFinder, DirectionOptions, Directions
from unweave.methods.smooth.frame_target import FrameTarget
from unweave.methods.smooth.frame_units import ProfileSamples, UnitFitter, UnitOptions
from unweave.methods.smooth.span_members import MemberFinder
from unweave.methods.smooth.value_polish import polish_on_values
from unweave.networks.mirrored_units import mirror_back
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult
from unweave.numerics.least_squares import Fit, LevenbergMarquardtOptions, levenberg_marquardt
from unweave.search import GaveUp


@dataclass(frozen=True, kw_only=True)
class FinalFitOptions:
    """What the final fit stands on, and what it takes out."""

    equations_per_parameter: float = 1.6
    """Equations per parameter at least."""
    sites_per_unit: float = 1.5
    """Sites per unit at least, however many equations several outputs give per site."""
    rows_per_unit: int = 12
    """Values per unit at least, for units that are fitted to values alone."""
    sites_at_units: float = 0.25
    """Share of the units, those seen least, that get a site where they act."""
    skip_seen: float = 1e-3
    """Skip matrix relative to the gradients at which it is fitted."""
    negligible_skip: float = 1e-7
    """The same after the fit, below which it is taken out again."""
    negligible_part: float = 300.0
    """Contribution of a unit or skip, in multiples of the floor, below which it is taken out."""


@dataclass(frozen=True, kw_only=True)
class FrameOptions:
    """How one hidden layer is found from Hessians and gradients."""

    rival_ratio: float = 10.0
    """Also try the second best activation if its profiles fit within this factor of the best one's."""
    unexplained: float = 0.15
    """Misfit of all activations from which Hessians that are uneven are not fitted."""
    directions: DirectionOptions = field(default_factory=DirectionOptions)
    units: UnitOptions = field(default_factory=UnitOptions)
    final_fit: FinalFitOptions = field(default_factory=FinalFitOptions)


class FrameSearch:
    """Finds the network that ``target`` is in its frame, and writes it to ``found``.

    ``in_all_inputs`` are the gradients that located the frame, ``noise`` is the answers' relative noise.
    """

    def __init__(
        self,
        target: FrameTarget,
        in_all_inputs: Jets,
        noise: float,
        width: int | None,
        activations: tuple[str, ...],
        found: FoundSoFar,
        finder: MemberFinder,
        options: FrameOptions,
    ) -> None:
        self._target, self._in_all_inputs, self._noise = target, in_all_inputs, noise
        self._found, self._journal, self._options = found, finder.journal, options
        self._jets = None if target.reduced else in_all_inputs
        """Gradients in the frame, on which the final fit stands besides the Hessians' own."""
        self._directions = DirectionFinder(target, width, found, finder, options.directions)
        self._units = UnitFitter(target, width, activations, self._directions, found, finder, options.units)
        self.profiles: ProfileSamples | None = None
        """Samples of the units' own profiles, once there are directions."""
        self.directions: Array | None = None
        """Directions (m, d) of the units in the frame, as found last."""

    @property
    def largest_hessian(self) -> float:
        """Norm of the largest Hessian over that of the median one; 0 without Hessians."""
        return self._directions.largest_hessian

    def run(self) -> None:
        """Find the network."""
        found, pencil = self._found, self._directions.by_pencils()
        if pencil is not None:
            self._finish(pencil)
        if pencil is None or not (found.at_floor and found.is_determined):
            try:
                span = self._directions.by_span()
            except GaveUp:
                if pencil is not None and found.at_floor:
                    return
                raise
            self._finish(span)

    def _finish(self, directions: Directions) -> None:
        """Fit a network along directions; try the next best activation if the best does not fit."""
        found, previous = self._found, self._found.snapshot()
        self.directions = directions.rows
        self.profiles, ranking = self._units.rank_activations(directions)
        misfit = found.evidence.activation_residuals[ranking[0]]
        kinks_expected = self._target.between_kinks or self._target.source.exact
        if misfit > self._options.unexplained and not kinks_expected:
            largest = self._directions.largest_hessian
            if largest > self._options.directions.largest_between_kinks:
                raise GaveUp(SmoothReason.UNEVEN_HESSIANS, largest=largest, misfit=misfit)
        for rank, name in enumerate(ranking[:2]):
            if rank and (found.at_floor or not self._is_rival(ranking[0], name)):
                break
            best = found.snapshot() if rank else None
            self._units.fit(directions, self.profiles, name)
            self._polish()
            if best is not None and best.residual <= found.residual:
                found.restore(best)
        better = found.at_floor and found.is_determined
        if previous.model is not None and not better and previous.residual <= found.residual:
            found.restore(previous)

    def _is_rival(self, best: str, second: str) -> bool:
        residuals = self._found.evidence.activation_residuals
        return residuals[second] < self._options.rival_ratio * residuals[best]

    def _polish(self) -> None:
        """Fit all parameters to values and gradients."""
        options = self._options.final_fit
        model, hessian_sites = self._found.model, self._directions.jets
        assert model is not None
        if model.activation.kinks:
            self._polish_on_values(model)
            return
        with self._journal.stage("polish") as stage:
            per_site = (self._target.dimension + 1) * self._target.outputs
            enough = max(
                options.equations_per_parameter * model.size / per_site, options.sites_per_unit * model.width
            )
            needed = int(np.ceil(enough)) - len(hessian_sites)
            self._jets = self._target.gradients(self._jets, max(needed, 1))
            if not self._target.reduced:
                self._jets = self._with_sites_at_units(self._jets, model, options.sites_at_units)
            jets = (self._jets, hessian_sites)
            model = self._fit_all(model, jets)
            stage.figures.update(
                equations=sum(len(part) for part in jets) * per_site,
                parameters=model.size,
                residual=self._found.residual,
                floor=float(self._found.evidence.fit_floor or 0.0),
                steps=len(self._found.evidence.fit_history) - 1,
            )

    def _polish_on_values(self, model: NetworkParameters) -> None:
        """Fit all parameters to values at random points, where differences may have met a kink."""
        options = self._options.final_fit
        with self._journal.stage("polish") as stage:
            parameters = model.size + self._target.dimension * self._target.outputs  # with a skip
            enough = options.equations_per_parameter * parameters / self._target.outputs
            points = self._target.sample(max(int(np.ceil(enough)), options.rows_per_unit * model.width), 0.0)
            answers = self._target.ask(points)
            floor = max(self._noise, float(np.finfo(np.float64).eps * np.abs(answers).max()))
            settled = self._found.evidence.residual_over_floor * floor
            on_step = lambda step, _: self._journal.tell(step, None, "steps")  # noqa: E731
            fit = polish_on_values(model, points, answers, self._noise, settled, self._target.rng, on_step)
            self._keep(fit)
            stage.figures.update(
                equations=answers.size, parameters=fit.model.size, residual=self._found.residual, floor=floor
            )

    def _with_sites_at_units(self, jets: Jets, model: NetworkParameters, share: float) -> Jets:
        """Add gradients where the units act that the sites so far see least, a share of all units."""
        bend = model.activation.jet(jets.sites @ model.weights[0] + model.biases[0], 2)[2]
        seen = np.einsum("nm,nm->m", bend, bend)
        least = np.argsort(seen)[: int(np.ceil(share * model.width))]
        return Jets.concatenate([jets, self._target.gradients_at(model, least)])

    def _fit_all(self, model: NetworkParameters, jets: tuple[Jets, ...]) -> NetworkParameters:
        fit = fit_all_parameters(
            model,
            jets,
            self._noise,
            self._options.final_fit,
            lambda step, _: self._journal.tell(step, None, "steps"),
        )
        if fit.model.width < model.width:
            self._found.note(width=fit.model.width, found=fit.model.width)
        self._keep(fit)
        return fit.model

    def _keep(self, fit: ValueFitResult) -> None:
        """Take the network of ``fit``, and what it says about itself."""
        self._found.model = fit.model
        self._found.note(
            fit_history=fit.history,
            fit_floor=fit.floor,
            prediction_floor=float(np.hypot(fit.prediction_floor, self._lifting_floor())),
            condition=fit.condition,
            parameter_error_bar=fit.error_bar,
        )

    def _lifting_floor(self) -> float:
        """Return what the noise of the gradients that locate the subspace leaves of a prediction."""
        if not self._target.reduced:
            return 0.0
        jets, d = self._in_all_inputs, self._target.dimension
        spare = max((len(jets) - 1) * self._target.outputs - d, 1)
        return self._noise * jets.gradient_noise * float(np.sqrt(jets.sites.shape[1] * d / spare))


def fit_all_parameters(
    model: NetworkParameters,
    jets: tuple[Jets, ...],
    noise: float,
    options: FinalFitOptions,
    on_step: Callable[[int, float], None],
) -> ValueFitResult:
    """Fit every parameter to values and gradients; ``noise`` is the standard deviation of an answer."""
    sites = sum(len(part) for part in jets)
    floor = noise * float(np.sqrt(sum(len(part) * part.gradient_noise**2 for part in jets) / sites))
    model, fit = _minimise(_with_linear_part(model, jets[0], options.skip_seen), jets, floor, on_step)
    model = mirror_back(model)
    if model.skip is not None and _is_negligible(model.skip, jets[0], floor, options):
        model, fit = _minimise(replace(model, skip=None), jets, floor, on_step)  # only a rough start had one
    acting = _acting(model, jets, options.negligible_part * floor)
    if 0 < acting.sum() < model.width:
        model, fit = _minimise(model.keep(acting), jets, floor, on_step)
    equations = sum(part.values.size * (1 + part.sites.shape[1]) for part in jets)
    return ValueFitResult.of(model, fit, floor, equations)


def fit_linear_part(model: NetworkParameters, jets: Jets, with_skip: bool) -> NetworkParameters:
    """Give ``model`` the constant c, and the skip S if wanted, that fit ``jets`` best given its units."""
    hidden, offset = model.biases
    bare = replace(model, biases=(hidden, np.zeros_like(offset)), skip=None)
    skip = None
    remainder = jets.values - bare.values(jets.sites)
    if with_skip:
        skip = skip_matrix(bare, jets)
        remainder = remainder - jets.sites @ skip
    return replace(bare, biases=(hidden, remainder.mean(axis=0)), skip=skip)


def skip_matrix(model: NetworkParameters, jets: Jets) -> Array:
    """Return the (d, K) mean of the gradients that the units of ``model`` leave unexplained."""
    units = replace(model, skip=None)
    unexplained = jets.gradients - difference_gradients(units, jets.sites, jets.step, jets.rule)
    return np.asarray(unexplained.mean(axis=0).T)


def _minimise(
    start: NetworkParameters, jets: tuple[Jets, ...], floor: float, on_step: Callable[[int, float], None]
) -> tuple[NetworkParameters, Fit]:
    # From exact derivatives the start may be at the floor already.
    least = 1 if any(part.rule == "exact" for part in jets) else 0
    schedule = LevenbergMarquardtOptions(floor=floor, least_steps=least)
    fit = levenberg_marquardt(SobolevFit(start, jets), start.to_vector(), schedule, on_step)
    return start.from_vector(fit.vector), fit


def _with_linear_part(model: NetworkParameters, data: Jets, skip_seen: float) -> NetworkParameters:
    """Give the model its output constant, and a skip if the gradients show one."""
    size = float(np.sqrt(np.mean(data.gradients**2)))
    largest = float(np.abs(skip_matrix(model, data)).max())
    return fit_linear_part(model, data, with_skip=largest > skip_seen * size)


def _is_negligible(skip: Array, jets: Jets, floor: float, options: FinalFitOptions) -> bool:
    size = float(np.sqrt(np.mean(jets.gradients**2)))
    return float(np.abs(skip).max()) <= max(options.negligible_skip * size, options.negligible_part * floor)


def _acting(model: NetworkParameters, jets: tuple[Jets, ...], negligible: float) -> BoolArray:
    """Return (m,) which units contribute more than ``negligible`` to the outputs at the sites."""
    sites = np.concatenate([part.sites for part in jets])
    return np.asarray(model.contributions(sites) > negligible)
