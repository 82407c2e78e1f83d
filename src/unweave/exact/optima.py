"""All networks with the least loss: does the data decide the network?

A loss of zero is not recovery. Patterns of active points that differ may both allow the optimum, and for one
choice of patterns and signs the optimal networks

    { c : A c = A c*,  C c >= 0 }

are a polyhedron, a single point only if the active points of every unit determine it. All of these are listed
here: every program whose bound does not exceed the least loss is solved, and for each that attains it
the dimension of its polyhedron is found by one linear program. Networks that agree on all data and differ
elsewhere show that the data cannot decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space
from scipy.optimize import linprog

from unweave.arrays import Array, BoolArray, IntArray
from unweave.errors import InvalidInput
from unweave.exact.branch_and_bound import ExactOptions, Search
from unweave.exact.cone_program import ConeFit, ConeProgram, cone_program
from unweave.exact.data import checked_points
from unweave.exact.losses import ConvexLoss, loss_named
from unweave.exact.result import ExactFit, ExactProgress, SearchInterrupted, Stop
from unweave.exact.search import Executor, Programs, Serial
from unweave.networks.network import Network

_BOUND_SLACK = 1e-9  # in losses of the zero network: rounding of a lower bound must not lose an optimum
_PROBE_POINTS = 1_000  # random points at which optima are compared
_PROBE_SPREAD = 2.0  # their standard deviation, in those of the data: reaches beyond the data
_AGREEMENT = 1e-6  # disagreement over the largest label up to which optima are one function
_UNIT_ROUNDING = 1e-7  # difference of units over the largest weight: smaller ones are rounding
_UNSEEN_SINGULAR_VALUE = 1e-10  # singular value over the largest: along smaller ones no prediction changes
_TIGHT_SLACK = 1e-9  # slack over the norm of the units: smaller ones are rounding
_LARGEST_MULTIPLE = 1e7  # of the linear program: a slack over the units below 1/this counts as none


@dataclass(frozen=True, eq=False)
class Optimum:
    """One network with the least loss, or a family of them with the same patterns and signs."""

    network: Network
    patterns: BoolArray
    """(w, N): the active points of every unit."""
    signs: Array
    """(w,)."""
    loss: float
    freedom: int
    """Dimension of the set of networks with these patterns, signs and loss; 0: the network is unique."""
    other: Network | None
    """With freedom: another network of that set, from its interior."""


@dataclass(frozen=True, eq=False)
class Optima:
    """All networks with the least loss, up to the parameters that a freedom leaves."""

    optima: tuple[Optimum, ...]
    """The best first."""
    fit: ExactFit
    """The optimum and its certificate."""
    complete: bool
    """Whether the list is certain to be all: nothing was cut short or left unresolved."""
    spans: bool
    """Whether the points span the input space; if not, nothing is known off their affine hull."""
    disagreement: float
    """Largest difference of two listed networks at probes around the data, over the largest label."""
    n_programs: int
    seconds: float

    @property
    def decided(self) -> bool:
        """Whether the data decides the network: all optima are known and are one function."""
        unique = bool(self.optima) and all(one.freedom == 0 for one in self.optima)
        return self.complete and self.spans and unique and self.disagreement <= _AGREEMENT

    @property
    def networks(self) -> tuple[Network, ...]:
        """All listed networks, second members of free families included."""
        others = tuple(one.other for one in self.optima if one.other is not None)
        return tuple(one.network for one in self.optima) + others

    def range(self, x: ArrayLike) -> tuple[Array, Array]:
        """Least and greatest prediction (n,) of the listed networks at points x (n, d)."""
        values = np.column_stack([network(checked_points(x))[:, 0] for network in self.networks])
        return values.min(axis=1), values.max(axis=1)


def enumerate_optima(
    x: ArrayLike,
    y: ArrayLike,
    width: int = 2,
    *,
    loss: str | ConvexLoss = "squared",
    tolerance: float = 1e-12,
    max_optima: int = 5_000,
    time_limit: float | None = None,
    starts: int = 60,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Callable[[ExactProgress], None] | None = None,
) -> Optima:
    """List all networks of ``width`` ReLU units with the least loss on samples x (N, d), y (N,).

    Args:
        loss: one that is strictly convex in the prediction: "squared" or "logistic".
        tolerance: networks whose loss exceeds the least by at most this, relative to the zero network, are
            optima.
        max_optima: the list ends here, incomplete.

    The others are those of `exact_erm`.

    Example:
        >>> x = np.linspace(-1, 1, 12)[:, None]
        >>> y = np.maximum(x[:, 0] - 0.1, 0) - 2 * np.maximum(-x[:, 0] - 0.2, 0)
        >>> enumerate_optima(x, y, width=2).decided
        True
        >>> enumerate_optima(x[::4], y[::4], width=2).decided
        False
    """
    kind = loss_named(loss)
    if not kind.strictly_convex:
        raise InvalidInput(
            f"loss must be strictly convex in the prediction to list all optima. Got {loss!r} instead. "
            f'Use "squared" or "logistic"; exact_erm finds one optimum for any convex loss.'
        )
    if max_optima < 1 or not 0 < tolerance < 1:
        raise InvalidInput(
            f"max_optima must be at least 1 and tolerance between 0 and 1. Got {max_optima!r} and "
            f"{tolerance!r} instead. The defaults are 5000 and 1e-12."
        )
    options = ExactOptions(1e-9, time_limit, starts, seed, executor or Serial(), progress)
    search = Search(x, y, width, kind, options)
    try:
        return _Collection(search, tolerance * search.scale, max_optima).run()
    except KeyboardInterrupt:
        raise SearchInterrupted(search.result(Stop.INTERRUPTED)) from None


class _Full(Exception):
    """The list is as long as it may be."""


class _Collection:
    """The optima found so far."""

    def __init__(self, search: Search, tolerance: float, most: int) -> None:
        self._search, self._tolerance, self._most = search, tolerance, most
        self._found: list[tuple[IntArray, ConeFit]] = []
        self._undecided = 0
        self._limit = 0.0

    def run(self) -> Optima:
        search, began = self._search, time.perf_counter()
        problem = search.prepare()
        stop = search.minimize(problem)
        fit = search.result(stop)
        self._limit = search.best.loss + self._tolerance
        collecting = replace(problem, collect=max(_BOUND_SLACK * search.scale, self._tolerance))
        complete = fit.certified
        try:
            search.solve_all(collecting, search.surviving_programs(collecting), self._keep)
        except _Full:
            complete = False
        complete = complete and search.end is Stop.EXHAUSTED and not self._undecided
        optima = self._distinct()
        spans = search.z.shape[1] == search.x.shape[1] + 1
        return Optima(
            optima=tuple(optima),
            fit=fit,
            complete=complete,
            spans=spans,
            disagreement=self._disagreement(optima),
            n_programs=search.n_programs,
            seconds=time.perf_counter() - began,
        )

    def _keep(self, programs: Programs, fits: list[ConeFit | None]) -> None:
        for patterns, fit in zip(programs.tuples, fits, strict=False):
            if fit is None or fit.lower_bound > self._limit:
                continue
            if fit.loss > self._limit:
                # Only rounding of the bound, at losses far above the limit, leaves such a program open.
                self._undecided += fit.loss - fit.lower_bound > _BOUND_SLACK * self._search.scale
                continue
            self._found.append((patterns, fit))
            if len(self._found) > self._most:
                raise _Full

    def _distinct(self) -> list[Optimum]:
        """One entry per free family, and per network that is not a member of one; the best first."""
        families, single = list[Optimum](), dict[bytes, Optimum]()
        free_networks = set[bytes]()
        for patterns, fit in sorted(self._found, key=lambda one: one[1].loss):
            optimum = self._optimum(patterns, fit)
            if optimum.freedom:
                families.append(optimum)
                free_networks.add(_key(fit))
            else:
                # A network on the border of several patterns is found once for each.
                single.setdefault(_key(fit), optimum)
        alone = [optimum for key, optimum in single.items() if key not in free_networks]
        return sorted([*alone, *families], key=lambda one: one.loss)

    def _optimum(self, patterns: IntArray, fit: ConeFit) -> Optimum:
        search = self._search
        assert search.tree is not None
        active = np.zeros((len(patterns), len(search.y)), dtype=np.bool_)
        active[:, search.order] = search.tree.last.patterns[patterns] == 1
        program = cone_program(active, fit.signs, search.z, search.y)
        freedom, inside = _face(program, (fit.signs[:, None] * fit.units).reshape(-1))
        other = None
        if freedom:
            units = fit.signs[:, None] * inside.reshape(fit.units.shape)
            other = search.coordinates.network(units, fit.signs)
        network = search.coordinates.network(fit.units, fit.signs)
        return Optimum(network, active, fit.signs, fit.loss, freedom, other)

    def _disagreement(self, optima: list[Optimum]) -> float:
        search = self._search
        networks = [one.network for one in optima] + [one.other for one in optima if one.other is not None]
        if not networks:
            return np.inf
        probes = (
            np.random.default_rng(0).standard_normal((_PROBE_POINTS, search.z.shape[1] - 1)) * _PROBE_SPREAD
        )
        # Back to the inputs along the affine hull of the data.
        points = search.coordinates.mean + probes @ np.linalg.pinv(search.coordinates.basis)
        low = high = networks[0](points)[:, 0]
        for network in networks[1:]:
            values = network(points)[:, 0]
            low, high = np.minimum(low, values), np.maximum(high, values)
        return float(np.max(high - low) / max(float(np.abs(search.y).max()), np.finfo(np.float64).tiny))


def _key(fit: ConeFit) -> bytes:
    """The same for networks that differ by rounding, or by the order of their units."""
    size = max(float(np.abs(fit.units).max()), np.finfo(np.float64).tiny)
    rows = np.column_stack([fit.signs, np.round(fit.units / (size * _UNIT_ROUNDING))]) + 0.0
    return bytes(rows[np.lexsort(rows.T[::-1])].tobytes())


def _face(program: ConeProgram, point: Array) -> tuple[int, Array]:
    """Dimension of {c : A c = A c*, C c >= 0} around c* = ``point``, and a point of its relative interior.

    Along directions V that A does not see, as many conditions as possible get slack:

        max sum_j s_j   such that   C (t c* + V b) >= s,   0 <= s <= 1,   t >= 1.

    With t free, all that can have slack have slack 1 at once; the others hold with equality on all of the
    face. c* + V b / t lies in its relative interior.
    """
    unseen = null_space(program.design, rcond=_UNSEEN_SINGULAR_VALUE)
    count, m = unseen.shape[1], len(program.conditions)
    if not count:
        return 0, point
    size = max(float(np.linalg.norm(point)), np.finfo(np.float64).tiny)
    along, held = program.conditions @ unseen, program.conditions @ point / size
    held[held < _TIGHT_SLACK] = 0.0
    answer = linprog(
        np.concatenate([[0.0], np.zeros(count), -np.ones(m)]),
        A_ub=np.hstack([-held[:, None], -along, np.eye(m)]),
        b_ub=np.zeros(m),
        bounds=[(1, _LARGEST_MULTIPLE)] + [(None, None)] * count + [(0, 1)] * m,
        method="highs",
    )
    if answer.status != 0:
        return count, point  # not known to be unique
    multiple, step, slack = answer.x[0], answer.x[1 : count + 1], answer.x[count + 1 :]
    tight = along[slack < 0.5]
    rank = int(np.linalg.matrix_rank(tight, tol=_UNSEEN_SINGULAR_VALUE)) if len(tight) else 0
    return count - rank, _halfway_out(program, point, unseen @ step * (size / multiple))


def _halfway_out(program: ConeProgram, point: Array, inward: Array) -> Array:
    """Halfway from a point of a face to its border, along a direction into it, if that is not too far."""
    slack, change = np.maximum(program.conditions @ point, 0.0), program.conditions @ inward
    length = float(np.linalg.norm(inward))
    if not length:
        return point
    falling = change < -_TIGHT_SLACK * length
    border = float(np.min(slack[falling] / -change[falling], initial=np.inf))
    return point + max(1.0, min(border / 2, float(np.linalg.norm(point)) / length)) * inward
