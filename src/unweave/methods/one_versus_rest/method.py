"""The row of logistic models of one class against the rest."""

from __future__ import annotations

from unweave.methods.one_versus_rest.search import OneVersusRestOptions, OneVersusRestSearch
from unweave.networks.activations import SOFTMAX
from unweave.probing.findings import Findings
from unweave.search import Cost, Method, Question, Request
from unweave.search.cost import fit_seconds

_MOST_UNKNOWNS = 3000  # (D + 1) K, beyond which the fit takes longer than it is worth as a guess


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why not such models, or None."""
    if findings.links != (SOFTMAX,) or findings.n_outputs < 3:
        return "the answers are not the probabilities of three classes or more"
    if findings.is_affine or findings.straight_links:
        return "the log ratios of the answers are affine"
    if findings.kinks:
        return "kinks were seen: the target is not smooth"
    if findings.noise.kind != "float64":
        return f"it needs precise answers, and these are {findings.noise.kind}"
    if (findings.region.n_inputs + 1) * findings.n_outputs > _MOST_UNKNOWNS:
        return f"it fits up to {_MOST_UNKNOWNS} parameters"
    return None


def cost(question: Question) -> Cost:
    """Count three rows for every two inputs, and a few more."""
    rows = OneVersusRestOptions().rows(question.inputs, max(question.outputs, 2))
    unknowns = (question.inputs + 1) * question.outputs
    seconds = fit_seconds(unknowns, rows * question.outputs)
    return question.cost(
        rows, seconds, 16e-6 * rows * question.outputs * unknowns, "1.5 equations per weight"
    )


METHOD = Method(
    name="one_versus_rest",
    description="logistic models of each class against the rest, by least squares",
    layers=(1, 1),
    activations=("softplus",),
    outputs=(SOFTMAX,),
    refuses=refuses,
    cost=cost,
    search=OneVersusRestSearch,
    options=OneVersusRestOptions,
)
