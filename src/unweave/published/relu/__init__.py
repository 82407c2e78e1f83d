"""ReLU networks with one hidden layer from Gaussian samples, through Hermite coefficients."""

from unweave.published.relu.gaussian_samples import (
    GaussianSampleOptions,
    GaussianSampleRecovery,
    recover_from_gaussian_samples,
)
from unweave.published.relu.published_depth2 import SpectralOptions
from unweave.published.relu.regression import RegressionLearner, learn_by_regression
from unweave.published.relu.relu_units import ReLUUnits
from unweave.published.relu.spectral_recovery import SpectralRecovery, recover_from_coefficients

__all__ = [
    "GaussianSampleOptions",
    "GaussianSampleRecovery",
    "ReLUUnits",
    "RegressionLearner",
    "SpectralOptions",
    "SpectralRecovery",
    "learn_by_regression",
    "recover_from_coefficients",
    "recover_from_gaussian_samples",
]
