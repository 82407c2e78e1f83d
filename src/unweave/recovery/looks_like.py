"""What a target that was not recovered looks like, in plain words."""

from __future__ import annotations

from unweave.networks.network import Network
from unweave.probing.findings import Findings
from unweave.recovery.result import Status
from unweave.recovery.wording import counted
from unweave.search import Candidate

_PIECEWISE_CONSTANT = (
    "the answers are piecewise constant: they stay exactly the same and then jump, at thresholds that are "
    "not those of single inputs (nearest neighbours, step or sign units): not supported yet"
)

_NEARLY_EXPLAINED = 1e-3  # of the answers' scale, left by one hidden layer: of several it leaves far more


def looks_like(findings: Findings, candidate: Candidate, status: Status) -> str | None:
    """Name a kind of target that no method handles, or None where nothing points to one.

    ``candidate`` is the best that was found, and ``status`` the verdict on it.
    """
    if status.is_recovered or findings.labels or findings.steps:
        return None
    if findings.flat:
        return _PIECEWISE_CONSTANT
    network = candidate.network
    if not findings.kinks or not (network is None or (isinstance(network, Network) and network.hidden)):
        return None
    noise = findings.noise.kind
    if noise == "float64":
        return None  # deep networks are searched for, and the search says how far it came
    history = candidate.evidence.fit_history
    one = network is None or len(network.hidden) == 1
    if one and history and history[-1] <= _NEARLY_EXPLAINED:
        return f"looks like one hidden ReLU layer {_answered(findings)}, not all of which could be told"
    pairs = noise in ("float32", "rounded")
    supported = "more than two are not supported yet" if pairs else "not supported yet"
    return (
        f"looks like two or more hidden ReLU layers, or a very wide one, {_answered(findings)}: {supported}"
    )


def _answered(findings: Findings) -> str:
    noise = findings.noise
    if noise.kind == "float32":
        return "in float32"
    if noise.kind == "rounded":
        return f"with answers rounded to {counted(noise.decimals or 0, 'decimal')}"
    return "with noisy answers"
