"""One smooth hidden layer with unit weights: [identification] Algs. 3.1 to 3.3."""

from unweave.published.shallow.options import PublishedOptions
from unweave.published.shallow.pipeline import (
    PublishedRecovery,
    PublishedWeights,
    recover_published,
    recover_weights,
)
from unweave.published.shallow.shifts import RefinedShifts, SignsAndShifts, refine_shifts, signs_and_shifts

__all__ = [
    "PublishedOptions",
    "PublishedRecovery",
    "PublishedWeights",
    "RefinedShifts",
    "SignsAndShifts",
    "recover_published",
    "recover_weights",
    "refine_shifts",
    "signs_and_shifts",
]
