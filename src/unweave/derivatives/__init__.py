"""From answers to gradients and Hessians."""

from unweave.derivatives.entangled import network_gradients, network_hessians
from unweave.derivatives.stencils import Jets, Scheme, directional_derivatives, gradient_jets, hessian_jets

__all__ = [
    "Jets",
    "Scheme",
    "directional_derivatives",
    "gradient_jets",
    "hessian_jets",
    "network_gradients",
    "network_hessians",
]
