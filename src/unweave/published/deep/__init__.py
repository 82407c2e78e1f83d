"""The published pipeline for deep networks, kept as a reference: entangled weights, layers, completion."""

from unweave.published.deep.assignment_rules import (
    AdaptedAssignment,
    assign_by_rays,
    assign_with_adaptive_radius,
    ray_scores,
)
from unweave.published.deep.completion import CompletionFit, complete, complete_in_closed_form
from unweave.published.deep.entangled_recovery import (
    EntangledRecovery,
    leading_span,
    recover_entangled_weights,
    search_span,
    span_of_hessians,
)
from unweave.published.deep.layer_assignment import (
    LayerAssignment,
    LayerOracle,
    assign_layers,
    hidden_directions,
    layers_of,
)
from unweave.published.deep.options import PublishedDeepOptions
from unweave.published.deep.pipeline import Outcome, PublishedDeepResult, recover_deep_as_published
from unweave.published.deep.range_test import RepairedLayers, range_residuals, repair_by_swaps
from unweave.published.deep.reparametrization import (
    DiagonalParameters,
    Reparametrisation,
    exact_parameters,
    flip_signs,
    reparametrise,
)
from unweave.published.deep.sources import DerivativeSource, DifferencedFunction, ExactDerivatives

__all__ = [
    "AdaptedAssignment",
    "CompletionFit",
    "DerivativeSource",
    "DiagonalParameters",
    "DifferencedFunction",
    "EntangledRecovery",
    "ExactDerivatives",
    "LayerAssignment",
    "LayerOracle",
    "Outcome",
    "PublishedDeepOptions",
    "PublishedDeepResult",
    "RepairedLayers",
    "Reparametrisation",
    "assign_by_rays",
    "assign_layers",
    "assign_with_adaptive_radius",
    "complete",
    "complete_in_closed_form",
    "exact_parameters",
    "flip_signs",
    "hidden_directions",
    "layers_of",
    "leading_span",
    "range_residuals",
    "ray_scores",
    "recover_deep_as_published",
    "recover_entangled_weights",
    "repair_by_swaps",
    "reparametrise",
    "search_span",
    "span_of_hessians",
]
