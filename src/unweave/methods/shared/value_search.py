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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.mirrored_units import mirror_back
from unweave.networks.activations import Activation, get_activation
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult, fit_values
from unweave.numerics.variable_projection.features import SmoothFeature
from unweave.numerics.variable_projection.problem import ProjectedFit, ProjectedProblem, ProjectionOptions
from unweave.numerics.variable_projection.prune import prune_exact, prune_noisy, random_units
from unweave.numerics.variable_projection.search import OutOfTime
from unweave.numerics.whitening import Whitening

MOST_INPUTS = 5
"""Inputs up to which a width is searched for: beyond, other methods see more units than random starts."""
MOST_INPUTS_TOLD = 16
"""Inputs up to which random starts may find a width that is told."""
MOST_UNITS = 32
"""Units of the largest start."""
_SURPLUS = (1.25, 1.5, 2.0)  # units of starts over a width that is told
_SMALLEST, _GROWTH = 2, 1.4  # units of the first starts where none is told, and the factor to the next size
ROUNDS = (3, 8, 24)
"""Random starts of every size: first few of all, then more."""
ROWS_PER_PARAMETER = 10
"""Rows that a start is fitted to."""
_FEWEST_EQUATIONS = 1.5  # per parameter of a start
_STEPS, _PATIENCE = 150, 8
WORK = 20.0
"""About as many seconds are spent: counted in steps, so that the search ends at the same start everywhere."""
_SECONDS_PER_STEP, _FLOPS_PER_SECOND = 8e-4, 1e10
_RIVAL = 10.0  # times the least residual of an activation: beyond, another is not tried again
_NEGLIGIBLE_SKIP = 1e-9  # of the answers' spread: an affine part that the units explain


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
    """The last fit, of all parameters to all rows, in whitened inputs and standardised answers."""
    out_of_time: bool = False


def search_values(
    x: Array,
    y: Array,
    width: int | None,
    activations: Sequence[Activation],
    *,
    floor: float,
    rng: np.random.Generator,
    rounds: Sequence[int] = ROUNDS,
    work: float | None = None,
    on_step: Callable[[int, float], None] | None = None,
) -> ValueSearch | None:
    """Fit ``width`` (None: as few as are exact) units to x (n, d), y (n, K); None if there are too few rows.

    ``activations`` are tried in turn at every size. ``floor`` is the root mean square misfit, relative to the
    answers' spread, that counts as exact; ``rounds`` the random starts of every size, round by round, and
    ``work`` about how many seconds they may take (None: `WORK`). ``on_step`` gets (steps, residual) and may
    raise `OutOfTime`: the best so far is returned.

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
    whitening = Whitening.of(x)
    centre, spread = y.mean(axis=0), y.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    inputs, answers = whitening(x), (y - centre) / spread
    run = _Run(inputs, answers, floor, rng, WORK if work is None else work, on_step)
    late = False
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # units that run away are given up
            run.search(width, [smooth_feature(activation) for activation in activations], rounds)
    except OutOfTime:
        late = True
    if run.best is None:
        return None
    fitted = fit_values(NetworkParameters.from_network(_network(*run.best, inputs, answers)), inputs, answers)
    misfit = fitted.model.values(inputs) - answers
    residual = float(np.sqrt(np.mean(misfit**2, axis=0)).max())
    network = _in_own_units(fitted.model.to_network(), whitening, centre, spread)
    return ValueSearch(network, residual, residual <= floor, run.starts, fitted, late)


def smooth_feature(activation: Activation) -> SmoothFeature:
    """The feature of a smooth ``activation``, beside an affine function if mirrored units differ by one."""
    rule = activation.reflection
    degree = int(rule is not None and rule.slope != 0)
    return SmoothFeature(activation.name, degree, homogeneous=False, function=activation)


class _Run:
    def __init__(
        self,
        inputs: Array,
        answers: Array,
        floor: float,
        rng: np.random.Generator,
        work: float,
        on_step: Callable[[int, float], None] | None,
    ) -> None:
        self.inputs, self.answers, self.work = inputs, answers, work
        self.floor, self.rng, self.on_step = floor, rng, on_step
        self.best: tuple[ProjectedFit, SmoothFeature] | None = None
        self.residuals: dict[str, float] = {}
        """The best of every activation."""
        self.starts = 0

    def search(self, width: int | None, features: Sequence[SmoothFeature], rounds: Sequence[int]) -> None:
        """Starts of growing size until one is exact."""
        sizes = self._sizes(width)
        for starts in rounds:
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
        """Activations that fit about as well as the best one did; units of the right one do far better."""
        least = min(self.residuals.values(), default=np.inf)
        return [each for each in features if not self.residuals.get(each.name, 0.0) > _RIVAL * least]

    def _from_many(
        self, problem: ProjectedProblem, units: int, width: int | None, starts: int
    ) -> ProjectedFit | None:
        for _ in range(starts):
            if self.work <= 0:
                break
            self.starts += 1
            fit = self._from_random(problem, units, width)
            if fit is not None:
                return fit
        return None

    def _from_random(self, problem: ProjectedProblem, units: int, width: int | None) -> ProjectedFit | None:
        """An exact fit with no more units than were told of, or None."""
        options = ProjectionOptions(steps=_STEPS, floor=self.floor / 100, patience=_PATIENCE)
        try:
            fit = problem.minimise(random_units(problem, units, self.rng), options, self.on_step)
            flops = problem.rows * (fit.units.size + units) ** 2
            self.work -= len(fit.history) * (_SECONDS_PER_STEP + flops / _FLOPS_PER_SECOND)
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
        per_unit = self.inputs.shape[1] + 1 + self.answers.shape[1]
        most = min(MOST_UNITS, int(self.answers.size / _FEWEST_EQUATIONS / per_unit))
        if width is not None:
            return sorted({min(int(np.ceil(factor * width)), most) for factor in _SURPLUS if width <= most})
        sizes, size = [1], float(_SMALLEST)
        while size <= most:
            sizes.append(int(size))
            size = max(size * _GROWTH, int(size) + 1)
        return sizes if most > 0 else []

    def _problem(self, units: int, feature: SmoothFeature) -> ProjectedProblem:
        outputs = self.answers.shape[1]
        parameters = units * (self.inputs.shape[1] + 1 + outputs) + outputs
        rows = min(len(self.inputs), int(ROWS_PER_PARAMETER * parameters / outputs) + 20)
        chosen = np.sort(self.rng.permutation(len(self.inputs))[:rows])
        return ProjectedProblem(self.inputs[chosen], self.answers[chosen], feature)


def _network(fit: ProjectedFit, feature: SmoothFeature, inputs: Array, answers: Array) -> Network:
    """The network of a fit in whitened inputs and standardised answers; mirrored units mirrored back."""
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
    skip = None if model.skip is None or np.abs(model.skip).max() <= _NEGLIGIBLE_SKIP else model.skip
    return replace(model, skip=skip).to_network()


def _in_own_units(network: Network, whitening: Whitening, centre: Array, spread: Array) -> Network:
    """From whitened inputs and standardised answers to those given."""
    first = whitening.matrix @ network.weights[0]
    biases = [network.biases[0] - whitening.mean @ first, network.biases[1] * spread + centre]
    skip = None
    if network.skip is not None:
        skip, shift = whitening.affine_back(network.skip * spread, np.zeros(len(spread)))
        biases[1] = biases[1] + shift
    return Network([first, network.weights[1] * spread], biases, network.activations, skip=skip)
