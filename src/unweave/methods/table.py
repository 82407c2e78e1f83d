"""The table of methods: which class each handles, and the order in which they are tried.

A method never passes a verdict; it hands a `Candidate` to the judge. A new method is one entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.methods.affine.search import recover_affine
from unweave.methods.costs import (
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
from unweave.methods.published.search import recover_as_published
from unweave.methods.refusals import (
    Request,
    refuses_affine,
    refuses_coarse,
    refuses_deep,
    refuses_kinks,
    refuses_lines,
    refuses_published,
    refuses_shallow,
    refuses_surfaces,
    refuses_values,
)
from unweave.methods.relu.search import LineOptions, recover_by_lines
from unweave.methods.relu_coarse.search import KinkedOptions, KinkedRecovery
from unweave.methods.relu_deep.search import KinkedLayersOptions, KinkedLayersRecovery
from unweave.methods.smooth.options import SMOOTH_ACTIVATIONS, ShallowOptions
from unweave.methods.smooth.search import ShallowRecovery
from unweave.methods.smooth_coarse.search import CoarseOptions, CoarseRecovery
from unweave.methods.smooth_deep.search import DeepOptions, DeepRecovery
from unweave.methods.smooth_values.search import recover_from_values
from unweave.networks.activations import get_activation
from unweave.probing.look import Findings
from unweave.search.candidate import Candidate
from unweave.search.journal import Journal
from unweave.targets.region import NormalisedQueries


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
    Method("affine", "no hidden layer, by least squares", refuses_affine, _run_affine, affine_cost),
    Method(
        "lines",
        "one hidden layer of kinked units, from the kinks on a long line",
        refuses_lines,
        _run_lines,
        lines_cost,
    ),
    Method(
        "surfaces",
        "two hidden layers of kinked units, the surfaces of the second followed through the first",
        refuses_surfaces,
        _run_surfaces,
        surfaces_cost,
    ),
    Method(
        "kinks",
        "one hidden layer of kinked units behind noise, rounding, float32, a sigmoid or a softmax",
        refuses_kinks,
        _run_kinks,
        kinks_cost,
    ),
    Method(
        "shallow",
        "one smooth hidden layer, through its derivatives and Gauss-Newton",
        refuses_shallow,
        _run_shallow,
        shallow_cost,
    ),
    Method(
        "coarse",
        "one smooth hidden layer behind noise, rounding, float32, a sigmoid or a softmax",
        refuses_coarse,
        _run_coarse,
        coarse_cost,
    ),
    Method(
        "values",
        "one smooth hidden layer in few inputs, from random starts of least squares",
        refuses_values,
        _run_values,
        values_cost,
        wider=False,
    ),
    Method(
        "deep",
        "several smooth hidden layers, one by one from the inputs",
        refuses_deep,
        _run_deep,
        deep_cost,
    ),
    Method(
        "published",
        "one hidden layer, unit weights, outer weights one: Algorithms 3.1 to 3.3 as published",
        refuses_published,
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
