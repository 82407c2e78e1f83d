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

from unweave.errors import Interrupted, InvalidInput
from unweave.methods.samples_quadratic.fit import fit_quadratic
from unweave.methods.samples_relu.fit import KinkedFit, KinkedFitter, free_numbers
from unweave.methods.samples_smooth.fit import fit_smooth
from unweave.methods.samples_smooth.start_and_fit import SmoothSampleOptions, handles
from unweave.methods.shared.held_out import SplitSamples
from unweave.methods.shared.sample_verdict import PER_PARAMETER, SampledNetwork
from unweave.networks.activations import get_activation
from unweave.numerics.variable_projection.features import SAMPLED, feature_of
from unweave.numerics.variable_projection.search import OutOfTime, SearchOptions
from unweave.recovery.result import Certificate, Recovery, Status
from unweave.search.journal import Journal, Progress
from unweave.targets.samples import Samples

_STREAM = 0x73616D70  # keeps the search's random numbers apart from those of a network planted with its seed
_HELD_OUT = 0.2  # of the rows
_FEWEST_ROWS = 5  # of which some may be held out
_FEW = 0.05
_FIRST_WIDTHS = 16  # units allowed at first, where neither width nor activation is told
_STARTS_UNTOLD = 4  # of smooth units that nobody spoke of


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

    def recover(self) -> Recovery:
        x, y = self._samples.x, self._samples.y
        fitted, held = self._samples.split(self._count_held_out(), self._rng)
        samples = SplitSamples(x[fitted], y[fitted], x[held], y[held], self._precision, self._tolerance)
        if self._activation == "quadratic":
            return self._told(fit_quadratic(samples, self._width, self._journal), samples)
        if _is_smooth(self._activation) and self._width != 0:
            return self._told(self._smooth(samples, str(self._activation)), samples)
        fitter = KinkedFitter(
            samples,
            self._width,
            self._needed_rows(),
            self._options,
            self._rng,
            self._journal,
            self._on_step,
        )
        fits: list[KinkedFit] = []
        attempts, numbers = self._attempts(len(samples.x)), samples.y.size
        while attempts:
            name, most = attempts.pop(0)
            found = fitter.fit(name, most)
            fits.append(found)
            if found.fit.search.interrupted:
                raise Interrupted(self._told(fitter.told(found), samples), None)
            if found.verdict.solved or self._is_late() or not found.fit.network.hidden:
                break
            if most is not None and not attempts:
                # Many kinked units imitate smooth ones slowly: a look at these costs less.
                smooth = self._smooth_instead(samples)
                if smooth is not None:
                    return self._told(smooth, samples)
                # The kind that does better with few units goes on, if their number held it back.
                better = min(fits, key=lambda each: each.information(numbers)).fit
                if better.search.widest >= _FIRST_WIDTHS:
                    squared = better.network.activations[0] == "squared_relu"
                    attempts.append(("squared_relu" if squared else None, None))
        best = min(fits, key=lambda each: (_rank(each.verdict.status), each.information(numbers)))
        if self._activation is None and self._width is not None and not best.verdict.solved:
            smooth = self._smooth_instead(samples)
            if smooth is not None:
                return self._told(smooth, samples)
        return self._told(fitter.told(best), samples)

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
        name = None if _is_smooth(self._activation) else self._activation
        return free_numbers(name, self._width, self._samples.n_inputs, self._samples.n_outputs)

    def _on_step(self, steps: int, residual: float) -> None:
        self._journal.tell(steps, None, f"steps, residual {residual:.1e}")
        if self._is_late():
            raise OutOfTime

    def _is_late(self) -> bool:
        return self._end is not None and time.perf_counter() > self._end

    def _smooth(
        self, samples: SplitSamples, activation: str, options: SmoothSampleOptions | None = None
    ) -> SampledNetwork:
        return fit_smooth(
            samples,
            self._width,
            activation,
            rng=self._rng,
            journal=self._journal,
            on_step=self._on_step,
            options=options,
        )

    def _smooth_instead(self, samples: SplitSamples) -> SampledNetwork | None:
        """Units of tanh where kinked ones do not fit and nothing was told; None if they do not either."""
        if self._width == 0 or self._is_late():
            return None
        try:
            options = SmoothSampleOptions(starts=_STARTS_UNTOLD, random_starts=0)
            found = self._smooth(samples, "tanh", options)
        except InvalidInput:  # too many units or too few samples for smooth ones: the others stand
            return None
        return found if found.verdict.solved else None

    def _told(self, found: SampledNetwork, samples: SplitSamples) -> Recovery:
        network, verdict = found.network, found.verdict
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
            certificate=Certificate(found.checks),
            notes=(*self._samples.notes, *found.notes),
            evidence=replace(
                found.evidence, fresh_errors=None if network is None else samples.row_errors(network)
            ),
        )


def _rank(status: Status) -> int:
    return list(Status).index(status)
