"""The certificate: what was checked behind a result, with value, threshold and what each check implies."""

from __future__ import annotations

import numpy as np

from unweave.derivatives.derivative_check import LARGEST_MISMATCH
from unweave.diagnose.incoherence import incoherence, unit_columns
from unweave.methods.smooth_coarse.width import STANDS_OUT
from unweave.networks.network import Network
from unweave.probing.look import Findings
from unweave.recovery.judge import Verdict, largest_error_bar
from unweave.recovery.result import Certificate, Check
from unweave.search.candidate import Candidate, Evidence, LayerEvidence
from unweave.subspace.hessian_span import CLEAR_GAP

_RESIDUAL_OVER_FLOOR = 30.0
_LARGEST_CONDITION = 1e10  # of the scaled Jacobian: beyond, rounding alone moves parameters by 1e-6
_LARGEST_GRAM_CONDITION = 1e8
_LARGEST_LAYER_RESIDUAL = 0.1  # a layer's own start: the final fit is judged by its own residual


def certify(candidate: Candidate, verdict: Verdict | None, findings: Findings) -> Certificate:
    """Checks on everything that was measured; stages that were not reached are left out."""
    checks: list[Check] = []
    if verdict is not None and verdict.rows:
        checks += _verification_checks(verdict)
    mismatch = candidate.evidence.derivative_mismatch
    if mismatch is not None:
        implies = "the derivatives by autodiff are those of the answers, up to the step between these"
        checks.append(_below("autodiff mismatch", mismatch, LARGEST_MISMATCH, implies))
    checks += _span_checks(candidate.evidence)
    if candidate.network is not None and len(candidate.network.hidden) == 1:
        checks += _weight_checks(candidate.network, findings)
    checks += [_layer_check(layer) for layer in candidate.evidence.layers]
    checks += _fit_checks(candidate.evidence, largest_error_bar(findings))
    return Certificate(tuple(checks))


def _below(name: str, value: float, threshold: float, implies: str) -> Check:
    return Check(name, float(value), float(threshold), bool(value <= threshold), implies)


def _above(name: str, value: float, threshold: float, implies: str) -> Check:
    return Check(name, float(value), float(threshold), bool(value >= threshold), implies)


def _verification_checks(verdict: Verdict) -> list[Check]:
    implies = f"on {verdict.rows} rows that no method had seen, the network answers as the target does"
    return [_below("fresh error", verdict.error, verdict.threshold, implies)]


def _span_checks(evidence: Evidence) -> list[Check]:
    checks = []
    if evidence.gap is not None:
        # Noisy Hessians are measured against the noise they carry, precise ones against their truncation.
        least = CLEAR_GAP if evidence.misfit is None else STANDS_OUT
        checks.append(
            _above("width gap", evidence.gap, least, "the width stands out of the error of the Hessians")
        )
        checks.append(
            Check(
                "subspace error",
                1 / evidence.gap if evidence.gap > 0 else np.inf,
                None,
                None,
                "sine of the angle to the true span, estimated",
            )
        )
    if evidence.width is not None:
        implies = "every dimension of the span belongs to a neuron that was found"
        checks.append(_above("neurons found", evidence.found, evidence.width, implies))
    spectrum, width = evidence.spectrum, evidence.width
    if spectrum is not None and width is not None and 0 < width <= len(spectrum):
        alpha = float(spectrum[width - 1]) ** 2 / max(evidence.hessians, 1)
        implies = "smallest eigenvalue of the Hessians' covariance: how well every neuron can be learnt"
        checks.append(Check("learnability", alpha, None, None, implies))
    if evidence.misalignment is not None and len(evidence.misalignment):
        worst = float(evidence.misalignment.max())
        implies = "1 - Phi of the worst direction: its squared distance to the span"
        checks.append(Check("misalignment", worst, None, None, implies))
    if evidence.rates is not None and len(evidence.rates):
        implies = "contraction of the power step at the worst direction: it is an isolated maximum"
        checks.append(_below("slowest rate", float(evidence.rates.max()), 1.0, implies))
    return checks


def _layer_check(layer: LayerEvidence) -> Check:
    what = "gradients" if layer.gap is not None else "Hessians"
    implies = f"share of the {what} behind layer {layer.layer} that it does not explain"
    if np.isnan(layer.residual):
        return Check(f"layer {layer.layer} residual", layer.residual, None, None, implies)
    return _below(f"layer {layer.layer} residual", layer.residual, _LARGEST_LAYER_RESIDUAL, implies)


def _weight_checks(network: Network, findings: Findings) -> list[Check]:
    weights = network.weights[0] * findings.region.scale[:, None]
    if not np.linalg.norm(weights, axis=0).all():
        return []
    figures = incoherence(unit_columns(weights)[0])
    inputs, width = figures.dimension, figures.width
    limit = max(inputs * (inputs - 1) / 2, inputs)
    return [
        _below("width against limit", width, limit, "so many neurons are determined generically"),
        _below("coherence", figures.coherence, 1 - 1e-6, "no two neurons share a direction"),
        _below(
            "Gram conditioning",
            figures.gram2_condition,
            _LARGEST_GRAM_CONDITION,
            "the neurons' squares are independent, so their span fixes them",
        ),
        Check(
            "frame constant",
            figures.frame_constant,
            None,
            None,
            "below one the linear-regime theorems apply; above, those for m log^2 m = O(D^2)",
        ),
    ]


def _fit_checks(evidence: Evidence, largest_error_bar: float) -> list[Check]:
    checks = []
    if evidence.fit_history and evidence.fit_floor:
        floor = _RESIDUAL_OVER_FLOOR * evidence.fit_floor
        implies = "the final fit leaves no more than the answers' own rounding or noise"
        checks.append(_below("fit residual", evidence.fit_history[-1], floor, implies))
    if evidence.condition is not None and not np.isnan(evidence.condition):
        implies = "the equations determine all parameters"
        checks.append(_below("fit conditioning", evidence.condition, _LARGEST_CONDITION, implies))
    if evidence.parameter_error_bar is not None:
        implies = "largest standard error of a parameter, in normalised inputs"
        checks.append(_below("parameter error bar", evidence.parameter_error_bar, largest_error_bar, implies))
    return checks
