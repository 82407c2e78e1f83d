"""What stays open after a recovery, and what to try where it did not succeed, in sentences."""

from __future__ import annotations

from typing import Any

from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.network import Network
from unweave.recovery.result import Recovery, Status


def open_questions(recovery: Recovery) -> list[str]:
    """What the answers leave open about the parameters, besides the family that the message names."""
    network = recovery.network
    if recovery.status is Status.FAILED or network is None:
        return ["Everything: no network was found that explains the answers."]
    if isinstance(network, Network):
        symmetry = _symmetry(network)
    else:
        symmetry = "how the same function is written as a sum of trees"
    besides = f"As always, {symmetry}."
    if recovery.status is Status.RECOVERED:
        if recovery.standard_errors is not None and not recovery.evidence.from_exact_equations:
            return ["The digits of the parameters beyond their error bars.", besides]
        return [f"Nothing but {symmetry}, on which no answer depends."]
    if recovery.status is Status.RECOVERED_UP_TO_AMBIGUITY:
        return [besides]
    return [
        "Whether this is the network: it was not shown to agree with fresh answers to their precision, and "
        "its parameters may be off by more than the error on fresh rows.",
        besides,
    ]


def _symmetry(network: Network) -> str:
    """The changes of parameters that change no answer."""
    if not network.hidden:
        return "rounding"
    parts = ["the order of the units within a layer"]
    hidden = {get_activation(name) for name in network.activations[:-1]}
    if any(activation.is_odd for activation in hidden):
        parts.append("the common sign of a unit's incoming and outgoing weights")
    if any(activation.homogeneity is not None for activation in hidden):
        parts.append("a positive factor moved from a unit's incoming to its outgoing weights")
    if network.activations[-1] == SOFTMAX:
        parts.append("a constant added to all classes")
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def suggestions(recovery: Recovery) -> list[str]:
    """What to try next; empty where the network was recovered."""
    if recovery.status in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY):
        return []
    arguments: dict[str, Any] = recovery.settings.get("arguments", {})
    from_samples = recovery.settings.get("target", {}).get("kind") == "samples"
    tips = [*_budget_tips(recovery, arguments)]
    tips += _sample_tips(arguments) if from_samples else _query_tips(recovery, arguments)
    if recovery.known_layers is not None:
        tips.append(
            "result.known_layers holds the first layers; what lies behind them can be studied on its own."
        )
    return tips


def _budget_tips(recovery: Recovery, arguments: dict[str, Any]) -> list[str]:
    told = recovery.message.lower()
    tips = []
    if "max_queries" in arguments and "budget" in told:
        tips.append("Raise max_queries: the budget ran out first.")
    if "deadline" in arguments and ("deadline" in told or "seconds" in told):
        tips.append("Raise deadline: the time ran out first.")
    if tips and "checkpoint" not in arguments:
        tips.append("With checkpoint=, the next run pays for no answer twice.")
    return tips


def _sample_tips(arguments: dict[str, Any]) -> list[str]:
    tips = ["Give more samples, spread over all places where the network bends."]
    if "hidden" in arguments:
        tips.append("Leave hidden open, or give another width: too few units leave a residual.")
    else:
        tips.append("Give hidden if the width is known.")
    if "activation" in arguments:
        tips.append("Leave activation open, or give another one.")
    tips.append("If the target can be queried, pass it instead: queries decide what samples cannot.")
    return tips


def _query_tips(recovery: Recovery, arguments: dict[str, Any]) -> list[str]:
    diagnose = "Run unweave diagnose: it shows precision, kinks, and which methods would be tried and why."
    if [stage.name for stage in recovery.stages] == ["look"]:  # refused: more of the same does not help
        return ["No method can work with these answers: the status above says what to change.", diagnose]
    noise = next((stage.figures.get("noise") for stage in recovery.stages if stage.name == "look"), None)
    tips = []
    if noise in ("rounded", "noisy") and "averaging" not in arguments:
        tips.append(
            "The answers are coarse: ask for more rows per parameter with averaging=, or for more decimals."
        )
    if "domain" not in arguments and "examples" not in arguments:
        tips.append(
            "Say where the inputs lie, with domain=(low, high) or examples=: the network must bend there."
        )
    if "hidden" in arguments:
        tips.append("Leave hidden open, or give other widths: not every method questions the given ones.")
    else:
        tips.append("Give hidden=[...] if the widths are known.")
    if "activation" in arguments:
        tips.append("Leave activation open: another one may fit.")
    tips.append(diagnose)
    tips.append(
        "The target may not be a network that unweave can recover; the message above says what was seen."
    )
    return tips
