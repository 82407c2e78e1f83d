"""Nonlinear least squares: one Levenberg-Marquardt loop and the linear algebras that solve its steps."""

from unweave.numerics.least_squares.formed_jacobian import FormedJacobian
from unweave.numerics.least_squares.levenberg_marquardt import (
    LevenbergMarquardtOptions,
    Path,
    Steps,
    minimise,
)
from unweave.numerics.least_squares.problem import LeastSquares, Linearisation
from unweave.numerics.least_squares.solved_steps import Fit, levenberg_marquardt

__all__ = [
    "Fit",
    "FormedJacobian",
    "LeastSquares",
    "LevenbergMarquardtOptions",
    "Linearisation",
    "Path",
    "Steps",
    "levenberg_marquardt",
    "minimise",
]
