"""The final fit: Gauss-Newton on all parameters, with what turns out not to be there taken out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.derivatives.stencils import Jets
from unweave.derivatives.truncation import difference_gradients
from unweave.methods.shared.mirrored_units import mirror_back
from unweave.methods.smooth.sobolev_fit import SobolevFit
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.least_squares import Fit, LevenbergMarquardtOptions, levenberg_marquardt

_SKIP_SEEN = 1e-3  # skip matrix relative to the gradients, above which it is taken to be there
_SKIP_NEGLIGIBLE = 1e-7  # the same after the fit, below which it is taken out again
_NOT_ACTING = 300.0  # times the floor: a skip or neuron that contributes less is not there


@dataclass(frozen=True, eq=False)
class FinalFit:
    """The fitted network and how well its equations determine it."""

    model: NetworkParameters
    history: tuple[float, ...]
    """Root mean square residual, step by step."""
    floor: float
    """What the answers' rounding or noise would leave of it."""
    prediction_floor: float
    """What the same leaves of a prediction, on average: floor sqrt(P / (n - P)) for n equations."""
    condition: float
    error_bar: float | None
    """Largest standard error of a parameter; None if the equations do not determine them all."""


def fit_all_parameters(
    model: NetworkParameters, jets: tuple[Jets, ...], noise: float, on_step: Callable[[int, float], None]
) -> FinalFit:
    """Fit every parameter to values and gradients; ``noise`` is the standard deviation of an answer."""
    sites = sum(len(part) for part in jets)
    floor = noise * float(np.sqrt(sum(len(part) * part.gradient_noise**2 for part in jets) / sites))
    model, fit = _minimise(_with_linear_part(model, jets[0]), jets, floor, on_step)
    model = mirror_back(model)
    if model.skip is not None and _is_negligible(model.skip, jets[0], floor):
        model, fit = _minimise(replace(model, skip=None), jets, floor, on_step)  # only a rough start had one
    acting = _acting(model, jets, floor)
    if 0 < acting.sum() < model.width:
        model, fit = _minimise(model.keep(acting), jets, floor, on_step)
    error_bar = None
    if fit.covariance_diagonal is not None:
        error_bar = max(fit.rms, floor) * float(np.sqrt(fit.covariance_diagonal.max()))
    equations = sum(part.values.size * (1 + part.sites.shape[1]) for part in jets)
    amplified = float(np.sqrt(model.size / max(equations - model.size, 1)))
    return FinalFit(model, fit.history, floor, floor * amplified, fit.condition, error_bar)


def fit_linear_part(model: NetworkParameters, jets: Jets, with_skip: bool) -> NetworkParameters:
    """Give ``model`` the constant c, and the skip S if wanted, that fit ``jets`` best given its units."""
    hidden, offset = model.biases
    bare = replace(model, biases=(hidden, np.zeros_like(offset)), skip=None)
    skip = None
    remainder = jets.values - bare.values(jets.sites)
    if with_skip:
        skip = skip_matrix(bare, jets)
        remainder = remainder - jets.sites @ skip
    return replace(bare, biases=(hidden, remainder.mean(axis=0)), skip=skip)


def skip_matrix(model: NetworkParameters, jets: Jets) -> Array:
    """(d, K) mean of the gradients that the units of ``model`` leave unexplained."""
    units = replace(model, skip=None)
    unexplained = jets.gradients - difference_gradients(units, jets.sites, jets.step, jets.rule)
    return np.asarray(unexplained.mean(axis=0).T)


def _minimise(
    start: NetworkParameters, jets: tuple[Jets, ...], floor: float, on_step: Callable[[int, float], None]
) -> tuple[NetworkParameters, Fit]:
    # From exact derivatives the start may be at the floor already.
    least = 1 if any(part.rule == "exact" for part in jets) else 0
    options = LevenbergMarquardtOptions(floor=floor, least_steps=least)
    fit = levenberg_marquardt(SobolevFit(start, jets), start.to_vector(), options, on_step)
    return start.from_vector(fit.vector), fit


def _with_linear_part(model: NetworkParameters, data: Jets) -> NetworkParameters:
    """The model with its output constant, and with a skip if the gradients show one."""
    size = float(np.sqrt(np.mean(data.gradients**2)))
    largest = float(np.abs(skip_matrix(model, data)).max())
    return fit_linear_part(model, data, with_skip=largest > _SKIP_SEEN * size)


def _is_negligible(skip: Array, jets: Jets, floor: float) -> bool:
    size = float(np.sqrt(np.mean(jets.gradients**2)))
    return float(np.abs(skip).max()) <= max(_SKIP_NEGLIGIBLE * size, _NOT_ACTING * floor)


def _acting(model: NetworkParameters, jets: tuple[Jets, ...], floor: float) -> BoolArray:
    """(m,) which neurons contribute more than rounding or noise to the outputs at the sites."""
    sites = np.concatenate([part.sites for part in jets])
    variation = model.activation(sites @ model.weights[0] + model.biases[0]).std(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # a fit that ran away
        contribution = np.linalg.norm(model.weights[1], axis=1) * variation
    return np.asarray(contribution > _NOT_ACTING * floor)
