"""Second-order least squares."""

from unweave.optimize.least_squares import LeastSquares, Linearisation
from unweave.optimize.levenberg_marquardt import Fit, LevenbergMarquardtOptions, levenberg_marquardt

__all__ = ["Fit", "LeastSquares", "LevenbergMarquardtOptions", "Linearisation", "levenberg_marquardt"]
