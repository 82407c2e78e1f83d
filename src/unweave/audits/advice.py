"""The audit in words: the verdict, what each level gives away, what a defender can do.

What is said about a level rests on attacks that were run. That an attack of ours fails shows nothing about
others. The one limit that no attack passes is a count: with P parameters, up to symmetry, and K numbers per
answer, fewer than P / K answers are fewer equations than unknowns, and leave a continuum of networks that
fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from unweave.audits.answer_log import LogCheck
from unweave.audits.curve import LevelSummary, Point
from unweave.audits.level import Level, OwnPrecision
from unweave.audits.result import Defence
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.network import Network
from unweave.recovery.result import Recovery, Status

_CAVEAT = (
    "These are the attacks of this program. A level that holds against them is not proven safe: a better "
    "attack may need fewer queries."
)
_HARDLY_KNOWN_ERROR = 0.5  # median weight error above which weights are not worth a figure
NO_NETWORK = "no network"


def advise(
    recovery: Recovery,
    own: OwnPrecision,
    check: LogCheck | None,
    levels: Sequence[Level],
    budgets: Sequence[int],
    points: Sequence[Point],
    summaries: Sequence[LevelSummary],
    alarm: float,
) -> tuple[str, tuple[str, ...], tuple[Defence, ...], tuple[str, ...]]:
    """Return verdict, recommendations, defences and notes."""
    network = recovery.network
    notes = _notes(recovery, own, check, levels)
    if network is not None and not isinstance(network, Network) and recovery.status.is_recovered:
        return _other_kind(recovery), (_CAVEAT,), (), notes
    if network is None or not may_stand_in(recovery, check):
        return _not_found(recovery, check), _for_unknown(recovery, check), _defences(None, None), notes
    here = f"{_shape(network)} network with {network.n_parameters:,} parameters"
    exactly = f"all parameters of this {here} can be computed from its answers"
    if recovery.status is Status.RECOVERED_UP_TO_AMBIGUITY:
        exactly = f"this {here} can be computed from its answers, up to an ambiguity ({recovery.message})"
    verdict = (
        f"Yes: {exactly}. As it is, {recovery.queries:,} queries were enough, and fresh answers agree to "
        f"{percent(recovery.error)}."
    )
    advice = [_of_level(summary, points, alarm) for summary in summaries if summary.level != Level()]
    advice += [line for budget in budgets if (line := _of_budget(budget, levels, points, alarm))]
    advice += [_limit(network, summaries), _CAVEAT]
    return verdict, tuple(advice), _defences(network, summaries), notes


def _other_kind(recovery: Recovery) -> str:
    """Say that a model that is no network was recovered; leakage curves are for networks."""
    return (
        f"Yes: this model, a {recovery.network.describe()}, can be computed from its answers. As it is, "
        f"{recovery.queries:,} queries were enough, and fresh answers agree to {percent(recovery.error)}."
    )


def may_stand_in(recovery: Recovery, check: LogCheck | None) -> bool:
    """Whether the network found may stand in for the target: recovered, and like every answer given."""
    a_network = isinstance(recovery.network, Network)
    return a_network and recovery.status.is_recovered and check is not None and check.agrees


def _not_found(recovery: Recovery, check: LogCheck | None) -> str:
    if recovery.status.is_recovered and check is not None and not check.agrees:
        return (
            "Not decided: a network was found that agrees with fresh answers, but not with all answers that "
            "were given on the way, so that it may not stand in for the target."
        )
    return (
        f"Not shown: this program did not recover the target within {recovery.queries:,} queries "
        f"({recovery.message or recovery.status.value})."
    )


def _for_unknown(recovery: Recovery, check: LogCheck | None) -> tuple[str, ...]:
    """Return what can still be said when nothing stands in for the target."""
    lines = ["There is no leakage curve: without the network behind the target, attacks cannot be rehearsed."]
    if recovery.network is not None and check is not None and check.rows:
        shares = [f"{share:.1%} to {digits} decimals" for digits, share in sorted(check.alike.items())]
        lines.append(
            "What was found answers like the target, on the "
            f"{check.rows:,} rows that were asked, in {listed(shares)}: a copy need not have the weights to "
            "be useful."
            if shares
            else f"What was found misses the {check.rows:,} answers by at most {check.largest_error:.2g}."
        )
    lines.append(
        "That the recovery did not succeed is no sign of safety: tell it what an attacker may know (hidden, "
        "activation, examples, domain), or allow more queries."
    )
    return tuple(lines)


def _of_level(summary: LevelSummary, points: Sequence[Point], alarm: float) -> str:
    """Return what one level gives away, and when."""
    label = _at(summary.level)
    if summary.first_network is None:
        why = f" ({summary.reason})" if summary.reason else ""
        return f"{label}, {summary.tried:,} queries gave no network{why}."
    mine = [point for point in points if point.level == summary.level and point.has_network]
    if mine and min(point.median_weight_error for point in mine) > _HARDLY_KNOWN_ERROR:
        best = min(mine, key=lambda point: point.fresh_error)
        return (
            f"{label}, {best.queries:,} queries give a network that answers alike to "
            f"{percent(best.fresh_error)}, but with other weights."
        )
    averaged = sorted((point for point in mine if point.way != "bisection"), key=lambda point: point.queries)
    parts = [
        f"{point.queries:,} queries give the weights to {percent(point.median_weight_error)}"
        for point in averaged
    ]
    if summary.alarm_predicted and summary.alarm_after is not None:
        parts.append(f"about {about(summary.alarm_after)} would give {percent(alarm)} (square-root law)")
    if summary.exact_after is not None and summary.level.is_rounded:
        left = percent(summary.exact_error)
        parts.append(f"{summary.exact_after:,} give them to {left}, by bisection")
    if not parts:
        return f"{label}, no attack came to {percent(alarm)}."
    return f"{label}, {listed(_shortened(parts))}."


def _shortened(parts: list[str]) -> list[str]:
    """Say what the parts have in common in the first one only."""
    return [parts[0], *(part.replace("queries give the weights to", "give") for part in parts[1:])]


def _of_budget(budget: int, levels: Sequence[Level], points: Sequence[Point], alarm: float) -> str:
    """Return what may be published to a client with this budget."""
    tried = [level for level in levels if any((p.level, p.budget) == (level, budget) for p in points)]
    # Who is given more digits may throw them away: what is finer than a level that leaks, leaks as well.
    leaks = [
        point.level.sigma
        for point in points
        if point.budget == budget and point.has_network and point.median_weight_error <= alarm
    ]
    worst = max(leaks, default=-1.0)
    held = sorted((level for level in tried if level.sigma > worst), key=lambda level: level.sigma)
    if not tried:
        return ""
    allowed = f"With {budget:,} queries per client"
    if not held:
        return f"{allowed}, every level gives the weights to {percent(alarm)} or better: allow fewer."
    if len(held) == len(tried):
        return f"{allowed}, no attack came to {percent(alarm)} at any level that was tried."
    names = listed([level.label for level in held])
    if len(held) > 2:
        names = f"{held[0].label} and everything coarser"
    return f"{allowed}, {names} held; the rest gives the weights to {percent(alarm)} or better."


def _limit(network: Network, summaries: Sequence[LevelSummary]) -> str:
    firsts = [summary.first_network for summary in summaries if summary.first_network is not None]
    ours = f"The attacks that were run need {min(firsts):,} queries or more. " if firsts else ""
    return (
        f"{ours}No attack can determine all parameters from fewer than {fewest_answers(network):,} answers "
        "without knowing something about them beforehand: these are fewer equations than unknowns. A limit "
        "per client below that is the only one that is proven."
    )


def fewest_answers(network: Network) -> int:
    """Count the answers that give as many equations as symmetry leaves parameters."""
    unknowns, numbers = network.n_parameters, network.n_outputs
    for width, name in zip(network.hidden, network.activations, strict=False):
        if get_activation(name).homogeneity is not None:
            unknowns -= width  # a factor moves from the incoming to the outgoing weights of a unit
    if network.activations[-1] == SOFTMAX:
        unknowns -= network.weights[-1].shape[0] + 1  # what is added to all classes
        numbers -= 1  # probabilities sum to one
    return math.ceil(unknowns / numbers)


def _at(level: Level) -> str:
    return f"With {level.label}" if level.noise > 0 else f"At {level.label}"


def _shape(network: Network) -> str:
    return "-".join(str(width) for width in (network.n_inputs, *network.hidden, network.n_outputs))


def _defences(network: Network | None, summaries: Sequence[LevelSummary] | None) -> tuple[Defence, ...]:
    rounded = [s for s in summaries or () if s.level.is_rounded and s.exact_after is not None]
    measured = ""
    if rounded:
        coarsest = max(rounded, key=lambda summary: summary.level.sigma)
        measured = f" Here {coarsest.exact_after:,} queries were enough at {coarsest.level.label}."
    rows = "" if network is None else f" For this network that is {fewest_answers(network) - 1:,} answers."
    return (
        Defence(
            "Round the answers",
            "Each decimal less makes averaging ten times less precise, and n rows win sqrt(n) back. But "
            "rounding that always answers alike is no noise: an attacker halves the input until the last "
            "digit flips and has an exact equation, one bit per query, whatever the number of "
            "decimals." + measured,
        ),
        Defence(
            "Add noise, then round",
            "Noise stops the halving. It has to be drawn afresh for every answer, repeated rows included: an "
            "offset that stays, or changes slowly with the input, cancels in differences. It costs the "
            "attacker only a square root: ten times the noise, a hundred times the queries for the same "
            "error.",
        ),
        Defence(
            "Limit the number of answers",
            "Per client, over its lifetime, and with clients that act together in mind. Fewer answers than "
            "parameters leave parameters open, whatever the attack." + rows,
        ),
        Defence(
            "Return labels only",
            "Takes the numbers away, not the leak: where the label changes, the boundary can be followed by "
            "the same halving, at a far higher price per parameter, and gives the network up to a common "
            "factor. Not attacked in this audit.",
        ),
        Defence(
            "Coarsen the inputs",
            "Rounding the inputs before the network sees them takes away the fine steps that halving and "
            "short differences need. Averaging over coarse inputs goes on working. Not attacked in this "
            "audit.",
        ),
        Defence(
            "Watch what is asked",
            "These attacks ask rows that no user would: dense crosses around one point, rows far outside of "
            "the data, sequences that close in on one point. All of them can be seen in a log.",
        ),
    )


def _notes(
    recovery: Recovery, own: OwnPrecision, check: LogCheck | None, levels: Sequence[Level]
) -> tuple[str, ...]:
    notes = list(recovery.notes)
    if own.decimals is not None and any((level.decimals or 0) > own.decimals for level in levels):
        notes.append(
            f"the target itself gives {own.decimals} decimals: levels with more are what it gives already"
        )
    elif own.kind == "noisy":
        notes.append(
            f"the target's answers are noisy by themselves (standard deviation {own.sigma:.2g}); the "
            "stand-in answers with fresh noise of that size, and its own weights are only known to what that "
            "noise leaves"
        )
    elif own.kind == "float32":
        notes.append("the target answers in single precision, and so does the stand-in, inputs included")
    if recovery.status is Status.RECOVERED_UP_TO_AMBIGUITY:
        notes.append(
            "other parameters fit as well: weight errors are distances to one of them, and may be large "
            "where the answers agree"
        )
    if check is not None and check.rows < recovery.queries:
        notes.append(
            f"{check.rows:,} of {recovery.queries:,} answers were kept for the check of the stand-in"
        )
    return tuple(notes)


def percent(share: float) -> str:
    """Return a relative error in words: per cent down to a hundredth, then as a power of ten.

    >>> percent(0.0123), percent(4.2e-4), percent(2.2e-15), percent(0.967), percent(1.0)
    ('1.2 %', '0.042 %', '2e-15', '97 %', '100 %')
    """
    if math.isnan(share):
        return NO_NETWORK
    if share >= 0.1:
        return f"{100 * share:.0f} %"
    if share >= 1e-4:
        return f"{100 * share:.2g} %"
    return f"{share:.0e}".replace("e-0", "e-")


def about(count: float) -> str:
    """Return a count rounded to two digits, for predictions.

    >>> about(123456), about(98)
    ('120,000', '98')
    """
    if count < 100:
        return f"{count:.0f}"
    unit = 10 ** (math.floor(math.log10(count)) - 1)
    return f"{round(count / unit) * unit:,}"


def listed(parts: list[str], last: str = "and") -> str:
    """Return ``a, b and c``.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"
