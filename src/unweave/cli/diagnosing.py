"""``unweave diagnose``: what a cheap look finds, which methods would be tried, what the theory says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unweave.cli.arguments import parse_domain, parse_hidden, read_examples
from unweave.cli.console import stdout_console
from unweave.cli.exits import DONE
from unweave.cli.http_arguments import NO_HTTP, HttpArguments
from unweave.cli.jsonable import print_json
from unweave.cli.progress import watching
from unweave.cli.show_diagnosis import Choice, show_findings, show_methods, show_network
from unweave.cli.targets import CommandOptions, find_target, input_width, told_width
from unweave.diagnose import WeightDiagnostics, diagnose_network
from unweave.methods.table import METHODS
from unweave.networks.activations import get_activation
from unweave.probing.look import Findings, look
from unweave.recovery.choose import choose
from unweave.search import Request
from unweave.targets.target import as_queries


@dataclass(frozen=True)
class DiagnoseOptions:
    """The command's options, as typed."""

    target: str
    hidden: str | None = None
    activation: str | None = None
    inputs: int | None = None
    domain: str | None = None
    examples: Path | None = None
    max_queries: int | None = None
    seed: int = 0
    as_json: bool = False
    command: CommandOptions | None = None
    http: HttpArguments = NO_HTTP


def run_diagnose(options: DiagnoseOptions) -> int:
    """Look at the target and return the exit code, 0."""
    hidden, domain = parse_hidden(options.hidden), parse_domain(options.domain)
    examples = read_examples(options.examples)
    activation = None if options.activation is None else get_activation(options.activation).name
    told = told_width(options.inputs, examples)
    with (
        watching(False, 0),
        find_target(options.target, told, http=options.http.options(told), command=options.command) as target,
    ):
        width = input_width(target, options.inputs, examples)
        queries = as_queries(target.function, input_dim=width, max_queries=options.max_queries)
        rng = np.random.default_rng(options.seed)
        findings = look(queries, rng=rng, domain=domain, examples=examples)
    choices = _choices(Request(None if hidden is None else tuple(hidden), activation), findings)
    network = target.network
    weights = None
    if network is not None and len(network.hidden) == 1:
        weights = diagnose_network(network)
    if options.as_json:
        print_json(
            {"target": options.target, **_findings_dict(findings), "methods": choices, "network": weights}
        )
    else:
        _show(options.target, findings, choices, weights)
    return DONE


def _show(target: str, findings: Findings, choices: list[Choice], weights: WeightDiagnostics | None) -> None:
    console = stdout_console()
    show_findings(console, target, findings)
    show_methods(console, choices)
    if weights is not None:
        show_network(console, weights)


def _choices(request: Request, findings: Findings) -> list[Choice]:
    """Every method of the table, with whether it would be tried and why."""
    tried, reasons = choose(request, findings)
    result = []
    for method in METHODS:
        would = method in tried
        reason = (
            method.description if would else reasons.get(method.name, "only tried when asked for by name")
        )
        result.append(Choice(method.name, would, reason))
    return result


def _findings_dict(findings: Findings) -> dict[str, Any]:
    evidence = findings.kink_evidence
    return {
        "inputs": findings.region.n_inputs,
        "outputs": findings.n_outputs,
        "output_scale": findings.output_scale,
        "noise": findings.noise,
        "region": {"searched": findings.searched, "region": findings.region},
        "kinks": findings.kinks,
        "kink_evidence": {"broken": evidence.broken, "judged": evidence.judged},
        "constant": findings.constant,
        "affine": findings.linear,
        "queries": findings.queries,
    }
