"""Least squares of second order, first-order methods, and sign patterns."""

from unweave.optimize.formed_jacobian import FormedJacobian
from unweave.optimize.least_squares import LeastSquares, Linearisation
from unweave.optimize.levenberg_marquardt import Fit, LevenbergMarquardtOptions, levenberg_marquardt

__all__ = [
    "Fit",
    "FormedJacobian",
    "LeastSquares",
    "LevenbergMarquardtOptions",
    "Linearisation",
    "levenberg_marquardt",
]
