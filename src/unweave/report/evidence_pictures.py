"""What was measured on the way: spectrum, objective, activations, a profile, the fit, fresh rows."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unweave.recovery.result import FRESH_CHECKS, Certificate, Recovery
from unweave.report.drawing import (
    ACCENT,
    INK,
    QUIET,
    Picture,
    draw,
    logarithmic,
    positive,
    thinned,
    whole_numbers,
)
from unweave.report.facts import Facts

_SAME_GAP = 0.1  # difference of logarithms of two ratios that are one
_ROOM = 1.8  # factor left above and below the points of a logarithmic axis


def evidence_pictures(recovery: Recovery, facts: Facts) -> list[Picture]:
    """The pictures for which there is something to show, in the order of the stages."""
    makers = (_spectrum, _objective, _activations, _profile, _convergence, _fresh_errors)
    pictures = (maker(recovery, facts) for maker in makers)
    return [picture for picture in pictures if picture is not None]


def place_of(certificate: Certificate, *names: str) -> int | None:
    """Place of the first check of one of these names in the certificate."""
    return next((i for i, check in enumerate(certificate) if check.name in names), None)


def _spectrum(recovery: Recovery, facts: Facts) -> Picture | None:
    evidence = recovery.evidence
    if evidence.spectrum is None or len(evidence.spectrum) < 2:
        return None
    values, place = positive(evidence.spectrum), gap_place(recovery)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        index = thinned(len(values), () if place is None else (place - 1, place))
        inside = index if place is None else index[index < place]
        axes.semilogy(inside + 1, values[inside], "o", color=INK, ms=3.5)
        if place is not None:
            beyond = index[index >= place]
            axes.semilogy(beyond + 1, values[beyond], "x", color=ACCENT, ms=4.5)
            axes.axvline(place + 0.5, color=QUIET, ls="--", lw=1)
            _note(axes, place + 0.5, f"{place} before it", len(values))
        axes.set(xlabel="index", ylabel="singular value")
        whole_numbers(axes.xaxis)
        logarithmic(axes.yaxis)

    caption = Markup("{} singular values of {} sampled derivatives. ").format(
        facts("/evidence/spectrum/count"), facts("/evidence/hessians")
    )
    gap, width = facts("/evidence/gap"), facts("/evidence/width")
    if place is None:
        caption += "There is no clear gap, so that no number of neurons stands out."
    elif evidence.gap is None:
        caption = Markup("{} singular values; the first {} (dots) belong to units.").format(
            facts("/evidence/spectrum/count"), width
        )
    elif evidence.misfit is not None:
        caption += Markup(
            "Measured by the noise that they carry, those of neurons end with a gap of {}. The dashed line "
            "is at the width in the end, {}."
        ).format(gap, width)
    else:
        caption += Markup(
            "They fall by a factor of {} at the dashed line: so many dimensions do they span; the "
            "crosses are rounding or truncation. The width in the end: {}."
        ).format(gap, width)
    title = "Spectrum and its gap"
    return Picture("spectrum", title, caption, draw("spectrum", title, paint))


def gap_place(recovery: Recovery) -> int | None:
    """Singular values before the gap: the width, unless the final fit has dropped or added neurons since.

    The gap of a noisy spectrum is relative to the noise and no ratio of its values: then it is the width.
    """
    evidence = recovery.evidence
    spectrum, width, gap = evidence.spectrum, evidence.width, evidence.gap
    if spectrum is None or width is None or not 0 < width < len(spectrum):
        return None
    if gap is None or not np.isfinite(gap) or evidence.misfit is not None:
        return width
    tiny = np.finfo(np.float64).tiny
    distance = np.abs(np.log(np.maximum(spectrum[:-1], tiny) / np.maximum(spectrum[1:], tiny) / gap))
    nearest = int(np.argmin(distance))
    return nearest + 1 if distance[nearest] < _SAME_GAP < distance[width - 1] else width


def _objective(recovery: Recovery, facts: Facts) -> Picture | None:
    accepted, rejected = recovery.evidence.misalignment, recovery.evidence.rejected
    if accepted is None or not len(accepted):
        return None
    refused = np.empty(0) if rejected is None else rejected
    both = positive(np.concatenate([np.sort(accepted), np.sort(refused)]))
    split = len(accepted)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        index = thinned(split)
        axes.semilogy(index + 1, both[index], "o", color=INK, ms=3.5, label="accepted")
        if len(refused):
            index = split + thinned(len(refused))
            axes.semilogy(index + 1, both[index], "x", color=ACCENT, ms=4.5, label="rejected")
            axes.axvline(split + 0.5, color=QUIET, ls="--", lw=1)
        axes.set(xlabel="direction, sorted", ylabel="1 − Φ")
        axes.set_ylim(both.min() / _ROOM, max(both.max() * _ROOM, both.min() * 10))
        whole_numbers(axes.xaxis)
        logarithmic(axes.yaxis)
        if len(refused):
            axes.legend(loc="best")

    caption = Markup(
        "Squared distance of every direction to the span, <span class=formula>1 − Φ</span>: {} accepted "
        "directions (dots), the worst at {}"
    ).format(facts("/evidence/misalignment/count"), facts("/evidence/misalignment/largest"))
    if len(refused):
        caption += Markup("; {} end points were rejected (crosses), the best of them at {}.").format(
            facts("/evidence/rejected/count"), facts("/evidence/rejected/smallest")
        )
    else:
        caption += "; no end point was rejected."
    title = "Objective of the directions"
    return Picture("objective", title, caption, draw("objective", title, paint))


def _activations(recovery: Recovery, facts: Facts) -> Picture | None:
    tried = {
        name: value for name, value in recovery.evidence.activation_residuals.items() if np.isfinite(value)
    }
    if len(tried) < 2:
        return None
    names = sorted(tried, key=lambda name: tried[name])
    values = positive(np.array([tried[name] for name in names]))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        places = np.arange(len(names))[::-1]
        low = values.min() / _ROOM
        axes.hlines(places, low, values, color=QUIET, lw=1)
        axes.semilogx(values[:1], places[:1], "o", color=INK, ms=7)
        axes.semilogx(values[1:], places[1:], "o", color=INK, ms=7, mfc="white")
        axes.set_yticks(places, names)
        axes.set(xlabel="relative misfit of the neurons' profiles", xlim=(low, values.max() * _ROOM))
        axes.set_ylim(-0.6, len(names) - 0.4)
        logarithmic(axes.xaxis)

    caption = Markup(
        "How badly every activation explains the neurons' profiles: {} (filled) fits best, to {}"
    ).format(names[0], facts(f"/evidence/activation_residuals/{names[0]}"))
    caption += Markup("; the next, {}, to {}.").format(
        names[1], facts(f"/evidence/activation_residuals/{names[1]}")
    )
    return Picture("activations", "Which activation", caption, draw("activations", "Which activation", paint))


def _profile(recovery: Recovery, facts: Facts) -> Picture | None:
    samples, curve, order = (
        recovery.evidence.profile_samples,
        recovery.evidence.profile_curve,
        recovery.evidence.profile_order,
    )
    if samples is None or curve is None or order is None:
        return None

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(*curve, "-", color=INK, label="fitted")
        axes.plot(*samples, "o", color=ACCENT, mfc="white", ms=5, label="sampled")
        axes.set(xlabel="t = u · x", ylabel="profile" if order == 0 else "its second derivative")
        axes.legend(loc="best")

    what = (
        "values along a line on which only this neuron moves"
        if order == 0
        else "its part in the sampled Hessians"
    )
    caption = Markup(
        "The neuron with the median misfit, as a function of one variable: {} (circles, {} of them) and the "
        "profile that was fitted to them (line), before the final fit."
    ).format(what, facts("/evidence/profile_samples/shape/1"))
    return Picture(
        "profile", "Profile of one neuron", caption, draw("profile", "Profile of one neuron", paint)
    )


def _convergence(recovery: Recovery, facts: Facts) -> Picture | None:
    history, floor = recovery.evidence.fit_history, recovery.evidence.fit_floor
    if len(history) < 2:
        return None
    values = positive(np.array(history))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        index = thinned(len(values))
        axes.semilogy(index, values[index], "o-", color=INK)
        if floor:
            axes.axhline(floor, color=ACCENT, ls="--", lw=1.2)
            above = floor > values[0] / _ROOM**2  # on the left, on the side where no residual comes
            axes.annotate(
                "rounding or noise",
                (0.02, floor),
                (0, 3 if above else -3),
                xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                va="bottom" if above else "top",
                color=ACCENT,
            )
        axes.set(xlabel="step", ylabel="residual (root mean square)")
        low, high = min(values.min(), floor or np.inf), max(values.max(), floor or 0.0)
        room = _ROOM * (high / low) ** 0.14
        axes.set_ylim(low / room, high * room)
        whole_numbers(axes.xaxis)
        logarithmic(axes.yaxis)

    last = len(history) - 1
    caption = Markup(
        "Residual of the final fit relative to the outputs' spread, step by step: from {} to {}"
    ).format(facts("/evidence/fit_history/0"), facts(f"/evidence/fit_history/{last}"))
    if floor:
        caption += Markup("; rounding or noise alone would leave {} (dashed)").format(
            facts("/evidence/fit_floor")
        )
    title = "Convergence of the final fit"
    return Picture("convergence", title, caption + ".", draw("convergence", title, paint))


def _fresh_errors(recovery: Recovery, facts: Facts) -> Picture | None:
    errors = recovery.evidence.fresh_errors
    if errors is None or len(errors) < 2:
        return None
    values = positive(np.sort(errors))
    place = place_of(recovery.certificate, *FRESH_CHECKS)
    threshold = None if place is None else recovery.certificate.checks[place].threshold

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        index = thinned(len(values))
        axes.semilogy(100 * (index + 1) / len(values), values[index], "-", color=INK, lw=2)
        if threshold and np.isfinite(threshold):
            axes.axhline(threshold, color=ACCENT, ls="--", lw=1.2)
            axes.annotate(
                "allowed", (1, threshold), (0, 3), textcoords="offset points", va="bottom", color=ACCENT
            )
            axes.set_ylim(top=max(threshold, values.max()) * _ROOM**2)
        axes.set(xlabel="rows with at most this error (%)", ylabel="relative error", xlim=(0, 101))
        logarithmic(axes.yaxis)

    caption = Markup("Errors on {} rows that nothing was fitted to: median {}, largest {}").format(
        facts("/evidence/fresh_errors/count"),
        facts("/evidence/fresh_errors/median"),
        facts("/evidence/fresh_errors/largest"),
    )
    if place is not None and threshold is not None:
        caption += Markup("; the answers' precision allows {} (dashed)").format(
            facts(f"/certificate/{place}/threshold")
        )
    title = "Error on fresh rows"
    return Picture("fresh", title, caption + ".", draw("fresh", title, paint))


def _note(axes: Axes, x: float, text: str, count: int) -> None:
    """Write ``text`` beside a vertical line, where a falling curve leaves room: low on its left, or high."""
    left = x > 0.4 * count
    axes.annotate(
        text,
        (x, 0.03 if left else 0.97),
        (-5 if left else 5, 0),
        xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        ha="right" if left else "left",
        va="bottom" if left else "top",
    )
