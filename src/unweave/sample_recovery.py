"""The front door for samples: choose by activation, width, precision and number of samples; fit; verify.

Some rows are held out before anything is fitted. A network counts as recovered only if it answers them to the
precision of the answers: rounding, or decimals, or the spread of repeated inputs. Residuals of unknown origin
are never called noise: such a network is approximate, with standard errors for the case that they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from unweave.access.samples import Samples
from unweave.activations import get_activation
from unweave.arrays import Array
from unweave.candidate import Evidence
from unweave.errors import Interrupted, InvalidInput
from unweave.journal import Journal, Progress
from unweave.network import Network
from unweave.projection.features import SAMPLED, feature_of
from unweave.projection.search import OutOfTime, SearchOptions
from unweave.relu.sample_errors import StandardErrors, standard_errors
from unweave.relu.sample_route import SampleFit, fit_samples
from unweave.result import Certificate, Check, Recovery, Status
from unweave.sample_judge import (
    EXACT,
    NO_RECOVERY,
    OVER_PRECISION,
    PER_PARAMETER,
    HeldOut,
    SampleVerdict,
    ambiguity,
    evidence_of,
    held_out_check,
    held_out_errors,
    judge_quadratic,
)
from unweave.smooth.sample_route import SmoothSampleOptions, handles
from unweave.smooth_samples import SmoothSampleRecovery, recover_smooth

_STREAM = 0x73616D70  # keeps the search's random numbers apart from those of a network planted with its seed
_HELD_OUT = 0.2  # of the rows
_FEWEST_ROWS = 5  # of which some may be held out
_FEW = 0.05
_FIRST_WIDTHS = 16  # units allowed at first, where neither width nor activation is told
_STARTS_UNTOLD = 4  # of smooth units that nobody spoke of
_ROUNDINGS = 100.0  # in units of eps |y|: residual of a fit that is exact
_NOISE_LEFT = 1.2  # in units of the answers' known error: residual at which a search may stop


class _NoQueries:
    """The ledger of passive data: nothing is ever sent."""

    sent = 0


def recover_from_samples(
    samples: Samples,
    hidden: Sequence[int] | None = None,
    activation: str | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    deadline: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    options: SearchOptions | None = None,
) -> Recovery:
    """Recover a network with one hidden layer from samples alone.

    Parameters
    ----------
    samples
        Inputs and answers.
    hidden
        ``[m]`` if the width is known, ``[]`` for an affine map, None to find out.
    activation
        "relu", "leaky_relu", "squared_relu", "quadratic", or a smooth one ("tanh", "sigmoid", "softplus"
        ...; at most as many units as inputs); None tries the first three, then "tanh".
    tolerance
        Relative error on held-out rows that counts as recovered, instead of the answers' own precision.
    deadline
        Seconds after which the best network so far is returned.

    Example
    -------
    >>> import unweave
    >>> net = unweave.random_network([4, 3, 1], activation="relu", seed=1, outer="signed")
    >>> x = np.random.default_rng(7).standard_normal((400, 4))
    >>> result = recover_from_samples(Samples(x, net(x)), hidden=[3], activation="relu")
    >>> result.status.name, unweave.compare(net, result.network).parameter_error < 1e-9
    ('RECOVERED', True)
    """
    width = _checked_width(hidden)
    name = None if activation is None else get_activation(activation).name
    if not (name in (None, "quadratic", *SAMPLED) or _is_smooth(name)):
        raise InvalidInput(
            f"activation must be one of {', '.join(SAMPLED)}, quadratic or smooth (tanh, say) and no other "
            f"polynomial for samples. Got {activation!r} instead."
        )
    return _Run(samples, width, name, seed, tolerance, deadline, progress, options).recover()


def _is_smooth(activation: str | None) -> bool:
    return activation is not None and handles(get_activation(activation))


def _checked_width(hidden: Sequence[int] | None) -> int | None:
    if hidden is None:
        return None
    if len(hidden) > 1:
        raise InvalidInput(
            f"hidden must hold one width for samples. Got {list(hidden)!r} instead. "
            "Networks of several hidden layers are recovered from queries."
        )
    width = int(hidden[0]) if len(hidden) else 0
    if len(hidden) and width < 1:
        raise InvalidInput(f"hidden must hold whole numbers >= 1. Got {list(hidden)!r} instead.")
    return width


class _Run:
    """One recovery from samples."""

    def __init__(
        self,
        samples: Samples,
        width: int | None,
        activation: str | None,
        seed: int,
        tolerance: float | None,
        deadline: float | None,
        progress: Callable[[Progress], None] | None,
        options: SearchOptions | None,
    ) -> None:
        self._samples, self._width, self._activation = samples, width, activation
        self._tolerance, self._options = tolerance, options
        self._rng = np.random.default_rng([_STREAM, seed])
        self._journal = Journal(_NoQueries(), progress)
        self._end = None if deadline is None else time.perf_counter() + deadline
        self._precision = samples.precision()
        self._notes = list(samples.notes)
        self._held = samples.x[:0], samples.y[:0]
        """Rows that no fit sees."""

    def recover(self) -> Recovery:
        fit_rows, held_rows = self._samples.split(self._count_held_out(), self._rng)
        x, y = self._samples.x[fit_rows], self._samples.y[fit_rows]
        held = self._held = self._samples.x[held_rows], self._samples.y[held_rows]
        if self._activation == "quadratic":
            return self._quadratic(x, y, held)
        if _is_smooth(self._activation) and self._width != 0:
            return self._told_smooth(self._smooth(x, y, held, str(self._activation)))
        fits: list[tuple[SampleVerdict, SampleFit, StandardErrors | None]] = []
        attempts = self._attempts(len(x))
        while attempts:
            name, most = attempts.pop(0)
            fit = self._fit(x, y, name, most)
            errors = standard_errors(fit.network, x, y) if fit.network.hidden else None
            fits.append((self._verify(fit, errors, len(x), held), fit, errors))
            if fit.search.interrupted:
                raise Interrupted(self._told(*fits[-1], x, y), None)
            if fits[-1][0].status in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY):
                break
            if self._is_late() or not fit.network.hidden:
                break
            if most is not None and not attempts:
                # Many kinked units imitate smooth ones slowly: a look at these costs less.
                smooth = self._smooth_instead(x, y, held)
                if smooth is not None:
                    return self._told_smooth(smooth)
                # The kind that does better with few units goes on, if their number held it back.
                better = min((entry[1] for entry in fits), key=lambda fit: _information(fit, y.size))
                if better.search.widest >= _FIRST_WIDTHS:
                    squared = better.network.activations[0] == "squared_relu"
                    attempts.append(("squared_relu" if squared else None, None))
        verdict, fit, errors = min(
            fits, key=lambda entry: (_rank(entry[0].status), _information(entry[1], y.size))
        )
        unsolved = verdict.status in (Status.APPROXIMATE, Status.FAILED)
        if self._activation is None and self._width is not None and unsolved:
            smooth = self._smooth_instead(x, y, held)
            if smooth is not None:
                return self._told_smooth(smooth)
        return self._told(verdict, fit, errors, x, y)

    def _attempts(self, rows: int) -> list[tuple[str | None, int | None]]:
        """Activations (None: ReLU or leaky ReLU) in the order they are tried, with the most units allowed.

        Units of the wrong kind imitate others the better the more there are of them, at a price: without a
        width, both kinds are tried with few units first.
        """
        if self._activation is not None:
            return [(self._activation, None)]
        if rows <= PER_PARAMETER * feature_of("squared_relu").count(self._samples.n_inputs):
            return [(None, None)]
        if self._width is not None:
            return [(None, None), ("squared_relu", None)]
        return [(None, _FIRST_WIDTHS), ("squared_relu", _FIRST_WIDTHS)]

    def _count_held_out(self) -> int:
        rows, inputs = len(self._samples), self._samples.n_inputs
        if rows < _FEWEST_ROWS:
            return 0
        if self._activation == "quadratic":
            return max(0, min(int(_HELD_OUT * rows), rows - inputs * (inputs + 1) // 2))
        needed = self._needed_rows()
        few = max(1, int(_FEW * rows))
        return int(np.clip(rows - PER_PARAMETER * needed, few, max(int(_HELD_OUT * rows), 1)))

    def _needed_rows(self) -> float:
        """Parameters of the network asked for (the affine part counts), per output."""
        inputs, outputs = self._samples.n_inputs, self._samples.n_outputs
        name = None if _is_smooth(self._activation) else self._activation
        feature = feature_of(name or "relu")
        width = self._width or 0
        return (width * (inputs + outputs) + feature.count(inputs) * outputs) / outputs

    def _fit(self, x: Array, y: Array, activation: str | None, most: int | None) -> SampleFit:
        floor, noisy = self._floor(y)
        options = self._options or SearchOptions()
        if most is not None:
            options = replace(options, starts=1, most=most)
        with self._journal.stage(f"fit {activation or 'relu or leaky_relu'}") as stage:
            fit = fit_samples(
                x,
                y,
                self._width,
                activation,
                floor=floor,
                rng=self._rng,
                noisy=noisy,
                options=options,
                on_step=self._on_step,
            )
            search = fit.search
            stage.figures.update(
                rows=len(x),
                width=search.fit.units.shape[1],
                starts=search.starts,
                repairs=search.repairs,
                widest=search.widest,
                residual=fit.residual,
                exact=search.exact,
                signs=fit.signs_method,
            )
        return fit

    def _floor(self, y: Array) -> tuple[float, bool]:
        """Relative residual of an exact fit, and whether it is noise."""
        spread = np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)
        precision = self._precision
        rounding = float((np.finfo(np.float64).eps * np.abs(y).max(axis=0) / spread).max()) * _ROUNDINGS
        if precision.kind == "float64":
            return max(EXACT, rounding), False
        over = OVER_PRECISION[precision.kind] if precision.kind == "float32" else _NOISE_LEFT
        share = float(np.sqrt(np.mean((precision.sigma / spread) ** 2))) * over
        if share > NO_RECOVERY:
            return max(EXACT, rounding), False  # whole numbers, say: not rounding that a fit could stop at
        return max(share, EXACT, rounding), precision.kind != "float32"

    def _on_step(self, steps: int, residual: float) -> None:
        self._journal.tell(steps, None, f"steps, residual {residual:.1e}")
        if self._is_late():
            raise OutOfTime

    def _is_late(self) -> bool:
        return self._end is not None and time.perf_counter() > self._end

    def _verify(
        self, fit: SampleFit, errors: StandardErrors | None, fitted: int, held: tuple[Array, Array]
    ) -> SampleVerdict:
        """The verdict on a fit from rows it has not seen."""
        seen = held_out_errors(fit.network, *held, self._precision, self._tolerance, fitted)
        status, message = Status.RECOVERED, f"held-out rows agree to {seen.error:.2g}"
        problem, other = self._problem(fit, seen), ambiguity(fit, errors)
        if seen.share >= 1:
            status = Status.FAILED
            message = (
                f"no network was found that predicts held-out rows better than their mean does ({problem})"
            )
        elif problem:
            status, message = Status.APPROXIMATE, problem
        elif other:
            status, message = Status.RECOVERED_UP_TO_AMBIGUITY, other
        return SampleVerdict(status, seen.error, seen.threshold, seen.rows, message)

    def _problem(self, fit: SampleFit, seen: HeldOut) -> str | None:
        """Why the fit does not count as recovered, None if it does."""
        count, needed = len(self._samples), self._needed_rows()
        if self._width and count < PER_PARAMETER * needed and not seen.precise:
            return (
                f"{count} samples are too few for {self._width} units: the fit has {needed:.0f} free numbers "
                f"per output, so that about {PER_PARAMETER * needed:.0f} samples are needed"
            )
        if not seen.rows:
            return "no sample could be held out, so that nothing verifies the fit"
        if seen.precise:
            return None
        reason = (
            f"the error on {seen.rows} held-out rows is {seen.error:.2g}, "
            f"the answers' precision allows {seen.threshold:.2g}"
        )
        if fit.search.interrupted:
            return f"interrupted; {reason}"
        if fit.search.out_of_time:
            return f"the deadline ended the search; {reason}"
        if self._width is not None and (fit.search.exact_width or 0) > self._width:
            return (
                f"{reason}; {fit.search.exact_width} units fit exactly, {self._width} do not: "
                "leave the width open"
            )
        what = (
            "too few units, a local minimum or noise" if self._width else "noise, or no network of this kind"
        )
        return f"{reason}: {what}, which samples alone cannot tell apart"

    def _told(
        self, verdict: SampleVerdict, fit: SampleFit, errors: StandardErrors | None, x: Array, y: Array
    ) -> Recovery:
        network, search = fit.network, fit.search
        width = network.hidden[0] if network.hidden else 0
        why = "exact fit" if search.exact else "least squares"
        told = "told" if self._width is not None else "not told"
        self._notes.append(
            f"kinked units by variable projection ({why}; width {told}, {search.starts} starts, answers of "
            f"{self._precision.kind} precision, {len(x)} rows fitted)"
        )
        if self._width and width < self._width and search.exact:
            self._notes.append(f"{width} units explain the samples; {self._width} were asked for")
        if fit.missing_directions:
            self._notes.append(
                f"the inputs do not vary in {fit.missing_directions} directions: no weight along them"
            )
        few = width and fit.fewest_beyond < network.n_inputs + 1
        if few:
            self._notes.append(
                f"a unit has only {fit.fewest_beyond} samples on one side: it is poorly determined"
            )
        evidence, checks = evidence_of(verdict, fit, errors, self._floor(y)[0], len(x))
        if evidence.parameter_error_bar is not None and not search.exact:
            self._notes.append(
                f"if the residual is noise, the largest standard error of a parameter is "
                f"{evidence.parameter_error_bar:.2g} (unweave.relu.sample_errors.standard_errors gives all)"
            )
        return self._recovery(verdict, network, evidence, checks)

    def _recovery(
        self, verdict: SampleVerdict, network: Network | None, evidence: Evidence, checks: tuple[Check, ...]
    ) -> Recovery:
        return Recovery(
            network=None if verdict.status is Status.FAILED else network,
            status=verdict.status,
            error=verdict.error,
            message=verdict.message,
            queries=0,
            probing_queries=0,
            verification_queries=0,
            seconds=self._journal.seconds,
            stages=tuple(self._journal.stages),
            certificate=Certificate(checks),
            notes=tuple(self._notes),
            evidence=replace(evidence, fresh_errors=self._held_out_rows(network)),
        )

    def _held_out_rows(self, network: Network | None) -> Array | None:
        """(n,) error of every held-out row relative to the largest answer."""
        x, y = self._held
        largest = float(np.abs(y).max(initial=0.0))
        if network is None or not largest:
            return None
        return np.asarray(np.abs(network(x) - y).max(axis=1) / largest)

    def _smooth(
        self,
        x: Array,
        y: Array,
        held: tuple[Array, Array],
        activation: str,
        options: SmoothSampleOptions | None = None,
    ) -> SmoothSampleRecovery:
        with self._journal.stage(f"fit {activation}") as stage:
            found = recover_smooth(
                x,
                y,
                held,
                self._width,
                activation,
                precision=self._precision,
                floor=self._floor(y)[0],
                tolerance=self._tolerance,
                rng=self._rng,
                options=options,
                on_step=self._on_step,
            )
            stage.figures.update(
                rows=len(x),
                width=found.network.hidden[0] if found.network.hidden else 0,
                starts=found.fit.starts,
                residual=found.fit.residual,
                exact=found.fit.exact,
            )
            if found.fit.angle is not None:
                stage.figures["angle"] = found.fit.angle
        return found

    def _smooth_instead(self, x: Array, y: Array, held: tuple[Array, Array]) -> SmoothSampleRecovery | None:
        """Units of tanh where kinked ones do not fit and nothing was told; None if they do not either."""
        if self._width == 0 or self._is_late():
            return None
        try:
            options = SmoothSampleOptions(starts=_STARTS_UNTOLD, random_starts=0)
            found = self._smooth(x, y, held, "tanh", options)
        except InvalidInput:  # too many units or too few samples for smooth ones: the others stand
            return None
        return found if _rank(found.verdict.status) < _rank(Status.APPROXIMATE) else None

    def _told_smooth(self, found: SmoothSampleRecovery) -> Recovery:
        self._notes.extend(found.notes)
        return self._recovery(found.verdict, found.network, found.evidence, found.checks)

    def _quadratic(self, x: Array, y: Array, held: tuple[Array, Array]) -> Recovery:
        try:
            from unweave.quadratic import recover_quadratic
        except ModuleNotFoundError as error:
            raise InvalidInput(
                "activation must be one of " + ", ".join(SAMPLED) + " for samples. Got 'quadratic' instead."
            ) from error
        if y.shape[1] != 1:
            raise InvalidInput(
                f"samples must have one output for quadratic units. Got {y.shape[1]} instead. "
                "Recover each output by itself."
            )
        with self._journal.stage("fit quadratic") as stage:
            candidate = recover_quadratic(x, y[:, 0], self._width)
            stage.figures.update(rows=len(x))
        self._notes.extend(candidate.notes)
        network = candidate.network
        seen = None
        if network is not None:
            seen = held_out_errors(network, *held, self._precision, self._tolerance, len(x))
        verdict = judge_quadratic(candidate, seen)
        checks = (held_out_check(verdict),) if verdict.rows else ()
        return self._recovery(verdict, candidate.network, candidate.evidence, checks)


def _information(fit: SampleFit, numbers: int) -> float:
    """Bayesian information criterion: the lower, the better the fit for its number of parameters."""
    residual = max(fit.residual, float(np.finfo(np.float64).tiny))
    return float(2 * numbers * np.log(residual) + fit.network.n_parameters * np.log(numbers))


def _rank(status: Status) -> int:
    return list(Status).index(status)
