"""The audit in words: the verdict, one recommendation, what each level gives away, what a defender can do.

What is said about a level rests on attacks that were run. That an attack of ours fails shows nothing about
others. The one limit that no attack passes is a count: with P parameters, up to symmetry, and K numbers per
answer, fewer than P / K answers are fewer equations than unknowns, and leave a continuum of networks that
fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unweave.audits.answer_log import LogCheck
from unweave.audits.curve import LevelSummary, Point, distinct
from unweave.audits.findings import leaks
from unweave.audits.level import Level, OwnPrecision
from unweave.audits.result import Defence
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.network import Network
from unweave.recovery.result import Recovery, Status
from unweave.recovery.wording import about, counted, listed, percent

_CAVEAT = (
    "These are the attacks of this program. A level that held against them is not proven safe: a better "
    "attack may need fewer queries."
)
_WORTH_TELLING = 0.5  # an error is told if it is at most this share of the one told before, or of one


@dataclass(frozen=True)
class Advice:
    """What the audit says."""

    verdict: str
    recommendation: str
    details: tuple[str, ...]
    defences: tuple[Defence, ...]
    notes: tuple[str, ...]


def advise(
    recovery: Recovery,
    own: OwnPrecision,
    check: LogCheck | None,
    levels: Sequence[Level],
    budgets: Sequence[int],
    points: Sequence[Point],
    summaries: Sequence[LevelSummary],
    alarm: float,
    interrupted: bool = False,
) -> Advice:
    """Put what was measured into words."""
    network = recovery.network
    notes = _notes(recovery, own, check, levels)
    if network is not None and not isinstance(network, Network) and recovery.status.is_recovered:
        limit = f"Allow each client far fewer than {recovery.queries:,} queries over its lifetime."
        return Advice(_other_kind(recovery), limit, (_CAVEAT,), (), notes)
    if network is None or not may_stand_in(recovery, check):
        cut = interrupted and not recovery.status.is_recovered
        verdict = _cut_short(recovery) if cut else _not_found(recovery, check)
        todo = (
            "Repeat the audit and let it finish."
            if cut
            else "Do not take this for safety: repeat the audit with what an attacker may know (hidden, "
            "activation, examples, domain) or with more queries."
        )
        return Advice(verdict, todo, _for_unknown(recovery, check), _defences(None, None), notes)
    details = [_of_level(summary, points, alarm) for summary in summaries if summary.level != Level()]
    details += [line for budget in budgets if (line := _of_budget(budget, levels, points, alarm))]
    details += [_limit(network, points, alarm), _CAVEAT]
    complete = len(summaries) == len(levels)
    return Advice(
        _found(recovery, network),
        _recommendation(network, levels, budgets, points, alarm, complete),
        tuple(details),
        _defences(network, summaries),
        notes,
    )


def _found(recovery: Recovery, network: Network) -> str:
    here = f"{_shape(network)} network ({counted(network.n_parameters, 'parameter')})"
    agree = f"fresh answers agree to {percent(recovery.error)}"
    cost = counted(recovery.queries, "query", "queries")
    if recovery.status is Status.RECOVERED_UP_TO_AMBIGUITY:
        return (
            f"Yes: {cost} gave away the function of this {here}, and its weights up to an ambiguity "
            f"({recovery.message}); {agree}."
        )
    return f"Yes: {cost} gave away all weights of this {here}, and with them its function; {agree}."


def _recommendation(
    network: Network,
    levels: Sequence[Level],
    budgets: Sequence[int],
    points: Sequence[Point],
    alarm: float,
    complete: bool,
) -> str:
    """Return what to do, in one sentence: the largest budget at which a level held, and the finest such."""
    if not complete:
        return "Repeat the audit and let it finish before deciding: attacks are missing."
    for budget in sorted(budgets, reverse=True):
        held = [level for level, leak in leaks(levels, budget, points, alarm).items() if leak == "nothing"]
        if not held:
            continue
        finest = min(held, key=lambda level: level.sigma)
        limit = f"allow each client at most {budget:,} queries over its lifetime"
        how = f"{limit[0].upper()}{limit[1:]}" if finest == Level() else f"{_measure(finest)} and {limit}"
        return f"{how}: no attack took the weights or the function within that."
    return (
        f"Allow each client fewer than {counted(fewest_answers(network), 'query', 'queries')} over its "
        "lifetime: every level that was tried gave away the weights or the function within "
        f"{min(budgets):,} queries."
    )


def _measure(level: Level) -> str:
    if level.noise > 0:
        return f"Add fresh noise of standard deviation {level.noise:g} to every answer"
    return f"Round the answers to {level.label}"


def _other_kind(recovery: Recovery) -> str:
    """Say that a model that is no network was recovered; leakage curves are for networks."""
    return (
        f"Yes: {counted(recovery.queries, 'query', 'queries')} gave away this model, a "
        f"{recovery.network.describe()}; fresh answers agree to {percent(recovery.error)}."
    )


def may_stand_in(recovery: Recovery, check: LogCheck | None) -> bool:
    """Whether the network found may stand in for the target: recovered, and like every answer given."""
    a_network = isinstance(recovery.network, Network)
    return a_network and recovery.status.is_recovered and check is not None and check.agrees


def _cut_short(recovery: Recovery) -> str:
    return (
        "Not decided: the audit was interrupted during the recovery of the target, after "
        f"{counted(recovery.queries, 'query', 'queries')}."
    )


def _not_found(recovery: Recovery, check: LogCheck | None) -> str:
    if recovery.status.is_recovered and check is not None and not check.agrees:
        return (
            "Not decided: a network was found that agrees with fresh answers, but not with every answer "
            "given before, so it may not stand in for the target."
        )
    return (
        f"Not shown: this program did not recover the target within "
        f"{counted(recovery.queries, 'query', 'queries')} ({recovery.message or recovery.status.value})."
    )


def _for_unknown(recovery: Recovery, check: LogCheck | None) -> tuple[str, ...]:
    """Return what can still be said when nothing stands in for the target."""
    lines = ["There is no leakage curve: without the network behind the target, attacks cannot be rehearsed."]
    if recovery.network is not None and check is not None and check.rows:
        shares = [f"{share:.1%} to {digits} decimals" for digits, share in sorted(check.alike.items())]
        lines.append(
            f"The network found gives the target's answers on {listed(shares)} of the {check.rows:,} rows "
            "that were asked: a copy can be useful without the weights."
            if shares
            else f"The network found misses the {check.rows:,} answers by at most {check.largest_error:.2g}."
        )
    lines.append("A recovery that does not succeed is no sign of safety.")
    return tuple(lines)


def _of_level(summary: LevelSummary, points: Sequence[Point], alarm: float) -> str:
    """Return what one level gives away, and when: each attack that improves on those with fewer queries."""
    label = _at(summary.level)
    if summary.first_network is None:
        why = f" ({summary.reason})" if summary.reason else ""
        return f"{label}, {summary.tried:,} queries gave no network{why}."
    mine = [point for point in distinct(points) if point.level == summary.level and point.has_network]
    mine.sort(key=lambda point: point.queries)
    if all(point.leak(alarm) != "weights" for point in mine):
        best = min(mine, key=lambda point: (point.leak(alarm) == "nothing", point.fresh_error))
        copied = "copy the function" if best.leak(alarm) == "function" else "give a network"
        text = (
            f"{label}, {best.queries:,} queries {copied} without the weights: it answers "
            f"{percent(best.share_alike)} of fresh rows alike and errs by at most {percent(best.fresh_error)}"
        )
        if summary.alarm_predicted and summary.alarm_after is not None:
            text += f"; about {about(summary.alarm_after)} would give the weights to {percent(alarm)}"
        return f"{text}."
    parts: list[str] = []
    known = 1.0
    for point in mine:
        if point.median_weight_error <= _WORTH_TELLING * known:
            known = point.median_weight_error
            by = " by bisection" if point.way == "bisection" else ""
            what = "queries give the weights to" if not parts else "give them to"
            parts.append(f"{point.queries:,} {what} {percent(known)}{by}")
    return f"{label}, {listed(parts)}."


def _of_budget(budget: int, levels: Sequence[Level], points: Sequence[Point], alarm: float) -> str:
    """Return what held against a client with this budget."""
    found = leaks(levels, budget, points, alarm)
    held = sorted(
        (level for level, leak in found.items() if leak == "nothing"), key=lambda level: level.sigma
    )
    within = f"Within {budget:,} queries"
    if not found:
        return ""
    if not held:
        return f"{within}, every level gave away the weights or the function."
    if len(held) == len(found):
        return f"{within}, every level held: no attack took the weights or the function."
    names = listed([_name(level) for level in held])
    if len(held) > 2 and max(level.sigma for level in set(found) - set(held)) < held[0].sigma:
        names = f"{_name(held[0])} and everything coarser"
    gave = [_name(level) for level, leak in found.items() if leak != "nothing"]
    return f"{within}, {names} held; {listed(gave)} did not."


def _limit(network: Network, points: Sequence[Point], alarm: float) -> str:
    spent = [point.queries for point in points if point.leak(alarm) != "nothing"]
    ours = f"The cheapest attack that succeeded asked {min(spent):,} queries. " if spent else ""
    return (
        f"{ours}No attack can determine all parameters from fewer than {fewest_answers(network):,} answers "
        "unless it knows something about them beforehand, because there are fewer equations than unknowns. "
        "Only a limit per client below that number is proven."
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


def _name(level: Level) -> str:
    return "the answers as they are" if level == Level() else level.label


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
            "Each decimal removed makes averaging ten times less precise, and n rows win sqrt(n) back. But "
            "rounding is not noise: the same row always gets the same answer, so an attacker bisects for the "
            "input at which the last digit flips and gains an exact equation, one bit per query, whatever "
            "the number of decimals." + measured,
        ),
        Defence(
            "Add noise, then round",
            "Noise stops bisection if it is drawn afresh for every answer, repeated rows included: an offset "
            "that stays, or changes slowly with the input, cancels in differences. Averaging only pays a "
            "square root: ten times the noise costs a hundred times the queries for the same error.",
        ),
        Defence(
            "Limit the number of answers",
            "Per client, over its lifetime, and with colluding clients in mind. Fewer answers than "
            "parameters leave parameters open, whatever the attack." + rows,
        ),
        Defence(
            "Return labels only",
            "This removes the numbers, not the leak: an attacker follows the decision boundary by the same "
            "bisection, at a far higher price per parameter, and obtains the network up to a common factor. "
            "Not attacked in this audit.",
        ),
        Defence(
            "Coarsen the inputs",
            "Rounding the inputs before the network sees them removes the fine steps that bisection and "
            "short differences need. Averaging over coarse inputs still works. Not attacked in this audit.",
        ),
        Defence(
            "Watch the queries",
            "These attacks ask rows that no user would: dense crosses around one point, rows far outside the "
            "data, sequences that close in on one point. Replay the exported trace to see whether your "
            "detector notices.",
        ),
    )


def _notes(
    recovery: Recovery, own: OwnPrecision, check: LogCheck | None, levels: Sequence[Level]
) -> tuple[str, ...]:
    notes = list(recovery.notes)
    if own.decimals is not None and any((level.decimals or 0) > own.decimals for level in levels):
        notes.append(
            f"the target itself gives {own.decimals} decimals: a level with more decimals changes nothing"
        )
    elif own.kind == "noisy":
        notes.append(
            f"the target's answers are noisy (standard deviation {own.sigma:.2g}): the stand-in answers with "
            "fresh noise of that size, and its weights are known only as well as that noise allows"
        )
    elif own.kind == "float32":
        notes.append("the target answers in single precision; so does the stand-in, inputs included")
    if recovery.status is Status.RECOVERED_UP_TO_AMBIGUITY:
        notes.append(
            "other parameters fit as well: weight errors are distances to one choice of them, and may be "
            "large although the answers agree"
        )
    if check is not None and check.rows < recovery.queries:
        notes.append(
            f"the stand-in was checked against {check.rows:,} of {recovery.queries:,} answers; the others "
            "were not kept"
        )
    return tuple(notes)
