"""Nonlinear least squares: one Levenberg-Marquardt loop and the linear algebras that solve its steps."""

from unweave.numerics.least_squares.formed_jacobian import FormedJacobian
from unweave.numerics.least_squares.levenberg_marquardt import (
    Fit,
    LevenbergMarquardtOptions,
    levenberg_marquardt,
)
from unweave.numerics.least_squares.problem import LeastSquares, Linearisation

__all__ = [
    "Fit",
    "FormedJacobian",
    "LeastSquares",
    "LevenbergMarquardtOptions",
    "Linearisation",
    "levenberg_marquardt",
]
