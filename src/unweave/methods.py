"""The table of methods: which class each handles, and why it is or is not tried.

A method never passes a verdict; it hands a `Candidate` to the judge. A new method is one entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.access.links import LINKS
from unweave.access.probe import Findings
from unweave.access.region import NormalisedQueries
from unweave.activations import get_activation
from unweave.affine import recover_affine
from unweave.candidate import Candidate
from unweave.coarse.route import CoarseOptions, CoarseRecovery
from unweave.costs import (
    Cost,
    Question,
    affine_cost,
    coarse_cost,
    deep_cost,
    kinks_cost,
    lines_cost,
    published_cost,
    shallow_cost,
    surfaces_cost,
    values_cost,
)
from unweave.deep.route import DEEP_ACTIVATIONS, DeepOptions, DeepRecovery
from unweave.journal import Journal
from unweave.relu.coarse_route import KinkedOptions, KinkedRecovery
from unweave.relu.line_route import LineOptions, recover_by_lines
from unweave.relu.signs import KINKED
from unweave.relu_deep.route import KinkedLayersOptions, KinkedLayersRecovery
from unweave.smooth.published_route import recover_as_published
from unweave.smooth.shallow import ShallowRecovery
from unweave.smooth.shallow_options import SMOOTH_ACTIVATIONS, ShallowOptions
from unweave.smooth.value_route import recover_from_values
from unweave.smooth.value_search import MOST_INPUTS

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


@dataclass(frozen=True)
class Method:
    """One way to recover a network."""

    name: str
    description: str
    refuses: Callable[[Request, Findings], str | None]
    """Why this method is not for this target, or None if it is."""
    run: Callable[[NormalisedQueries, Findings, Request, Journal, np.random.Generator], Candidate]
    cost: Callable[[Question], Cost]
    """What it is expected to cost."""
    by_name_only: bool = False
    """Only tried when asked for."""
    wider: bool = True
    """Whether it is tried again in a wider region, where the region had to be searched for."""


def _refuses_affine(request: Request, findings: Findings) -> str | None:
    if request.hidden == () or findings.linear or findings.constant:
        return None
    return "the target is not affine"


def _refuses_shallow(request: Request, findings: Findings) -> str | None:
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


def _refuses_coarse(request: Request, findings: Findings) -> str | None:
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


def _refuses_lines(request: Request, findings: Findings) -> str | None:
    if request.hidden is not None and len(request.hidden) != 1:
        return f"it handles one hidden layer, and {len(request.hidden)} were asked for"
    return _refuses_kinked(request, findings)


def _refuses_surfaces(request: Request, findings: Findings) -> str | None:
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


def _refuses_kinks(request: Request, findings: Findings) -> str | None:
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


def _refuses_published(request: Request, findings: Findings) -> str | None:
    if request.hidden is None or len(request.hidden) != 1 or request.activation is None:
        return "it needs hidden=[m] and activation to be given"
    if findings.n_outputs != 1:
        return f"it handles one output, and the target has {findings.n_outputs}"
    region = findings.region
    if region.has_box or region.location.any() or (region.scale != 1).any():
        return "it handles inputs around 0 with scale 1 and no bounds: scale them before"
    if get_activation(request.activation).monotone_second is None:
        return f"it needs a second derivative that is invertible around 0, and {request.activation} has none"
    return _refuses_shallow(request, findings)


def _refuses_deep(request: Request, findings: Findings) -> str | None:
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


def _refuses_values(request: Request, findings: Findings) -> str | None:
    reason = _refuses_shallow(request, findings)
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


def _run_affine(
    view: NormalisedQueries, findings: Findings, request: Request, journal: Journal, rng: np.random.Generator
) -> Candidate:
    return recover_affine(view, findings, journal, rng)


def _run_lines(
    view: NormalisedQueries, findings: Findings, request: Request, journal: Journal, rng: np.random.Generator
) -> Candidate:
    options = LineOptions(request.hidden[0] if request.hidden else None, request.activation)
    return recover_by_lines(view, findings, options, journal, rng)


def _run_kinks(
    view: NormalisedQueries, findings: Findings, request: Request, journal: Journal, rng: np.random.Generator
) -> Candidate:
    options = KinkedOptions(
        width=request.hidden[0] if request.hidden else None,
        activation=request.activation,
        output_activation=request.output_activation,
        rows_per_parameter=request.averaging,
    )
    return KinkedRecovery(view, findings, options, journal, rng).run()


def _run_surfaces(
    view: NormalisedQueries, findings: Findings, request: Request, journal: Journal, rng: np.random.Generator
) -> Candidate:
    options = KinkedLayersOptions(request.hidden, request.activation)
    return KinkedLayersRecovery(view, findings, options, journal, rng).run()


def _run_shallow(
    view: NormalisedQueries, findings: Findings, request: Request, journal: Journal, rng: np.random.Generator
) -> Candidate:
    options = ShallowOptions(
        width=request.hidden[0] if request.hidden else None,
        activations=SMOOTH_ACTIVATIONS if request.activation is None else (request.activation,),
        autodiff=request.autodiff,
    )
    return ShallowRecovery(view, findings, options, journal, rng).run()


def _run_coarse(
    view: NormalisedQueries, findings: Findings, request: Request, journal: Journal, rng: np.random.Generator
) -> Candidate:
    options = CoarseOptions(
        width=request.hidden[0] if request.hidden else None,
        activations=SMOOTH_ACTIVATIONS if request.activation is None else (request.activation,),
        output_activation=request.output_activation,
        rows_per_parameter=request.averaging,
    )
    return CoarseRecovery(view, findings, options, journal, rng).run()


def _run_values(
    view: NormalisedQueries, findings: Findings, request: Request, journal: Journal, rng: np.random.Generator
) -> Candidate:
    width = request.hidden[0] if request.hidden else None
    activations = SMOOTH_ACTIVATIONS if request.activation is None else (request.activation,)
    return recover_from_values(view, findings, width, activations, journal, rng)


def _run_published(
    view: NormalisedQueries, findings: Findings, request: Request, journal: Journal, rng: np.random.Generator
) -> Candidate:
    assert request.hidden is not None
    assert request.activation is not None
    return recover_as_published(view, request.hidden[0], request.activation, journal, rng)


def _run_deep(
    view: NormalisedQueries, findings: Findings, request: Request, journal: Journal, rng: np.random.Generator
) -> Candidate:
    options = DeepOptions(request.hidden, request.activation, request.output_activation)
    return DeepRecovery(view, findings, options, journal, rng).run()


METHODS = (
    Method("affine", "no hidden layer, by least squares", _refuses_affine, _run_affine, affine_cost),
    Method(
        "lines",
        "one hidden layer of kinked units, from the kinks on a long line",
        _refuses_lines,
        _run_lines,
        lines_cost,
    ),
    Method(
        "surfaces",
        "two hidden layers of kinked units, the surfaces of the second followed through the first",
        _refuses_surfaces,
        _run_surfaces,
        surfaces_cost,
    ),
    Method(
        "kinks",
        "one hidden layer of kinked units behind noise, rounding, float32, a sigmoid or a softmax",
        _refuses_kinks,
        _run_kinks,
        kinks_cost,
    ),
    Method(
        "shallow",
        "one smooth hidden layer, through its derivatives and Gauss-Newton",
        _refuses_shallow,
        _run_shallow,
        shallow_cost,
    ),
    Method(
        "coarse",
        "one smooth hidden layer behind noise, rounding, float32, a sigmoid or a softmax",
        _refuses_coarse,
        _run_coarse,
        coarse_cost,
    ),
    Method(
        "values",
        "one smooth hidden layer in few inputs, from random starts of least squares",
        _refuses_values,
        _run_values,
        values_cost,
        wider=False,
    ),
    Method(
        "deep",
        "several smooth hidden layers, one by one from the inputs",
        _refuses_deep,
        _run_deep,
        deep_cost,
    ),
    Method(
        "published",
        "one hidden layer, unit weights, outer weights one: Algorithms 3.1 to 3.3 as published",
        _refuses_published,
        _run_published,
        published_cost,
        by_name_only=True,
    ),
)


def no_use_for_autodiff(request: Request) -> str | None:
    """Why no method could use the target's own derivatives for what was asked, or None."""
    if request.method not in (None, "shallow"):
        return f"method={request.method!r}, which asks for answers only,"
    if request.hidden is not None and len(request.hidden) != 1:
        return f"hidden={list(request.hidden)}"
    if request.activation is not None and not get_activation(request.activation).smooth:
        return f"activation={request.activation!r}"
    if request.output_activation not in (None, "identity"):
        return f"output_activation={request.output_activation!r}"
    return None


def choose(request: Request, findings: Findings) -> tuple[list[Method], dict[str, str]]:
    """The methods to try, in order, and the reasons against the others."""
    tried, reasons = [], {}
    for method in METHODS:
        asked = request.method == method.name
        if (request.method is not None or method.by_name_only) and not asked:
            continue
        reason = method.refuses(request, findings)
        if reason is None:
            tried.append(method)
        else:
            reasons[method.name] = reason
    flips = findings.noise.kind == "rounded" and findings.noise.repeatable and request.averaging is None
    if not findings.kinks and not flips and request.activation is None:
        # Noise hides kinks, and kinked units imitate smooth ones behind it. The flips of rounded answers tell
        # them apart, so that there the cheaper method may come first.
        tried.sort(key=lambda method: method.name == "kinks")
    if findings.layered:
        # stable: what was ruled out comes last
        tried.sort(key=lambda method: method.name in ("shallow", "coarse"))
        return tried, reasons
    # Its own derivatives are as good as the answers, so a module in float32 is no hindrance.
    coarse = findings.noise.kind != "float64" and not request.autodiff
    if coarse or "identity" not in findings.links or "sigmoid" in findings.links:
        tried.sort(key=lambda method: method.name == "shallow")  # sees through no link, and little noise
    return tried, reasons
