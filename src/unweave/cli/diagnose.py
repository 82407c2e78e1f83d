"""``unweave diagnose``: what a cheap look finds, which methods would be tried, what the theory says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.cli.exits import DONE
from unweave.cli.option_groups import TargetOptions
from unweave.cli.options import AsJson, MaxQueries, TargetArgument
from unweave.cli.output.console import stdout_console
from unweave.cli.output.diagnosis import Choice, show_findings, show_layers, show_methods, show_network
from unweave.cli.output.document import print_json
from unweave.cli.output.progress import watching
from unweave.diagnose import diagnose_layers, diagnose_network
from unweave.methods.table import METHODS
from unweave.networks.activations import get_activation
from unweave.probing.findings import Findings
from unweave.probing.look import look
from unweave.recovery.choose import choose
from unweave.search import Request
from unweave.search.request import checked_widths
from unweave.targets.target import as_queries


@dataclass(frozen=True, kw_only=True)
class DiagnoseOptions(TargetOptions):
    """Options of ``unweave diagnose``."""

    target: TargetArgument
    max_queries: MaxQueries = None
    as_json: AsJson = False


def run_diagnose(options: DiagnoseOptions) -> int:
    """Look at TARGET with a few hundred queries: its precision, region and kinks, and the methods to try.

    For a network file, also show how hard its weights are to recover: coherence, conditioning, and whether
    the hypotheses of the theory hold, layer by layer.

    \b
    Example:
      unweave diagnose models:predict --inputs 20
    """
    activation = None if options.activation is None else get_activation(options.activation).name
    with watching(False, 0), options.opened(options.target) as (target, told):
        queries = as_queries(target.function, input_dim=told["input_dim"], max_queries=options.max_queries)
        rng = np.random.default_rng(options.seed)
        findings = look(queries, rng=rng, domain=told["domain"], examples=told["examples"])
    choices = _choices(Request(checked_widths(told["hidden"]), activation), findings)
    network = target.network
    weights = diagnose_network(network) if network is not None and len(network.hidden) == 1 else None
    layers = diagnose_layers(network) if network is not None and network.hidden else None
    if options.as_json:
        found = {"target": options.target, **_findings_dict(findings)}
        print_json({**found, "methods": choices, "network": weights, "layers": layers})
        return DONE
    console = stdout_console()
    show_findings(console, options.target, findings)
    show_methods(console, choices)
    if weights is not None:
        show_network(console, weights)
    if layers is not None:
        show_layers(console, layers)
    return DONE


def _choices(request: Request, findings: Findings) -> list[Choice]:
    """Return every method of the table, with whether it would be tried and why."""
    tried, reasons = choose(request, findings)
    reasons = {**reasons, **{method.name: method.description for method in tried}}
    unnamed = "only tried when asked for by name"
    asking = [each for each in METHODS if each.asks == "queries"]
    return [Choice(each.name, each in tried, reasons.get(each.name, unnamed)) for each in asking]


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
