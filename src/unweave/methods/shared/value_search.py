"""Smooth units from values alone, more of them than inputs: variable projection from random starts.

    minimise over V   | y - g(X_1 V) A - (X_1 or 1) C |        `unweave.numerics.variable_projection.problem`

Derivatives show at most d(d-1)/2 directions in d inputs, moments of samples at most d; least squares knows no
such limit, but has local minima. In few inputs there are ways around most of them: with up to twice as many
units as needed, one random start in two to twenty ends exact, in hundredths of a second, and surplus units
are then left out. Sizes grow until one does; if none does, they all get more starts.

Nothing here needs derivatives, a law of the inputs or queries. Cost of a start: some 50 steps of n P^2 flops
for P = m (d + 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from unweave.arrays import Array
from unweave.errors import OutOfTime
from unweave.networks.activations import Activation, get_activation
from unweave.networks.mirrored_units import mirror_back
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.standardized import StandardizedSamples
from unweave.networks.value_fit import ValueFitResult, fit_values
from unweave.numerics.clock import check, out_of_time
from unweave.numerics.variable_projection.features import SmoothFeature
from unweave.numerics.variable_projection.problem import ProjectedFit, ProjectedProblem, ProjectionOptions
from unweave.numerics.variable_projection.prune import OnStep, prune_exact, prune_noisy, random_units

MOST_INPUTS = 5
"""Number of inputs up to which a width is searched for: beyond, other methods see more units."""

_STEP_SECONDS = 8e-4  # that one step of a start takes besides its arithmetic
_STEP_FLOPS_PER_SECOND = 1e10  # of that arithmetic, measured on one thread
NEGLIGIBLE_SKIP_SHARE = 1e-9
"""Entry of a skip, in spreads of the answers per unit of input, that rounding explains."""


@dataclass(frozen=True, kw_only=True)
class ValueSearchOptions:
    """Sizes and number of random starts."""

    rounds: tuple[int, ...] = (3, 8, 24)
    """Random starts of every size, round by round: first few of all, then more."""
    work: float = 20.0
    """Seconds that the starts take, roughly. They are counted in steps, so that the search ends at the same
    start on every machine."""
    most_units: int = 32
    """Number of units of the largest start."""
    surplus: tuple[float, ...] = (1.25, 1.5, 2.0)
    """Units of a start over the width that the caller gives."""
    smallest: int = 2
    """Number of units of the second size (the first is 1) when the caller gives no width."""
    growth: float = 1.4
    """Ratio of one size to the next."""
    rows_per_parameter: int = 10
    """Rows that a start is fitted to, per parameter and divided by the outputs."""
    fewest_equations: float = 1.5
    """Equations per parameter of the largest start."""
    steps: int = 150
    """Steps of a start at most."""
    patience: int = 8
    """Steps without progress before a start ends."""
    rival_ratio: float = 10.0
    """An activation is tried again while its residual is within this factor of the best one."""


@dataclass(frozen=True, eq=False)
class ValueSearch:
    """The best network found."""

    network: Network
    residual: float
    """Root mean square misfit over the answers' spread, worst output."""
    exact: bool
    """Whether that is the answers' own precision."""
    starts: int
    fitted: ValueFitResult
    """The last fit, of all parameters to all rows, in whitened inputs and standardized answers."""
    out_of_time: bool = False


def search_values(
    x: Array,
    y: Array,
    width: int | None,
    activations: Sequence[Activation],
    *,
    floor: float,
    rng: np.random.Generator,
    options: ValueSearchOptions | None = None,
    on_step: OnStep | None = None,
) -> ValueSearch | None:
    """Fit ``width`` (None: as few as are exact) units to x (n, d), y (n, K); None if there are too few rows.

    ``activations`` are tried in turn at every size. ``floor`` is the root mean square misfit, relative to the
    answers' spread, that counts as exact. ``on_step`` gets (steps, residual) and may raise `OutOfTime`: the
    best so far is returned.

    Example
    -------
    >>> import unweave
    >>> net = unweave.random_network([2, 5, 1], seed=1000, outer="normal", norms=(0.5, 2), bias=1)
    >>> x = np.random.default_rng(7).standard_normal((600, 2))
    >>> names, rng = [unweave.get_activation("tanh")], np.random.default_rng(0)
    >>> found = search_values(x, net(x), None, names, floor=1e-10, rng=rng)
    >>> found.exact, unweave.compare(net, found.network).parameter_error < 1e-10
    (True, True)
    """
    samples = StandardizedSamples.of(x, y)
    run = _Run(samples, floor, rng, options or ValueSearchOptions(), on_step)
    late = False
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # units that run away are given up
            run.search(width, [smooth_feature(activation) for activation in activations])
    except OutOfTime:
        late = True
    if run.best is None:
        return None
    fitted = fit_values(
        projected_model(*run.best, samples.inputs, samples.answers), samples.inputs, samples.answers
    )
    residual = samples.residual(fitted.model)
    late = late or (residual > floor and out_of_time())
    return ValueSearch(samples.network(fitted.model), residual, residual <= floor, run.starts, fitted, late)


def smooth_feature(activation: Activation) -> SmoothFeature:
    """Return the feature of ``activation``, beside an affine function if mirrored units differ by one."""
    rule = activation.reflection
    degree = int(rule is not None and rule.slope != 0)
    return SmoothFeature(activation.name, degree, homogeneous=False, function=activation)


class _Run:
    def __init__(
        self,
        samples: StandardizedSamples,
        floor: float,
        rng: np.random.Generator,
        options: ValueSearchOptions,
        on_step: OnStep | None,
    ) -> None:
        self.inputs, self.answers = samples.inputs, samples.answers
        self.options, self.work = options, options.work
        self.floor, self.rng, self.on_step = floor, rng, on_step
        self.best: tuple[ProjectedFit, SmoothFeature] | None = None
        self.residuals: dict[str, float] = {}
        """The best of every activation."""
        self.starts = 0

    def search(self, width: int | None, features: Sequence[SmoothFeature]) -> None:
        """Try starts of growing size until one is exact."""
        sizes = self._sizes(width)
        for starts in self.options.rounds:
            for units, feature in product(sizes, self._rivals(features)):
                fit = self._from_many(self._problem(units, feature), units, width, starts)
                if fit is not None:
                    self.best = fit, feature
                    return
        if width is not None and self.best is not None and self.best[0].units.shape[1] > width:
            fit, feature = self.best
            problem = self._problem(max(sizes), feature)
            self.best = prune_noisy(problem, fit, width, self.on_step), feature

    def _rivals(self, features: Sequence[SmoothFeature]) -> list[SmoothFeature]:
        """Return the activations that fit about as well as the best; the right one does far better."""
        least = min(self.residuals.values(), default=np.inf)
        return [
            each
            for each in features
            if not self.residuals.get(each.name, 0.0) > self.options.rival_ratio * least
        ]

    def _from_many(
        self, problem: ProjectedProblem, units: int, width: int | None, starts: int
    ) -> ProjectedFit | None:
        for _ in range(starts):
            check()
            if self.work <= 0:
                break
            self.starts += 1
            fit = self._from_random(problem, units, width)
            if fit is not None:
                return fit
        return None

    def _from_random(self, problem: ProjectedProblem, units: int, width: int | None) -> ProjectedFit | None:
        """Return an exact fit with no more units than the caller gave, or None."""
        options = ProjectionOptions(
            steps=self.options.steps, floor=self.floor / 100, patience=self.options.patience
        )
        try:
            fit = problem.minimise(random_units(problem, units, self.rng), options, self.on_step)
            flops = problem.rows * (fit.units.size + units) ** 2
            self.work -= len(fit.history) * (_STEP_SECONDS + flops / _STEP_FLOPS_PER_SECOND)
            assert isinstance(problem.feature, SmoothFeature)
            name = problem.feature.name
            self.residuals[name] = min(fit.residual, self.residuals.get(name, np.inf))
            if self.best is None or fit.residual < self.best[0].residual:
                self.best = fit, problem.feature
            if fit.residual > self.floor:
                return None
            fit = prune_exact(problem, fit, self.floor, self.on_step)
        except np.linalg.LinAlgError:  # units that ran away
            return None
        return fit if width is None or fit.units.shape[1] <= width else None

    def _sizes(self, width: int | None) -> list[int]:
        options, per_unit = self.options, self.inputs.shape[1] + 1 + self.answers.shape[1]
        most = min(options.most_units, int(self.answers.size / options.fewest_equations / per_unit))
        if width is not None:
            wanted = [int(np.ceil(factor * width)) for factor in options.surplus if width <= most]
            return sorted({min(size, most) for size in wanted})
        sizes, size = [1], float(options.smallest)
        while size <= most:
            sizes.append(int(size))
            size = max(size * options.growth, int(size) + 1)
        return sizes if most > 0 else []

    def _problem(self, units: int, feature: SmoothFeature) -> ProjectedProblem:
        outputs = self.answers.shape[1]
        parameters = units * (self.inputs.shape[1] + 1 + outputs) + outputs
        rows = min(len(self.inputs), int(self.options.rows_per_parameter * parameters / outputs) + 20)
        chosen = np.sort(self.rng.permutation(len(self.inputs))[:rows])
        return ProjectedProblem(self.inputs[chosen], self.answers[chosen], feature)


def projected_model(
    fit: ProjectedFit, feature: SmoothFeature, inputs: Array, answers: Array
) -> NetworkParameters:
    """Return the model of a fit to standardized samples; mirrored units are mirrored back."""
    features = feature.value(inputs @ fit.units[:-1] + fit.units[-1])
    design = np.hstack([features, feature.polynomial(inputs)])
    solution: Array = np.asarray(np.linalg.lstsq(design, answers, rcond=None)[0], np.float64)
    count = fit.units.shape[1]
    model = mirror_back(
        NetworkParameters.shallow(
            activation=get_activation(feature.name),
            weights=fit.units[:-1],
            biases=fit.units[-1],
            outgoing=solution[:count],
            offset=solution[-1],
            skip=solution[count:-1] if feature.degree else None,
        )
    )
    negligible = model.skip is None or np.abs(model.skip).max() <= NEGLIGIBLE_SKIP_SHARE
    return replace(model, skip=None) if negligible else model
