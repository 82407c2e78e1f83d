"""Which methods to try, in which order: what was said and found against what the rows declare."""

from __future__ import annotations

from typing import Any, Literal

from unweave.errors import InvalidInput
from unweave.methods.table import METHODS
from unweave.probing.findings import Findings
from unweave.search import Likelihood, Method, Question, Request

_ASSUMED_WIDTH = 16  # units of a layer of unknown width, or as many as inputs: costs are compared with it


def method_named(name: str) -> Method:
    """Return the method that users call ``name``."""
    for method in METHODS:
        if name == method.name or name in method.aliases:
            return method
    known = ", ".join(method.name for method in METHODS)
    raise InvalidInput(f"method must be one of {known} or None. Got {name!r} instead.")


def choose(
    request: Request,
    findings: Findings,
    asks: Literal["queries", "samples"] = "queries",
    methods: tuple[Method, ...] = METHODS,
) -> tuple[list[Method], dict[str, str]]:
    """Return those of ``methods`` to try, likeliest and then cheapest first, and why not the others."""
    tried, reasons = [], {}
    for method in methods:
        asked = request.method == method.name
        if method.asks != asks or ((request.method is not None or method.by_name_only) and not asked):
            continue
        reason = method.reason_against(request, findings)
        if reason is None:
            tried.append(method)
        else:
            reasons[method.name] = reason

    def order(method: Method) -> tuple[int, float]:
        cost = method.cost(question_of(request, findings, method))
        likelihood = method.likelihood(request, findings)
        if findings.layered and method.layers[1] == 1:
            likelihood = Likelihood.LAST
        # Rows of samples are paid for already.
        return likelihood, cost.rows if asks == "queries" else cost.seconds

    return sorted(tried, key=order), reasons


def question_of(
    request: Request, findings: Findings, method: Method, hidden: tuple[int, ...] | None = None
) -> Question:
    """Return what ``method`` would be asked for widths ``hidden``: if None, those told or assumed."""
    inputs = findings.region.n_inputs
    hidden = request.hidden if hidden is None else hidden
    if hidden is None:
        hidden = (max(_ASSUMED_WIDTH, inputs),) * max(method.layers[0], 1)
    return Question(
        inputs=inputs,
        outputs=findings.n_outputs,
        hidden=() if method.layers[1] == 0 else hidden,
        told=request.hidden is not None,
        one_activation=request.activation is not None,
        noise=findings.noise.kind,
        tight=request.tight,
    )


def checked_options(options: Any, methods: tuple[Method, ...]) -> tuple[Any, ...]:
    """Return ``options`` of one or several of ``methods`` as a tuple."""
    given = tuple(options) if isinstance(options, list | tuple) else (() if options is None else (options,))
    known = {type(method.options()) for method in methods}
    for each in given:
        if type(each) not in known:
            names = sorted(kind.__name__ for kind in known if kind is not type(None))
            raise InvalidInput(
                f"options must be those of a method ({', '.join(names)}), or a list of them. Got {each!r} "
                "instead."
            )
    return given


def options_for(method: Method, request: Request) -> Any:
    """Return the method's options: those the user gave, or its defaults."""
    default = method.options()
    return next((each for each in request.options if type(each) is type(default)), default)


def refuse_autodiff_without_use(request: Request) -> None:
    """Raise if no method could use the target's own derivatives for what was asked."""
    able = [method for method in METHODS if method.derivatives]
    asked = [method for method in able if request.method in (None, method.name)]
    if all(method.refuses_request(request) is not None for method in asked):
        no_use = f"method={request.method!r}, which asks for answers only,"
        got = _rules_out(request, asked) if asked else no_use
        raise InvalidInput(
            f'derivatives="autodiff" must be asked of one smooth hidden layer. Got {got} instead. '
            'Leave derivatives at "queries", which needs answers only.'
        )


def _rules_out(request: Request, methods: list[Method]) -> str:
    """Name the argument that rules all of ``methods`` out."""
    output = request.output_activation
    alone = {
        f"hidden={list(request.hidden or ())}": Request(hidden=request.hidden),
        f"activation={request.activation!r}": Request(activation=request.activation),
        f"output_activation={output!r}": Request(output_activation=output),
    }
    for argument, part in alone.items():
        if all(method.refuses_request(part) is not None for method in methods):
            return argument
    return ", ".join(alone)
