"""Bias-free networks from Gaussian samples: tensor initialization, local strong convexity, descent."""

from unweave.tensor_start.activation_properties import ActivationProperties, Rho, activation_properties, rho
from unweave.tensor_start.bias_free import (
    LocalConvexity,
    empirical_hessian,
    local_convexity,
    predicted_extremes,
)
from unweave.tensor_start.initialization import TensorStart, hermite_constants, tensor_order, tensor_start
from unweave.tensor_start.recovery import (
    Descent,
    DescentOptions,
    TensorRecovery,
    gauss_newton,
    gradient_descent,
    recover_from_tensors,
)

__all__ = [
    "ActivationProperties",
    "Descent",
    "DescentOptions",
    "LocalConvexity",
    "Rho",
    "TensorRecovery",
    "TensorStart",
    "activation_properties",
    "empirical_hessian",
    "gauss_newton",
    "gradient_descent",
    "hermite_constants",
    "local_convexity",
    "predicted_extremes",
    "recover_from_tensors",
    "rho",
    "tensor_order",
    "tensor_start",
]
