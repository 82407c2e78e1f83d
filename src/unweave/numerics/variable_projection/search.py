"""The search for the units behind samples: random starts with surplus units, repairs, growth, pruning.

A start has a quarter more units than asked for: surplus units take away most local minima, and an exact fit
leaves them with nothing to do, so that they can be told apart and left out. Where a start stalls above the
floor, units that cancel each other or do nothing are replaced, a few are added where the residual is largest,
and it goes on. Without a given width, the network grows like that from a few units until the fit is exact or
the information criterion says that what is left is noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.errors import OutOfTime
from unweave.numerics import interrupts
from unweave.numerics.clock import check, out_of_time
from unweave.numerics.variable_projection.curvature import curved_directions, shows_curvature
from unweave.numerics.variable_projection.features import KINK, UnitFeature
from unweave.numerics.variable_projection.problem import (
    ProjectedFit,
    ProjectedProblem,
    ProjectionOptions,
    with_ones,
)
from unweave.numerics.variable_projection.prune import (
    OnStep,
    information,
    prune_exact,
    prune_noisy,
    random_units,
    repaired,
    without_idle,
)

_ROUNDING = 4e-14  # relative residual below which there is nothing to gain
_SAME_MINIMUM = 5e-3  # relative difference of residuals of starts that ended in one minimum
_CONVERGED = 1e-7  # relative decrease of the residual per step at which the last fit stops
_PATIENCE = 2  # times that more units may explain no more than noise before it is believed
_NEARLY_EXACT = 1e-3  # relative residual of a fit that idle units may keep from being exact
_TIDIED_EARLY = 9e-4  # relative residual at which idle units are left out: they slow conjugate gradients down
_TIDY_STEPS = 40
_START_TOLERANCE = 0.3  # of the gradient, for steps of a start: exact ones leave its plateau no sooner
_CURVED_ROWS = 7.0  # per parameter of a fit in the directions along which answers curve
_CURVED_GAIN = 6e-3  # relative decrease of the residual per step at which such a fit has shown what it can
_FEWEST_EQUATIONS = 1.5  # per parameter of the largest network tried
_STARTS_BEYOND = 2  # starts that fitted exactly with more units than told, after which that is believed


@dataclass(frozen=True)
class SearchOptions:
    """How hard to search."""

    surplus: float = 1.25
    """Units of a start over the width asked for."""
    starts: int = 6
    """Number of random starts."""
    repairs: int = 4
    """Stalls after which a start is given up."""
    growth: float = 1.5
    """Factor of the number of units after a stall, where the width is not known."""
    first_width: int = 4
    """Number of units of the first start, where the width is not known."""
    steps: int = 120
    """Steps of a start between two repairs at most."""
    most: int | None = None
    """Units of the largest network tried; None: as many as the samples could determine."""
    doubted: int | None = None
    """Units from which on growth ends where it brings little; None: it ends with ``most``."""
    little: float = 0.45
    """Ratio of residuals after and before growth that brought little."""
    rows_per_parameter: float = 10.0
    """Samples used by the search, where there are more."""
    all_or_nothing: bool = False
    """Whether only an exact fit is of use: another one is returned as it is, with surplus units."""
    curved_parameters: int = 2000
    """Parameters of the units from which on the first start begins in directions along which answers
    curve, ..."""
    curved_share: float = 0.75
    """... if the units are at most this share of the inputs."""


@dataclass(frozen=True, eq=False)
class UnitSearch:
    """What the search ended with."""

    fit: ProjectedFit
    exact: bool
    """Whether the fit reached the floor: then units without use have been left out."""
    starts: int
    repairs: int
    widest: int
    """Units of the largest network that was tried."""
    history: tuple[float, ...]
    """Residuals of the start that was kept, step by step, until the last pruning."""
    exact_width: int | None = None
    """Fewest units found to fit exactly, which may be more than asked for; None if no fit was exact."""
    out_of_time: bool = False
    interrupted: bool = False
    """Whether the user stopped it."""


class _Search:
    def __init__(
        self,
        inputs: Array,
        y: Array,
        feature: UnitFeature,
        floor: float,
        rng: np.random.Generator,
        options: SearchOptions,
        on_step: OnStep | None,
    ) -> None:
        x = inputs[:, :-1]
        self.inputs, self.x, self.y, self.feature, self.floor = inputs, x, y, feature, floor
        self.rng, self.options, self.on_step = rng, options, on_step
        self.best: ProjectedFit | None = None
        self.history: tuple[float, ...] = ()
        self.starts = self.repairs = self.widest = 0
        per_unit = x.shape[1] + y.shape[1]
        free = y.size / _FEWEST_EQUATIONS - feature.count(x.shape[1]) * y.shape[1]
        self.most = min(max(int(free // per_unit), 0), len(x) if options.most is None else options.most)
        self._problems: dict[int, ProjectedProblem] = {}

    def problem(self, width: int) -> ProjectedProblem:
        """The samples that a network of this width is searched with."""
        inputs, outputs = self.x.shape[1], self.y.shape[1]
        parameters = width * (inputs + outputs) + self.feature.count(inputs) * outputs
        rows = min(len(self.x), int(self.options.rows_per_parameter * parameters / outputs) + 20)
        return self._with_rows(rows)

    def whole(self) -> ProjectedProblem:
        """All samples."""
        return self._with_rows(len(self.x))

    def _with_rows(self, rows: int) -> ProjectedProblem:
        if rows not in self._problems:  # the same rows at every start, so that residuals can be compared
            chosen = np.sort(self.rng.permutation(len(self.x))[:rows])
            self._problems = {}  # released before the next is made: each is several times the data
            every = rows == len(self.x)
            inputs, y = (self.inputs, self.y) if every else (self.inputs[chosen], self.y[chosen])
            self._problems = {rows: ProjectedProblem(inputs[:, :-1], y, self.feature, inputs)}
        return self._problems[rows]

    def minimise(self, problem: ProjectedProblem, units: Array, options: ProjectionOptions) -> ProjectedFit:
        self.widest = max(self.widest, units.shape[1])
        fit = self._interruptible(problem, problem, units, options)
        self._keep(fit)
        return fit

    def _interruptible(
        self,
        whole: ProjectedProblem,
        part: ProjectedProblem,
        units: Array,
        options: ProjectionOptions,
        directions: Array | None = None,
    ) -> ProjectedFit:
        """Minimise in ``part``, whose inputs are ``directions`` of the whole; what was reached is kept."""
        part.reached = None
        try:
            return part.minimise(units, options, self.on_step)
        except (OutOfTime, KeyboardInterrupt):
            interrupts.taken()
            if part.reached is not None:
                reached = part.reached if directions is None else _lifted(part.reached, directions)
                self._keep(whole.minimise(reached, ProjectionOptions(steps=0)))
            raise

    def settled(self, problem: ProjectedProblem, units: Array, options: ProjectionOptions) -> ProjectedFit:
        """Fit, and leave out idle units of a nearly exact fit: early, where they make every step slow."""
        if units.size > options.gram_parameters and options.floor < _TIDIED_EARLY:
            fit = self.minimise(problem, units, replace(options, floor=_TIDIED_EARLY))
            fit = self.tidied(problem, fit)
            if not self.floor < fit.residual <= _TIDIED_EARLY:
                return fit
            units = fit.units
        return self.tidied(problem, self.minimise(problem, units, options))

    def tidied(self, problem: ProjectedProblem, fit: ProjectedFit) -> ProjectedFit:
        """The fit, or an exact one with fewer units: idle ones keep a nearly exact fit from converging."""
        if not self.floor < fit.residual < _NEARLY_EXACT:
            return fit
        units = without_idle(problem, fit)
        if units.shape[1] == fit.units.shape[1]:
            return fit
        settings = ProjectionOptions(steps=_TIDY_STEPS, floor=self.floor / 10, patience=3)
        fewer = self.minimise(problem, units, settings)
        return fewer if fewer.residual <= self.floor else fit

    def _keep(self, fit: ProjectedFit) -> None:
        if self.best is None or fit.residual < self.best.residual:
            self.best = fit

    def start(self, width: int) -> tuple[ProjectedProblem, ProjectedFit]:
        """One random start with repairs."""
        options = self.options
        count = min(int(np.ceil(options.surplus * width)), max(self.most, 1))
        problem = self.problem(count)
        settings = ProjectionOptions(
            steps=options.steps, floor=self.floor / 10, far_tolerance=_START_TOLERANCE
        )
        best = self.settled(problem, self._first_units(problem, count, width), settings)
        history, idle = list(best.history), 0
        for attempt in range(options.repairs):
            check()
            if best.residual <= self.floor:
                break
            self.repairs += 1
            more = min(count + (attempt + 1) * max(width // 10, 1), max(self.most, 1))
            fit = self.settled(problem, repaired(problem, best, more, self.rng), settings)
            history += fit.history
            gained = information(problem, best) - information(problem, fit)
            if fit.residual < best.residual:
                best = fit
            idle = idle + 1 if gained < 0 else 0
            if idle == _PATIENCE and best.residual > self.floor:
                break  # more units explain no more than noise
        self.history = tuple(history)
        return problem, best

    def _first_units(self, problem: ProjectedProblem, count: int, width: int) -> Array:
        """Random units (d+1, count), those of a large first start fitted where the answers curve."""
        options, size = self.options, problem.inputs.shape[1]
        small = count * size < options.curved_parameters or width > options.curved_share * (size - 1)
        if self.starts > 1 or small or not shows_curvature(problem):
            return random_units(problem, count, self.rng)
        directions = curved_directions(problem, width)
        rows = min(problem.rows, int(_CURVED_ROWS * count * (width + 1)))
        x = problem.inputs[:rows, :-1] @ directions
        part = ProjectedProblem(x, problem.rest[:rows], self.feature)
        settings = ProjectionOptions(
            steps=options.steps,
            floor=_TIDIED_EARLY,
            patience=2,
            worthwhile=_CURVED_GAIN,
            far_tolerance=_START_TOLERANCE,
        )
        start = random_units(part, count, self.rng)
        fit = self._interruptible(problem, part, start, settings, directions)
        return _lifted(fit.units, directions)

    def grow(self) -> tuple[ProjectedProblem, ProjectedFit]:
        """From few units to as many as the samples need."""
        options = self.options
        worthwhile = 5e-3 if options.doubted is None else 1e-2
        quick = ProjectionOptions(
            steps=options.steps, floor=self.floor / 10, patience=3, worthwhile=worthwhile
        )
        count = min(options.first_width, self.most)
        problem = self.problem(count)
        fit = best = self.minimise(problem, random_units(problem, count, self.rng), quick)
        best_problem, history, idle = problem, list(fit.history), 0
        while fit.residual > self.floor and count < self.most and idle < _PATIENCE:
            check()
            count = min(max(int(options.growth * count), count + 1), self.most)
            problem = self.problem(count)
            before, fit = fit, self.settled(problem, repaired(problem, fit, count, self.rng), quick)
            history += fit.history
            self.repairs += 1
            again = problem.minimise(best.units, ProjectionOptions(steps=0))
            if information(problem, fit) < information(problem, again):
                best, best_problem, idle = fit, problem, 0
            else:
                idle += 1
            doubted = options.doubted is not None and count >= options.doubted
            if doubted and fit.residual > options.little * before.residual:
                break
        self.history = tuple(history)
        return (problem, fit) if fit.residual <= self.floor else (best_problem, best)


def search_units(
    x: Array,
    y: Array,
    width: int | None,
    *,
    floor: float,
    rng: np.random.Generator,
    noisy: bool = False,
    feature: UnitFeature = KINK,
    options: SearchOptions | None = None,
    on_step: OnStep | None = None,
    inputs: Array | None = None,
) -> UnitSearch:
    """Find units whose features, beside a polynomial, explain y (n, K) at x (n, d), both of order one.

    Parameters
    ----------
    width
        Number of units, None to find out. An exact fit with fewer is returned with fewer.
    floor
        Relative residual at which a fit counts as exact.
    noisy
        Whether that floor is noise: then units are left out by the information criterion.
    on_step
        Called with (steps, residual); may raise `OutOfTime`, and the best fit so far is returned, as it is
        on Ctrl-C.
    inputs
        (x, 1) where it is there already, x being a view of it.
    """
    options = options or SearchOptions()
    inputs = with_ones(x) if inputs is None else inputs
    search = _Search(inputs, y, feature, floor, rng, options, on_step)
    try:
        found = _searched(search, width, noisy)
        return replace(found, out_of_time=not found.exact and out_of_time())
    except (OutOfTime, KeyboardInterrupt) as end:
        interrupts.taken()  # the caller raises it again, with what was found
        problem = ProjectedProblem(x, y, feature, inputs)
        fit = search.best or problem.minimise(np.zeros((x.shape[1] + 1, 0)))
        told = _told(search, fit, exact=False, out_of_time=True)
        return replace(told, interrupted=isinstance(end, KeyboardInterrupt))


def _searched(search: _Search, width: int | None, noisy: bool) -> UnitSearch:
    empty = search.whole().minimise(np.zeros((search.x.shape[1] + 1, 0)))
    if empty.residual <= search.floor or search.most == 0 or width == 0:
        return _told(search, empty, empty.residual <= search.floor)
    ended: list[tuple[ProjectedProblem, ProjectedFit]] = []
    needed = search.most + 1
    for _ in range(search.options.starts):
        check()
        search.starts += 1
        problem, fit = search.grow() if width is None else search.start(width)
        if fit.residual <= search.floor:
            if noisy:
                fit = prune_noisy(problem, fit, None, search.on_step)
            else:
                fit = prune_exact(problem, fit, search.floor, search.on_step)
            needed = min(needed, fit.units.shape[1])
            if width is not None and needed > width:
                fit = prune_noisy(problem, fit, width, search.on_step)
                if fit.residual > search.floor and search.starts < _STARTS_BEYOND:
                    ended.append((problem, fit))
                    continue  # another start may do with fewer
            fit = _on_all(fit, search)
            exact_width = needed if fit.residual > search.floor else fit.units.shape[1]
            return _told(search, fit, fit.residual <= search.floor, exact_width=exact_width)
        if search.options.all_or_nothing:
            return _told(search, search.whole().minimise(fit.units, ProjectionOptions(steps=0)), exact=False)
        if width is not None or search.starts == 1:
            fit = prune_noisy(problem, fit, width, search.on_step)
        ended.append((problem, fit))
        ended.sort(key=lambda pair: information(*pair) if width is None else pair[1].residual)
        if _agree([pair[1].residual for pair in ended]) or (width is None and search.starts > 1):
            break
    fit = prune_noisy(*ended[0], width, search.on_step)
    fit = _on_all(fit, search)
    exact = fit.residual <= search.floor
    return _told(search, fit, exact, exact_width=needed if needed <= search.most and not exact else None)


def _lifted(units: Array, directions: Array) -> Array:
    """Units (d+1, m) of those (k+1, m) in inputs along ``directions`` (d, k)."""
    return np.vstack([directions @ units[:-1], units[-1:]])


def _agree(residuals: list[float]) -> bool:
    """Whether the two best starts ended in one minimum."""
    best = sorted(residuals)[:2]
    return len(best) == 2 and best[1] <= (1 + _SAME_MINIMUM) * best[0]


def _on_all(fit: ProjectedFit, search: _Search) -> ProjectedFit:
    """The last steps with all samples: fewer were enough to find the units."""
    settings = ProjectionOptions(steps=30, floor=_ROUNDING, patience=3, worthwhile=_CONVERGED)
    return search.whole().minimise(fit.units, settings, search.on_step)


def _told(
    search: _Search, fit: ProjectedFit, exact: bool, out_of_time: bool = False, exact_width: int | None = None
) -> UnitSearch:
    needed = fit.units.shape[1] if exact and exact_width is None else exact_width
    return UnitSearch(
        fit, exact, search.starts, search.repairs, search.widest, search.history, needed, out_of_time
    )
