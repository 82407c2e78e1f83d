"""Smooth networks from queries."""

from unweave.smooth.profiles import Profiles, fit_profiles, refine_profiles
from unweave.smooth.published import PublishedRecovery, PublishedWeights, recover_published, recover_weights
from unweave.smooth.published_options import PublishedOptions
from unweave.smooth.published_shifts import RefinedShifts, SignsAndShifts, refine_shifts, signs_and_shifts
from unweave.smooth.shallow import ShallowRecovery
from unweave.smooth.shallow_model import ShallowModel
from unweave.smooth.shallow_options import ShallowOptions
from unweave.smooth.sobolev_fit import SobolevFit

__all__ = [
    "Profiles",
    "PublishedOptions",
    "PublishedRecovery",
    "PublishedWeights",
    "RefinedShifts",
    "ShallowModel",
    "ShallowOptions",
    "ShallowRecovery",
    "SignsAndShifts",
    "SobolevFit",
    "fit_profiles",
    "recover_published",
    "recover_weights",
    "refine_profiles",
    "refine_shifts",
    "signs_and_shifts",
]
