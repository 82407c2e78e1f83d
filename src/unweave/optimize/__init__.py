"""First-order methods: momentum, RMSProp and Adam, their steps, mini-batches, and a record of a descent."""

from unweave.optimize.armijo import ArmijoDescent, armijo_descent
from unweave.optimize.first_order import (
    Adam,
    Descent,
    HeavyBall,
    NesterovGradient,
    RMSProp,
    corrected,
    descend,
)
from unweave.optimize.first_order_autoencoder import TiedAutoencoder
from unweave.optimize.first_order_steps import CertifiedStep, certified_step
from unweave.optimize.first_order_tracking import Track, curvature_range, gradient_differences, track
from unweave.optimize.mini_batches import MiniBatches, in_one_orthant, interpolation_constant
from unweave.optimize.tuning import ADAPTIVE_STEPS, NAG_STEPS, Tuned, tune_step

__all__ = [
    "ADAPTIVE_STEPS",
    "NAG_STEPS",
    "Adam",
    "ArmijoDescent",
    "CertifiedStep",
    "Descent",
    "HeavyBall",
    "MiniBatches",
    "NesterovGradient",
    "RMSProp",
    "TiedAutoencoder",
    "Track",
    "Tuned",
    "armijo_descent",
    "certified_step",
    "corrected",
    "curvature_range",
    "descend",
    "gradient_differences",
    "in_one_orthant",
    "interpolation_constant",
    "track",
    "tune_step",
]
