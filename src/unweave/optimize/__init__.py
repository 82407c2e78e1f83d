"""First-order methods: accelerated gradient, RMSProp and Adam, their steps, and a record of a descent."""

from unweave.optimize.armijo import ArmijoDescent, armijo_descent
from unweave.optimize.first_order import Adam, Descent, NesterovGradient, RMSProp, corrected, descend
from unweave.optimize.first_order_autoencoder import TiedAutoencoder
from unweave.optimize.first_order_steps import CertifiedStep, certified_step
from unweave.optimize.first_order_tracking import Track, curvature_range, gradient_differences, track

__all__ = [
    "Adam",
    "ArmijoDescent",
    "CertifiedStep",
    "Descent",
    "NesterovGradient",
    "RMSProp",
    "TiedAutoencoder",
    "Track",
    "armijo_descent",
    "certified_step",
    "corrected",
    "curvature_range",
    "descend",
    "gradient_differences",
    "track",
]
