"""Smooth units from samples: the fit, the verdict on it from held-out rows, and what the user should know.

The method (`start_and_fit`) needs Gaussian inputs and enough samples only to find its start.
Where that fails, or there are more units than inputs, random starts are tried
(`value_search`). Nothing of this is a hypothesis of the verdict: a network that answers rows
it has not seen to the precision of the answers is recovered, whatever led to it. If none does, what was
missing is said.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.methods.samples_smooth.start_and_fit import (
    UNRELIABLE_ANGLE,
    OnStep,
    SmoothSampleFit,
    SmoothSampleOptions,
    fit_smooth_samples,
)
from unweave.methods.shared.held_out import HeldOut, SplitSamples
from unweave.methods.shared.sample_verdict import (
    LARGEST_CONDITION,
    NOTHING_HELD_OUT,
    PER_PARAMETER,
    SampledNetwork,
    SampleVerdict,
    fewer_units_note,
    held_out_checks,
    imprecise,
    missing_directions_note,
    rate_check,
    residual_check,
    undetermined_weights,
    verdict_of,
)
from unweave.methods.shared.value_search import MOST_INPUTS, MOST_INPUTS_TOLD, ROUNDS, search_values
from unweave.networks.activations import get_activation
from unweave.numerics.whitening import Whitening
from unweave.recovery.result import Check
from unweave.search.candidate import Evidence
from unweave.search.journal import Journal

_BRIEF = SmoothSampleOptions(starts=1, random_starts=0)  # where more units than inputs are told of
_FEW_STARTS = (6,)  # of every size, after moments


def fit_smooth(
    samples: SplitSamples,
    width: int | None,
    activation: str,
    *,
    rng: np.random.Generator,
    journal: Journal,
    on_step: OnStep,
    options: SmoothSampleOptions | None = None,
) -> SampledNetwork:
    """Fit units of ``activation`` and judge them by the held-out rows."""
    floor, rows = samples.floor()[0], len(samples.x)
    with journal.stage(f"fit {activation}") as stage:
        fit = _fitted(samples, width, activation, floor, rng, options, on_step)
        stage.figures.update(
            rows=rows,
            width=fit.network.hidden[0] if fit.network.hidden else 0,
            starts=fit.starts,
            residual=fit.residual,
            exact=fit.exact,
        )
        if fit.angle is not None:
            stage.figures["angle"] = fit.angle
    seen = samples.errors_of(fit.network)
    verdict = verdict_of(seen, _problem(fit, seen, samples.count, width), _ambiguity(fit))
    checks = _checks(fit, verdict, floor, rows)
    return SampledNetwork(fit.network, verdict, _evidence(fit, floor), checks, _notes(fit, width, activation))


def _fitted(
    samples: SplitSamples,
    width: int | None,
    activation: str,
    floor: float,
    rng: np.random.Generator,
    options: SmoothSampleOptions | None,
    on_step: OnStep,
) -> SmoothSampleFit:
    """The fit from moments, or that from random starts where it is exact or there are no moments to use."""
    x, y = samples.x, samples.y
    rank = Whitening.of(x).rank
    by_moments = width is None or width <= rank
    first = fit_smooth_samples(
        x,
        y,
        width if by_moments else rank,
        activation,
        floor=floor,
        rng=rng,
        options=options if by_moments else _BRIEF,
        on_step=on_step,
    )
    most = MOST_INPUTS if width is None else MOST_INPUTS_TOLD
    if first.exact or first.out_of_time or rank > most:
        return first
    second = search_values(
        x,
        y,
        width,
        [get_activation(activation)],
        floor=floor,
        rng=rng,
        rounds=_FEW_STARTS if by_moments else ROUNDS,
        on_step=on_step,
    )
    if second is None or (by_moments and not second.exact):
        return first
    return replace(
        first,
        network=second.network,
        residual=second.residual,
        exact=second.exact,
        starts=first.starts + second.starts,
        angle=None,
        fitted=second.fitted,
        out_of_time=second.out_of_time,
    )


def _problem(fit: SmoothSampleFit, seen: HeldOut, rows: int, width: int | None) -> str | None:
    """Why the fit does not count as recovered, None if it does."""
    if not seen.rows:
        return NOTHING_HELD_OUT
    needed = PER_PARAMETER * fit.network.n_parameters / fit.network.n_outputs
    if rows < needed:
        return (
            f"{rows} samples are too few for a network of {fit.network.n_parameters} parameters: "
            f"about {needed:.0f} are needed"
        )
    if seen.precise:
        return None
    reason = imprecise(seen)
    if fit.out_of_time:
        return f"the deadline ended the search; {reason}"
    if not fit.starts:
        return f"{rows} samples are too few to look for units of {fit.network.n_inputs} inputs; {reason}"
    causes = []
    if not fit.reliable:
        causes.append(
            f"too few samples (the directions of units from the two halves of them differ by "
            f"{fit.angle:.2f} > {UNRELIABLE_ANGLE} radians)"
        )
    if fit.angle is not None and fit.gaussian is not None and not fit.gaussian.is_plausible:
        causes.append("inputs that are not Gaussian, for which the start of the fit is made")
    causes.append("noise, a local minimum or units of another kind")
    if width is None and fit.network.n_inputs > MOST_INPUTS:
        causes.append(f"more units than the {fit.network.n_inputs} inputs, which only queries can tell")
    return f"{reason}: {', or '.join(causes)}"


def _ambiguity(fit: SmoothSampleFit) -> str | None:
    if fit.missing_directions:
        return undetermined_weights(fit.missing_directions)
    if fit.fitted is not None and fit.fitted.condition > LARGEST_CONDITION:
        return "the answers agree, but the samples leave some parameters undetermined"
    return None


def _evidence(fit: SmoothSampleFit, floor: float) -> Evidence:
    width = fit.network.hidden[0] if fit.network.hidden else 0
    history = () if fit.fitted is None else fit.fitted.history
    return Evidence(
        spectrum=fit.singular_values,
        width=width,
        found=width,
        restarts=fit.starts,
        fit_history=(*history, fit.residual),
        fit_floor=floor,
        condition=None if fit.fitted is None else fit.fitted.condition,
        parameter_error_bar=None if fit.fitted is None else fit.fitted.error_bar,
    )


def _checks(fit: SmoothSampleFit, verdict: SampleVerdict, floor: float, rows: int) -> tuple[Check, ...]:
    checks = [*held_out_checks(verdict), residual_check(fit.residual, floor), rate_check(fit.network, rows)]
    if fit.angle is not None and np.isfinite(fit.angle):
        implies = (
            f"radians between the starts from half the samples: up to {UNRELIABLE_ANGLE} they are enough"
        )
        checks.append(Check("half-sample angle", fit.angle, None, None, implies))
    return tuple(checks)


def _notes(fit: SmoothSampleFit, width: int | None, activation: str) -> tuple[str, ...]:
    why = "exact fit" if fit.exact else "least squares"
    told = "not told" if width is None else "told"
    way = "random starts" if fit.angle is None else "moments"
    notes = [f"{activation} units by {way} and least squares ({why}; width {told}, {fit.starts} starts)"]
    if not fit.network.hidden:
        notes = [f"an affine map by least squares; no {activation} units were looked for"]
    if fit.angle is not None and fit.gaussian is not None and not fit.gaussian.is_plausible:
        notes.append(f"{fit.gaussian}; the moments that start the fit are then only a guess")
    found = fit.network.hidden[0] if fit.network.hidden else 0
    if width and found < width and fit.exact:
        notes.append(fewer_units_note(found, width))
    if fit.missing_directions:
        notes.append(missing_directions_note(fit.missing_directions))
    return tuple(notes)
