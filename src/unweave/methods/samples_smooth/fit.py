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

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput, OutOfTime
from unweave.methods.samples_smooth.ending import Runner
from unweave.methods.samples_smooth.moments import MomentOptions, MomentStarts, active_span, sample_moments
from unweave.methods.shared.sample_evidence import LARGEST_SAMPLE_CONDITION, SAMPLES_PER_PARAMETER
from unweave.networks.activations import Activation, get_activation
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.standardized import StandardizedSamples
from unweave.networks.value_fit import ValueFitResult, fit_values
from unweave.numerics.clock import check, out_of_time
from unweave.numerics.hermite.gaussianity import GaussianityEvidence, gaussianity
from unweave.numerics.variable_projection.prune import OnStep


@dataclass(frozen=True, kw_only=True)
class SmoothSampleOptions:
    """How hard to try from moments."""

    moments: MomentOptions = field(default_factory=MomentOptions)
    """Estimates of the coefficients, and starts about them."""
    starts: int = 8
    """Starts per width, from the moments and about them."""
    first_starts: int = 3
    """Starts of every width at first, when the caller gives none."""
    random_starts: int = 16
    """Random starts where the samples are too few for the moments; else a third as many."""
    rows_per_parameter: int = 20
    """Samples (times outputs) per parameter that every start is fitted to."""
    gain: float = 0.9
    """Ratio of residuals below which a further unit was worth it."""
    useless_widths: int = 1
    """Widths without gain that are passed over."""
    idle_effect: float = 1e-6
    """Effect of a unit on the answers, relative to the largest, below which it may be superfluous."""
    final_entries: int = 6_000_000
    """Entries of the Jacobian of the last fit to noisy samples: it takes that many of them."""


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
    singular_values: Array | None
    """(r,) of the coefficients, in units of their noise; None without moments."""
    angle: float | None
    """Radians by which the directions of the two halves of the samples differ; None without moments."""
    gaussian: GaussianityEvidence | None
    """None where the samples are too few to tell."""
    missing_directions: int
    """Directions in which the inputs do not vary."""
    fitted: ValueFitResult | None = None
    """The least-squares fit behind the network; None if none ended in time, or none was needed."""
    out_of_time: bool = False
    settled: bool = False
    """Whether two starts ended in this fit, so that further ones are of no use."""
    rivals: dict[str, Runner] = field(default_factory=dict)
    """The best fit of every kind that raced for the samples."""

    unreliable_angle: ClassVar[float] = 0.3
    """Radians between the directions from two halves of the samples above which they are too few."""

    @property
    def reliable(self) -> bool:
        """Whether the samples are enough for the start."""
        return self.angle is None or self.angle <= self.unreliable_angle


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

    ``floor`` is the root mean square misfit, relative to the answers' spread, that counts as exact.
    ``on_step`` gets (steps, residual) and may raise `OutOfTime`: the best fit so far is returned.

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
    samples = StandardizedSamples.of(x, y)
    _check(function, width, samples.whitening.rank)
    search = _Search(samples, function, floor, rng, options or SmoothSampleOptions(), on_step)
    return search.run(width, missing_directions=x.shape[1] - samples.whitening.rank)


def handles(activation: Activation) -> bool:
    """Return whether units of this kind can be found: smooth, and no polynomial."""
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


@dataclass(eq=False)
class _Best:
    """The best model so far, in whitened inputs and standardized answers."""

    model: NetworkParameters
    residual: float
    fitted: ValueFitResult | None

    @property
    def width(self) -> int:
        return int(self.model.weights[0].shape[1]) if self.model.depth > 1 else 0

    def information(self, numbers: int) -> float:
        """Return the Bayesian information criterion: the lower, the better for its number of parameters."""
        residual = max(self.residual, float(np.finfo(np.float64).tiny))
        return float(2 * numbers * np.log(residual) + self.model.size * np.log(numbers))


@dataclass(eq=False)
class _Search:
    """One search for the units behind samples."""

    samples: StandardizedSamples
    activation: Activation
    floor: float
    rng: np.random.Generator
    options: SmoothSampleOptions
    on_step: OnStep | None
    starts: int = 0
    best: _Best | None = None
    singular_values: Array = field(default_factory=lambda: np.zeros(0))
    basis: Array = field(default_factory=lambda: np.zeros((0, 0)))
    from_moments: dict[int, MomentStarts] = field(default_factory=dict)
    """By width."""

    def __post_init__(self) -> None:
        self.inputs, self.answers = self.samples.inputs, self.samples.answers
        self.rank, self.residual = self.samples.whitening.rank, self.samples.residual

    def run(self, width: int | None, missing_directions: int) -> SmoothSampleFit:
        late = False
        # Enough for an affine fit in each half of the samples, several times over.
        enough = self.rank > 0 and len(self.inputs) >= 10 * (self.rank + 2)
        evidence = gaussianity(self.inputs, self.rng) if enough else None
        try:
            if enough and (width is not None or not self._affine()):
                self._search(width)
        except OutOfTime:
            late = True
        if self.best is None:
            self._affine(keep=True)
        assert self.best is not None
        return SmoothSampleFit(
            network=self.samples.network(self.best.model),
            residual=self.best.residual,
            exact=self.best.residual <= self.floor,
            starts=self.starts,
            singular_values=self.singular_values,
            angle=self._angle(self.best.width),
            gaussian=evidence,
            missing_directions=missing_directions,
            fitted=self.best.fitted,
            out_of_time=late or (self.best.residual > self.floor and out_of_time()),
        )

    def _affine(self, keep: bool = False) -> bool:
        """Return whether no unit is needed; keep the affine map then, or if ``keep``."""
        columns = np.column_stack([self.inputs, np.ones(len(self.inputs))])
        solution = np.asarray(np.linalg.lstsq(columns, self.answers, rcond=None)[0], dtype=np.float64)
        model = NetworkParameters((get_activation("identity"),), (solution[:-1],), (solution[-1],))
        residual = self.residual(model)
        if residual <= self.floor or keep:
            self.best = _Best(model, residual, None)
        return residual <= self.floor

    def _search(self, width: int | None) -> None:
        options = self.options
        span = active_span(sample_moments(self.inputs, self.answers, options=options.moments))
        self.singular_values = span.singular_values
        self.basis = span.basis
        if width is None:
            self._search_widths(max(span.width, 1))
        else:
            self._try_width(width, range(options.starts))
            asked = self.best
            # Units that the caller gives but that leave no trace may not exist; else that width counts.
            fewer = 0 < span.width < width and not self._is_exact()
            if fewer and not self._try_width(span.width, range(options.first_starts)):
                self.best = asked
            if not self._is_exact():
                self._try_at_random(width)
        self._narrow()
        if self.best is not None and self.best.width and not self._is_exact():
            # Once more, to as many rows as is cheap: noise is averaged over them.
            self._fit(self.best.model, self._rows(self.best.width, options.final_entries))

    def _search_widths(self, seen: int) -> None:
        """Add units as long as that helps, from few starts; then try more starts about the best width."""
        options, equations = self.options, self.answers.size
        most = min(self.rank, max(int((equations / SAMPLES_PER_PARAMETER - 1) // (self.rank + 2)), 1))
        useless = 0
        for width in range(min(seen, most), most + 1):
            before = np.inf if self.best is None else self.best.residual
            if self._try_width(width, range(options.first_starts)):
                return
            assert self.best is not None
            useless = 0 if self.best.residual < options.gain * before else useless + 1
            if useless > options.useless_widths:
                break
        assert self.best is not None
        best = self.best.width
        further = range(options.first_starts, options.starts)
        for width in (best, best + 1, best - 1):
            if 1 <= width <= most and self._try_width(width, further):
                return
        self._try_at_random(self.best.width)

    def _try_at_random(self, width: int) -> None:
        """Try random units: a worse start than moments, unless these are noise or lead to a local minimum."""
        reliable = self._angle(width) <= SmoothSampleFit.unreliable_angle
        count = self.options.random_starts // (3 if reliable else 1)
        self._try_width(width, range(self.options.starts, self.options.starts + count))

    def _angle(self, width: int) -> float:
        """Return the angle between the directions of either half of the samples, infinite without any."""
        return self.from_moments[width].angle if width in self.from_moments else np.inf

    def _is_exact(self) -> bool:
        return self.best is not None and self.best.residual <= self.floor

    def _try_width(self, width: int, numbers: range) -> bool:
        """Fit from the starts of these numbers; True once one is exact."""
        if self.on_step is not None:
            self.on_step(0, np.inf if self.best is None else self.best.residual)
        if width not in self.from_moments:
            basis = np.ascontiguousarray(self.basis[:, :width])
            moments = sample_moments(self.inputs, self.answers, basis, self.options.moments)
            self.from_moments[width] = MomentStarts.of(moments)
        rows = self._rows(width)
        for number in numbers:
            check()
            self.starts += 1
            if self._fit(self._start(width, number, rows), rows):
                return True
        return False

    def _start(self, width: int, number: int, rows: IntArray) -> NetworkParameters:
        """Return model number 0, 1, .. of the starts, the random ones after all others."""
        if number >= self.options.starts:
            largest = self.options.moments.largest_bias
            weights = self.rng.standard_normal((self.rank, width)) / np.sqrt(self.rank)
            biases = self.rng.uniform(-largest, largest, (width,))
        else:
            weights, biases = self.from_moments[width].units(self.activation, number, self.rng)
            weights = self.basis[:, :width] @ weights
        return self._with_outgoing(weights, biases, rows)

    def _with_outgoing(self, weights: Array, biases: Array, rows: IntArray) -> NetworkParameters:
        """Return the model with these units (r, m) and the outgoing weights that fit ``rows`` best."""
        states = self.activation(self.inputs[rows] @ weights + biases)
        columns = np.column_stack([states, np.ones(len(rows))])
        # Singular values that are as good as zero belong to units that are nearly alike.
        solution = np.asarray(np.linalg.lstsq(columns, self.answers[rows], rcond=1e-6)[0], dtype=np.float64)
        functions = (self.activation, get_activation("identity"))
        return NetworkParameters(functions, (weights, solution[:-1]), (biases, solution[-1]))

    def _rows(self, width: int, entries: int = 0) -> IntArray:
        """Draw the rows of a fit, at least as many as give its Jacobian ``entries``."""
        size = width * (self.rank + 1 + self.answers.shape[1]) + self.answers.shape[1]
        wanted = max(self.options.rows_per_parameter * size, entries // size) // self.answers.shape[1]
        if wanted >= len(self.inputs):
            return np.arange(len(self.inputs))
        return np.sort(self.rng.choice(len(self.inputs), wanted, replace=False))

    def _fit(self, start: NetworkParameters, rows: IntArray) -> bool:
        """Fit, keep the model if it is the best on all samples for its size; True if it is exact."""
        if self.best is None:
            self.best = _Best(start, self.residual(start), None)
        fitted = fit_values(start, self.inputs[rows], self.answers[rows], on_step=self.on_step)
        found = _Best(fitted.model, self.residual(fitted.model), fitted)
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
            idle = effect.min() <= self.options.idle_effect * effect.max()
            fitted = self.best.fitted
            if not idle and fitted is not None and fitted.condition < LARGEST_SAMPLE_CONDITION:
                return
            keep = np.arange(count) != np.argmin(effect)
            rows = self._rows(count - 1)
            kept, known = self.best, model.weights[0][:, keep]
            self.best = None
            start = self._with_outgoing(known, model.biases[0][keep], rows)
            needed = True
            try:
                needed = not self._fit(start, rows)
            finally:  # also if time runs out in between
                if needed:
                    self.best = kept
            if needed:
                return
