"""A network with one hidden layer of smooth units from samples: a start by moments, then least squares.

    1. whiten the inputs, standardise the answers;
    2. Hermite coefficients T_1 .. T_4, the span of the units, and again T_1 .. T_4 inside it, less noisy;
    3. directions, scales and biases of the units (`moments`), outgoing weights by
       linear least squares;
    4. Levenberg-Marquardt on all parameters from about 20 samples per parameter, from several starts: the
       estimate, those of the two halves of the samples, perturbed and then random ones (more of these where
       the halves disagree, so that the samples are too few for moments); the first that is exact on all
       samples ends it, else the best on all samples is fitted once more to as many of them as is cheap.

Only the start needs Gaussian inputs and m <= d; the fit assumes nothing, and samples without noise are fitted
to rounding. Cost: the polynomials of step 2, n p^2 flops with p <= 700; a start some 30 steps of 20 P^3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.methods.samples_smooth.moments import SampleMoments, active_span, sample_moments
from unweave.methods.samples_smooth.starts import (
    StartDirections,
    random_units,
    start_directions,
    units_near_estimate,
    with_outgoing,
)
from unweave.networks.activations import Activation, get_activation
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult, fit_values
from unweave.numerics.hermite.gaussianity import GaussianityEvidence, gaussianity
from unweave.numerics.variable_projection.search import OutOfTime
from unweave.numerics.whitening import Whitening

OnStep = Callable[[int, float], None]
UNRELIABLE_ANGLE = 0.3
"""Radians between the directions from two halves of the samples above which they are too few for a start."""
_FINAL_ENTRIES = 6_000_000  # of the Jacobian of the last fit to noisy samples
_FIRST_STARTS = 3  # for every width where none is told
_HELPS = 0.9  # ratio of residuals below which a unit more was worth it
_USELESS_WIDTHS = 1  # widths without gain that are passed over
_DETERMINED = 1e8  # condition of the scaled Jacobian up to which no unit is superfluous
_IDLE = 1e-6  # effect of a unit on the answers, relative to the largest, below which it may be missing
_PER_PARAMETER = 2.0  # samples per parameter below which widths are not tried


@dataclass(frozen=True)
class SmoothSampleOptions:
    """How hard to try."""

    starts: int = 8
    """Per width, from the moments and about them."""
    random_starts: int = 16
    """More of them, where the samples are too few for the moments; else a third as many."""
    rows_per_parameter: int = 20
    """Samples (times outputs) per parameter that every start is fitted to."""


@dataclass(frozen=True, eq=False)
class SmoothSampleFit:
    """The best network found, and what was measured on the way."""

    network: Network
    residual: float
    """Root mean square misfit of the fitted rows over the answers' spread, worst output."""
    exact: bool
    """Whether that is the answers' own precision."""
    starts: int
    """0 if an affine map is exact, or samples are too few to look for anything else."""
    singular_values: Array
    """(r,) of the coefficients, in units of their noise."""
    angle: float | None
    """Radians by which the directions of the two halves of the samples differ; None without moments."""
    gaussian: GaussianityEvidence | None
    """None where the samples are too few to tell."""
    missing_directions: int
    """Directions in which the inputs do not vary."""
    fitted: ValueFitResult | None = None
    """The least-squares fit behind the network; None if none ended in time, or none was needed."""
    out_of_time: bool = False

    @property
    def reliable(self) -> bool:
        """Whether the samples are enough for the start."""
        return self.angle is None or self.angle <= UNRELIABLE_ANGLE


def fit_smooth_samples(
    x: Array,
    y: Array,
    width: int | None,
    activation: str,
    *,
    floor: float,
    rng: np.random.Generator,
    options: SmoothSampleOptions | None = None,
    on_step: OnStep | None = None,
) -> SmoothSampleFit:
    """Fit ``width`` (None: as many as it takes) smooth units to x (n, d), y (n, K).

    Parameters
    ----------
    floor
        Root mean square misfit, relative to the answers' spread, that counts as exact.
    on_step
        Called with (steps, residual); may raise `OutOfTime`, and the best fit so far is returned.

    Example
    -------
    >>> import unweave
    >>> net = unweave.random_network([3, 2, 1], seed=1000, outer="signed", bias=1)
    >>> x = np.random.default_rng(7).standard_normal((4000, 3))
    >>> rng = np.random.default_rng(0)
    >>> fit = fit_smooth_samples(x, net(x), None, "tanh", floor=1e-10, rng=rng)
    >>> fit.exact, unweave.compare(net, fit.network).parameter_error < 1e-10
    (True, True)
    """
    function = get_activation(activation)
    whitening = Whitening.of(x)
    _check(function, width, whitening.rank)
    return _Search(x, y, whitening, function, floor, rng, options or SmoothSampleOptions(), on_step).run(
        width
    )


def handles(activation: Activation) -> bool:
    """Whether units of this kind can be found: smooth, and no polynomial."""
    return activation.smooth and activation.homogeneity is None


def _check(activation: Activation, width: int | None, rank: int) -> None:
    if not handles(activation):
        raise InvalidInput(
            f"activation must be smooth and no polynomial here. Got {activation.name!r} instead. "
            "Kinked and quadratic units have methods of their own."
        )
    if width is not None and not 1 <= width <= rank:
        raise InvalidInput(
            f"width must be between 1 and {rank}, the number of directions in which the inputs vary, for a "
            f"start by moments. Got {width} instead."
        )


def _fewest_rows(inputs: int) -> int:
    """Enough for an affine fit in each half of the samples, several times over."""
    return 10 * (inputs + 2)


@dataclass(eq=False)
class _Best:
    """The best model so far, in whitened inputs and standardised answers."""

    model: NetworkParameters
    residual: float
    fitted: ValueFitResult | None

    @property
    def width(self) -> int:
        return int(self.model.weights[0].shape[1]) if self.model.depth > 1 else 0

    def information(self, numbers: int) -> float:
        """Bayesian information criterion: the lower, the better for its number of parameters."""
        residual = max(self.residual, float(np.finfo(np.float64).tiny))
        return float(2 * numbers * np.log(residual) + self.model.size * np.log(numbers))


@dataclass(eq=False)
class _Search:
    """One search for the units behind x (n, d) and y (n, K)."""

    x: Array
    y: Array
    whitening: Whitening
    activation: Activation
    floor: float
    rng: np.random.Generator
    options: SmoothSampleOptions
    on_step: OnStep | None
    starts: int = 0
    best: _Best | None = None
    singular_values: Array = field(default_factory=lambda: np.zeros(0))
    basis: Array = field(default_factory=lambda: np.zeros((0, 0)))
    moments: dict[int, SampleMoments] = field(default_factory=dict)
    directions: dict[int, StartDirections] = field(default_factory=dict)
    angles: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.inputs = self.whitening(self.x)
        self.centre = self.y.mean(axis=0)
        spread = self.y.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.answers = (self.y - self.centre) / self.spread

    def run(self, width: int | None) -> SmoothSampleFit:
        rank, late = self.whitening.rank, False
        enough = rank > 0 and len(self.x) >= _fewest_rows(rank)
        evidence = gaussianity(self.inputs, self.rng) if enough else None
        try:
            if enough and (width is not None or not self._affine()):
                self._search(width)
        except OutOfTime:
            late = True
        if self.best is None:
            self._affine(keep=True)
        assert self.best is not None
        network = self._network(self.best.model)
        return SmoothSampleFit(
            network=network,
            residual=self.best.residual,
            exact=self.best.residual <= self.floor,
            starts=self.starts,
            singular_values=self.singular_values,
            angle=self.angles.get(self.best.width, np.inf),
            gaussian=evidence,
            missing_directions=self.x.shape[1] - rank,
            fitted=self.best.fitted,
            out_of_time=late,
        )

    def _affine(self, keep: bool = False) -> bool:
        """Whether no unit is needed; the affine map is kept then, or if told."""
        columns = np.column_stack([self.inputs, np.ones(len(self.inputs))])
        solution = np.linalg.lstsq(columns, self.answers, rcond=None)[0]
        model = NetworkParameters((get_activation("identity"),), (solution[:-1],), (solution[-1],))
        residual = self._residual(model)
        if residual <= self.floor or keep:
            self.best = _Best(model, residual, None)
        return residual <= self.floor

    def _search(self, width: int | None) -> None:
        span = active_span(sample_moments(self.inputs, self.answers))
        self.singular_values = span.singular_values
        self.basis = span.basis
        if width is None:
            self._search_widths(max(span.width, 1))
        else:
            self._try_width(width, range(self.options.starts))
            asked = self.best
            # Units that were told of but leave no trace may not exist; else the width asked for counts.
            fewer = 0 < span.width < width and not self._is_exact()
            if fewer and not self._try_width(span.width, range(_FIRST_STARTS)):
                self.best = asked
            if not self._is_exact():
                self._try_at_random(width)
        self._narrow()
        if not self._is_exact():
            self._refit()

    def _search_widths(self, seen: int) -> None:
        """One unit more as long as that helps, from few starts; then more starts about the best width."""
        rank = self.whitening.rank
        most = min(rank, max(int((self.answers.size / _PER_PARAMETER - 1) // (rank + 2)), 1))
        useless = 0
        for width in range(min(seen, most), most + 1):
            before = np.inf if self.best is None else self.best.residual
            if self._try_width(width, range(_FIRST_STARTS)):
                return
            assert self.best is not None
            useless = 0 if self.best.residual < _HELPS * before else useless + 1
            if useless > _USELESS_WIDTHS:
                break
        assert self.best is not None
        best = self.best.width
        for width in (best, best + 1, best - 1):
            if 1 <= width <= most and self._try_width(width, range(_FIRST_STARTS, self.options.starts)):
                return
        self._try_at_random(self.best.width)

    def _try_at_random(self, width: int) -> None:
        """Random units are a worse start than moments, but not if these are noise or a local minimum's."""
        reliable = self.angles.get(width, np.inf) <= UNRELIABLE_ANGLE
        count = self.options.random_starts // (3 if reliable else 1)
        self._try_width(width, range(self.options.starts, self.options.starts + count))

    def _is_exact(self) -> bool:
        return self.best is not None and self.best.residual <= self.floor

    def _try_width(self, width: int, numbers: range) -> bool:
        """Fit from the starts of these numbers; True once one is exact."""
        if self.on_step is not None:
            self.on_step(0, np.inf if self.best is None else self.best.residual)
        if width not in self.moments:
            basis = np.ascontiguousarray(self.basis[:, :width])
            self.moments[width] = sample_moments(self.inputs, self.answers, basis)
            self.directions[width] = start_directions(self.moments[width])
            self.angles[width] = self.directions[width].angle
        rows = self._rows(width)
        for number in numbers:
            self.starts += 1
            if self._fit(self._start(width, number, rows), rows):
                return True
        return False

    def _start(self, width: int, number: int, rows: IntArray) -> NetworkParameters:
        """Model number 0, 1, .. of the starts, the random ones after all others."""
        if number >= self.options.starts:
            weights, biases = random_units(self.whitening.rank, width, self.rng)
        else:
            weights, biases = units_near_estimate(
                self.moments[width], self.directions[width], self.activation, number, self.rng
            )
            weights = self.basis[:, :width] @ weights
        return with_outgoing(self.activation, weights, biases, self.inputs[rows], self.answers[rows])

    def _rows(self, width: int, entries: int = 0) -> IntArray:
        """Rows for a fit: so many per parameter, or so that the Jacobian has so many entries."""
        size = width * (self.whitening.rank + 1 + self.answers.shape[1]) + self.answers.shape[1]
        wanted = max(self.options.rows_per_parameter * size, entries // size) // self.answers.shape[1]
        if wanted >= len(self.inputs):
            return np.arange(len(self.inputs))
        return np.sort(self.rng.choice(len(self.inputs), wanted, replace=False))

    def _fit(self, start: NetworkParameters, rows: IntArray) -> bool:
        """Fit, keep it if it is the best on all samples for its size; True if it is exact."""
        if self.best is None:
            self.best = _Best(start, self._residual(start), None)
        fitted = fit_values(start, self.inputs[rows], self.answers[rows], on_step=self.on_step)
        found = _Best(fitted.model, self._residual(fitted.model), fitted)
        if found.information(self.answers.size) < self.best.information(self.answers.size):
            self.best = found
        return self._is_exact()

    def _narrow(self) -> None:
        """Take units away as long as the fit stays exact: what was not needed is not in the network."""
        while self.best is not None and self._is_exact() and self.best.width > 1:
            model = self.best.model
            count = self.best.width
            states = self.activation(self.inputs @ model.weights[0] + model.biases[0])
            effect = states.std(axis=0) * np.linalg.norm(model.weights[1], axis=1)
            idle = effect.min() <= _IDLE * effect.max()
            if not idle and self.best.fitted is not None and self.best.fitted.condition < _DETERMINED:
                return
            keep = np.arange(count) != np.argmin(effect)
            rows = self._rows(count - 1)
            kept, known = self.best, model.weights[0][:, keep]
            self.best = None
            start = with_outgoing(
                self.activation, known, model.biases[0][keep], self.inputs[rows], self.answers[rows]
            )
            needed = True
            try:
                needed = not self._fit(start, rows)
            finally:  # also if time runs out in between
                if needed:
                    self.best = kept
            if needed:
                return

    def _refit(self) -> None:
        """The best model once more, to as many rows as is cheap: noise is averaged over them."""
        if self.best is not None and self.best.width:
            self._fit(self.best.model, self._rows(self.best.width, _FINAL_ENTRIES))

    def _residual(self, model: NetworkParameters) -> float:
        misfit = model.values(self.inputs) - self.answers
        return float(np.sqrt(np.mean(misfit**2, axis=0)).max())

    def _network(self, model: NetworkParameters) -> Network:
        """In the inputs and answers as given."""
        first = self.whitening.matrix @ model.weights[0]
        weights, biases = list(model.weights), list(model.biases)
        biases[0] = biases[0] - self.whitening.mean @ first
        weights[0] = first
        weights[-1] = weights[-1] * self.spread
        biases[-1] = biases[-1] * self.spread + self.centre
        return replace(model, weights=tuple(weights), biases=tuple(biases)).to_network()
