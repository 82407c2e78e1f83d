"""Why a method is not for a target: what the user said and what a look has found, against what it handles."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.methods.shared.kinked.signs import KINKED
from unweave.methods.shared.value_search import MOST_INPUTS
from unweave.methods.smooth_deep.search import DEEP_ACTIVATIONS
from unweave.networks.activations import get_activation
from unweave.networks.links import LINKS
from unweave.probing.look import Findings

PURE_NOISE = 0.3
"""Noise relative to the spread of the answers above which nothing is left to fit."""

COARSEST_FOR_LINES = 1e-11
"""Relative noise up to which kinks on a line are told from straight pieces."""

CERTAIN_KINKS = 3
"""Lines with a kink from which on coarse answers count as piecewise smooth: a single one may be chance."""

WIDEST_FOR_COARSE = 128
"""Inputs up to which Hessians in all of them are taken of coarse answers."""

KINKED_BEHIND = (*KINKED, "squared_relu")
"""Activations that are searched for in coarse answers."""

WIDEST_FOR_KINKS = 256
"""Inputs up to which kinked units are searched for in all of them at once."""

COARSEST_FOR_VALUES = 1e-12
"""Relative noise up to which an exact fit is told from a local minimum that is nearly one."""

COARSEST_FOR_DEPTH = 1e-11
"""Relative noise up to which inner layers can be told apart."""


@dataclass(frozen=True)
class Request:
    """What the user said about the network."""

    hidden: tuple[int, ...] | None
    activation: str | None
    method: str | None = None
    output_activation: str | None = None
    averaging: float | None = None
    autodiff: bool = False
    """Whether methods that can use the target's own derivatives may do so."""


def refuses_affine(request: Request, findings: Findings) -> str | None:
    """Why not a target without hidden layer, or None."""
    if request.hidden == () or findings.linear or findings.constant:
        return None
    return "the target is not affine"


def refuses_shallow(request: Request, findings: Findings) -> str | None:
    """Why not one smooth hidden layer from precise answers, or None."""
    if request.hidden is not None and len(request.hidden) != 1:
        return f"it handles one hidden layer, and {len(request.hidden)} were asked for"
    if request.activation is not None and not get_activation(request.activation).smooth:
        return f"it handles smooth activations, and {request.activation} has a kink"
    if findings.constant or findings.linear:
        return "the target is affine: there is nothing curved to see"
    if findings.kinks and request.activation is None:
        evidence = findings.kink_evidence
        return (
            f"kinks were seen ({evidence.broken} of {evidence.judged} lines have no second derivative "
            "somewhere): the target is not smooth"
        )
    if findings.noise.relative > PURE_NOISE:
        return _mostly_noise(findings)
    if request.output_activation not in (None, "identity"):
        return f"it handles affine output layers, and {request.output_activation} was asked for"
    if findings.links == ("softmax",):
        return "the answers are probabilities that sum to one: their logits are the sum of neurons"
    if findings.noise.kind in ("rounded", "noisy"):
        return f"the answers are {findings.noise.kind}: differences over short steps would drown"
    return None


def _mostly_noise(findings: Findings) -> str:
    return f"the answers are mostly noise (standard deviation {findings.noise.relative:.2g} of their spread)"


def refuses_coarse(request: Request, findings: Findings) -> str | None:
    """Why not one smooth hidden layer from coarse answers, or None."""
    if request.hidden is not None and len(request.hidden) != 1:
        return f"it handles one hidden layer, and {len(request.hidden)} were asked for"
    if request.activation is not None and not get_activation(request.activation).smooth:
        return f"it handles smooth activations, and {request.activation} has a kink"
    if request.output_activation not in (None, *LINKS):
        return f"it handles {', '.join(LINKS)} outputs, and {request.output_activation} was asked for"
    if findings.constant or findings.linear:
        return "the target is affine: there is nothing curved to see"
    if findings.kinks and findings.kink_evidence.broken >= CERTAIN_KINKS and request.activation is None:
        return "kinks were seen: the target is not smooth"
    if findings.noise.relative > PURE_NOISE:
        return _mostly_noise(findings)
    links = findings.links if request.output_activation is None else (request.output_activation,)
    if findings.noise.kind == "float64" and links == ("identity",):
        return "the answers are precise, with no last transformation: short differences are better"
    if findings.region.n_inputs > WIDEST_FOR_COARSE:
        return (
            f"it takes Hessians in all inputs, 2 D^2 rows each, for up to {WIDEST_FOR_COARSE} inputs, "
            f"and the target has {findings.region.n_inputs}"
        )
    return None


def refuses_lines(request: Request, findings: Findings) -> str | None:
    """Why not kinks on lines, or None."""
    if request.hidden is not None and len(request.hidden) != 1:
        return f"it handles one hidden layer, and {len(request.hidden)} were asked for"
    return _refuses_kinked(request, findings)


def refuses_surfaces(request: Request, findings: Findings) -> str | None:
    """Why not two layers of kinked units, or None."""
    if request.hidden is not None and len(request.hidden) != 2:
        return f"it handles two hidden layers, and {len(request.hidden)} were asked for"
    if findings.region.has_box:
        return "it follows surfaces wherever they lead, and nothing outside the domain may be asked"
    return _refuses_kinked(request, findings)


def _refuses_kinked(request: Request, findings: Findings) -> str | None:
    if request.activation is not None and request.activation not in KINKED:
        return f"it handles {' and '.join(KINKED)} units, and {request.activation} was asked for"
    if request.output_activation not in (None, "identity"):
        return f"it handles affine output layers, and {request.output_activation} was asked for"
    if findings.constant or findings.linear:
        return "the target is affine: there are no kinks to see"
    if "identity" not in findings.links:
        return f"straight pieces are bent by a {findings.links[0]}"
    if request.activation is None and not findings.kinks:
        return "no kinks were seen: the target is smooth"
    if findings.noise.kind != "float64" or findings.noise.relative > COARSEST_FOR_LINES:
        return (
            f"it needs answers to {COARSEST_FOR_LINES:.0e} of their spread, and these are good to "
            f"{findings.noise.relative:.1e} ({findings.noise.kind})"
        )
    return None


def refuses_kinks(request: Request, findings: Findings) -> str | None:
    """Why not kinked units from coarse answers, or None."""
    if request.hidden is not None and len(request.hidden) != 1:
        return f"it handles one hidden layer, and {len(request.hidden)} were asked for"
    if request.activation is not None and request.activation not in KINKED_BEHIND:
        return f"it handles {', '.join(KINKED_BEHIND)} units, and {request.activation} was asked for"
    if request.output_activation not in (None, *LINKS):
        return f"it handles {', '.join(LINKS)} outputs, and {request.output_activation} was asked for"
    if findings.constant or findings.linear:
        return "the target is affine: there are no kinks to see"
    if findings.noise.relative > PURE_NOISE:
        return _mostly_noise(findings)
    links = findings.links if request.output_activation is None else (request.output_activation,)
    if findings.noise.kind == "float64" and links == ("identity",) and request.activation in (None, *KINKED):
        return "the answers are precise, with no last transformation: kinks on lines are better"
    if request.activation is None and not findings.kinks and findings.noise.kind in ("float64", "float32"):
        return "no kinks were seen: the target is smooth"
    if findings.region.n_inputs > WIDEST_FOR_KINKS:
        return (
            f"it searches in all inputs at once, for up to {WIDEST_FOR_KINKS} of them, and the target has "
            f"{findings.region.n_inputs}"
        )
    return None


def refuses_published(request: Request, findings: Findings) -> str | None:
    """Why not the published algorithms, or None."""
    if request.hidden is None or len(request.hidden) != 1 or request.activation is None:
        return "it needs hidden=[m] and activation to be given"
    if findings.n_outputs != 1:
        return f"it handles one output, and the target has {findings.n_outputs}"
    region = findings.region
    if region.has_box or region.location.any() or (region.scale != 1).any():
        return "it handles inputs around 0 with scale 1 and no bounds: scale them before"
    if get_activation(request.activation).monotone_second is None:
        return f"it needs a second derivative that is invertible around 0, and {request.activation} has none"
    return refuses_shallow(request, findings)


def refuses_deep(request: Request, findings: Findings) -> str | None:
    """Why not several smooth hidden layers, or None."""
    if request.hidden is not None and len(request.hidden) < 2:
        return f"it handles two hidden layers or more, and {len(request.hidden)} were asked for"
    if request.activation is not None and request.activation not in DEEP_ACTIVATIONS:
        return f"it handles {', '.join(DEEP_ACTIVATIONS)} units, and {request.activation} was asked for"
    widening = _first_widening((findings.region.n_inputs, *(request.hidden or ())))
    if widening is not None:
        return (
            f"it handles layers that are no wider than what they read, and layer {widening} of "
            f"hidden={list(request.hidden or ())} is wider"
        )
    if findings.constant or findings.linear:
        return "the target is affine: there is nothing curved to see"
    if findings.kinks:
        return "kinks were seen: the target is not smooth"
    if findings.noise.relative > COARSEST_FOR_DEPTH:
        return (
            f"it needs answers to {COARSEST_FOR_DEPTH:.0e} of their spread, and these are good to "
            f"{findings.noise.relative:.1e} ({findings.noise.kind}): second differences through a layer "
            f"would drown. "
            "A network with one hidden layer can still be recovered from such answers"
        )
    return None


def refuses_values(request: Request, findings: Findings) -> str | None:
    """Why not random starts of least squares, or None."""
    reason = refuses_shallow(request, findings)
    if reason is not None:
        return reason
    inputs = len(findings.region.location)
    if inputs > MOST_INPUTS:
        return f"random starts find units of up to {MOST_INPUTS} inputs, and there are {inputs}"
    if findings.noise.relative > COARSEST_FOR_VALUES:
        return (
            f"it needs answers to {COARSEST_FOR_VALUES:.0e} of their spread, and these are good to "
            f"{findings.noise.relative:.1e} ({findings.noise.kind})"
        )
    if findings.layered:
        return "the far field shows more than one hidden layer"
    return None


def _first_widening(widths: tuple[int, ...]) -> int | None:
    """Number of the first layer that is wider than the one before, inputs first."""
    return next((i for i in range(1, len(widths)) if widths[i] > widths[i - 1]), None)
