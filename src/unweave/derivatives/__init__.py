"""From answers to gradients and Hessians."""

from unweave.derivatives.closed_form import network_gradients, network_hessians
from unweave.derivatives.directional import directional_derivatives
from unweave.derivatives.stencils import Jets, Scheme, gradient_jets, hessian_jets

__all__ = [
    "Jets",
    "Scheme",
    "directional_derivatives",
    "gradient_jets",
    "hessian_jets",
    "network_gradients",
    "network_hessians",
]
