"""Two small hidden layers of units that level off, from values alone.

Layers of few units in few inputs defeat the ways that read one layer after the other: there are too few far
cells, or a unit hides behind another. But then all parameters at once are few, and most random starts of
least squares at a falling ridge end exact (`layered_starts`), in a tenth of a second each. So pairs of widths
are tried in the order of their parameters; the first that is exact is the smallest.

Cost: 12 rows per parameter of the largest pair that is tried, divided by the outputs; rows are reused.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.final_fit import corrected_widths
from unweave.methods.shared.layered_starts import fit_layers, random_layers
from unweave.networks.activations import get_activation
from unweave.networks.saturation import as_logistic
from unweave.networks.standardized import StandardizedSamples
from unweave.networks.value_fit import ValueFitResult
from unweave.numerics.clock import check
from unweave.search import Candidate, Context, Evidence, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs

DEEP_VALUES_ACTIVATIONS = ("tanh", "sigmoid", "erf")


class DeepValuesReason(Reason):
    """Why no network of this class was found."""

    NO_EXACT_START = (
        "{starts} random starts of two hidden layers leave a residual of {residual:.2g} with {first} and "
        "{second} units: wider layers, more of them, or another activation"
    )
    OPEN = "{first} and {second} units fit, and the values do not determine all their parameters"


@dataclass(frozen=True, kw_only=True)
class SmoothDeepValuesOptions:
    """Which widths are tried, and how often."""

    coarsest: float = 1e-12
    """Noise relative to the spread up to which an exact fit is told from a local minimum nearly as good."""
    most_inputs: int = 6
    """Inputs up to which widths are tried: beyond, layers are found one after the other."""
    widest: int = 5
    """Units of the widest layer that is tried when the widths are not told."""
    widest_unseen: int = 3
    """The same where the far field shows no second layer."""
    starts: int = 2
    """Random starts of each pair of widths and activation, round by round, ..."""
    rounds: int = 2
    """... in so many rounds."""
    shrinking: int = 6
    """Random starts with one unit less, where an exact fit leaves parameters open."""
    told_starts: int = 24
    """Random starts when the widths are told."""
    steps: int = 8000
    """Steps of all fits together, after which no further start is made: about ten seconds."""
    most_parameters: int = 150
    """Parameters of the largest network that is tried."""
    rows_per_parameter: float = 12.0
    """Rows that a start is fitted to, divided by the outputs."""
    spare_rows: int = 30
    """Rows besides."""
    near: float = 0.1
    """Residual below which a start is fitted without ridge."""
    exact_residual: float = 3e-14
    """Relative misfit of values that counts as exact."""
    hopeless: float = 0.05
    """Least residual of a round, above which there is no further one."""


class SmoothDeepValuesSearch(Search):
    """Tries pairs of widths from random starts until one is exact."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # Its own, without a spawn: a search that follows draws what it would have drawn without this one.
        self.rng = np.random.default_rng([0x64763, *context.rng.bit_generator.seed_seq.generate_state(2)])
        self._options: SmoothDeepValuesOptions = context.options
        inputs, outputs = self.findings.region.n_inputs, self.findings.n_outputs
        self._points, self._answers = np.zeros((0, inputs)), np.zeros((0, outputs))
        self._best: tuple[ValueFitResult, StandardizedSamples] | None = None
        self._residual, self._starts, self._steps, self._widths = np.inf, 0, 0, (0, 0)

    def run(self) -> None:
        """Try all pairs in rounds."""
        told = self.request.activation
        kinds = ("tanh", "erf") if told is None else (("erf",) if told == "erf" else ("tanh",))
        options, hidden = self._options, self.request.hidden
        starts = options.starts if hidden is None else options.told_starts // options.rounds
        with self.journal.stage("two layers of values") as stage:
            for _ in range(options.rounds if self.findings.layered or hidden is not None else 1):
                for widths, kind, _ in product(self._pairs(), kinds, range(starts)):
                    check()
                    if self._steps > options.steps:
                        break
                    self._try(widths, kind)
                    stage.figures.update(starts=self._starts, residual=float(self._residual))
                    if self._is_exact:
                        self._shrink(kind)
                        self._refuse_open_parameters()
                        return
                if self._residual > options.hopeless:
                    break
        raise GaveUp(
            DeepValuesReason.NO_EXACT_START,
            starts=self._starts,
            residual=self._residual,
            first=self._widths[0],
            second=self._widths[1],
        )

    @property
    def _is_exact(self) -> bool:
        return self._best is not None and self._residual <= self._options.exact_residual

    def _shrink(self, kind: str) -> None:
        """Try narrower layers while the values leave parameters open, as surplus units do."""
        if self.request.hidden is not None:
            return
        while self._best is not None and self._best[0].error_bar is None:
            (first, second), found = self._widths, (self._best, self._residual, self._widths)
            narrower = ((first - 1, second), (first, second - 1))
            for widths, _ in product(narrower, range(self._options.shrinking)):
                if min(widths) < 1:
                    continue
                self._best, self._residual = None, np.inf
                self._try(widths, kind)
                if self._is_exact:
                    break
            else:
                self._best, self._residual, self._widths = found
                return

    def _refuse_open_parameters(self) -> None:
        """Leave to others what an exact fit does not determine: surplus, equal or constant units."""
        if self._best is not None and self._best[0].error_bar is None:
            self._best = None
            raise GaveUp(DeepValuesReason.OPEN, first=self._widths[0], second=self._widths[1])

    def candidate(self) -> Candidate:
        """Return the exact network, if there is one."""
        if self._best is None or not self._is_exact:
            return Candidate()
        fit, samples = self._best
        network = in_own_inputs(samples.network(fit.model), self.findings.region)
        if self.request.activation == "sigmoid":
            network = as_logistic(network)
        evidence = Evidence(
            restarts=self._starts,
            fit_history=fit.history,
            fit_floor=fit.floor,
            prediction_floor=fit.prediction_floor,
            condition=fit.condition,
            parameter_error_bar=fit.error_bar,
        )
        return Candidate(
            network,
            evidence,
            notes=corrected_widths(self.request.hidden, network.hidden),
        )

    def _pairs(self) -> list[tuple[int, int]]:
        """Return the widths to try, those of fewest parameters first."""
        if self.request.hidden is not None:
            first, second = self.request.hidden
            return [(first, second)]
        widest = self._options.widest if self.findings.layered else self._options.widest_unseen
        pairs = product(range(2, widest + 1), range(1, widest + 1))
        small = [pair for pair in pairs if self._parameters(pair) <= self._options.most_parameters]
        return sorted(small, key=self._parameters)

    def _parameters(self, widths: tuple[int, int]) -> int:
        inputs, outputs = self._points.shape[1], self._answers.shape[1]
        return (inputs + 1) * widths[0] + (widths[0] + 1) * widths[1] + (widths[1] + 1) * outputs

    def _try(self, widths: tuple[int, int], kind: str) -> None:
        """Fit from one start, and keep the result if it is the best."""
        options, outputs = self._options, self._answers.shape[1]
        rows = int(options.rows_per_parameter * self._parameters(widths) / outputs) + options.spare_rows
        samples = StandardizedSamples.of(*self._rows(rows))
        self._starts += 1
        layers = (samples.inputs.shape[1], *widths, outputs)
        start = random_layers(layers, get_activation(kind), self.rng)
        found, residual, _ = fit_layers(start, samples.inputs, samples.answers, options.near, self._count)
        if found is not None:
            residual = samples.residual(found.model)
        if residual < self._residual:
            self._residual, self._widths = residual, widths
            self._best = None if found is None else (found, samples)

    def _count(self, step: int, residual: float) -> None:
        self._steps += 1
        self.on_step(step, residual)

    def _rows(self, count: int) -> tuple[Array, Array]:
        """Return ``count`` rows, asking only those that are new."""
        missing = count - len(self._points)
        if missing > 0:
            points = self.findings.region.sample(missing, self.rng)
            answers = self.context.view(points)
            self._points = np.concatenate([self._points, points])
            self._answers = np.concatenate([self._answers, answers])
        return self._points[:count], self._answers[:count]
