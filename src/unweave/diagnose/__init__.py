"""Checkable figures: how hard a network is to recover, and what the theory promises about a result."""

from unweave.diagnose.certificates import DirectionCertificates, direction_certificates, subspace_error
from unweave.diagnose.frame_theory import (
    CountOfMaximisers,
    DistanceToWeight,
    FrameTheory,
    MaximiserNearWeight,
    TwoLevels,
    count_guarantee,
    direction_distance,
    eigenvector_distance,
    frame_theory,
    maximiser_guarantee,
    power_method_guarantee,
    spectral_ascent_guarantee,
)
from unweave.diagnose.incoherence import Incoherence, hadamard_gram, incoherence, unit_columns, welch_bound
from unweave.diagnose.learnability import (
    Learnability,
    derivative_gram,
    expected_learnability,
    hermite_tail,
    learnability_estimate,
)
from unweave.diagnose.shifts import (
    ShiftProblem,
    WeightErrorTerms,
    shift_gram,
    shift_problem,
    weight_error_terms,
)
from unweave.diagnose.weights import WeightDiagnostics, diagnose_network

__all__ = [
    "CountOfMaximisers",
    "DirectionCertificates",
    "DistanceToWeight",
    "FrameTheory",
    "Incoherence",
    "Learnability",
    "MaximiserNearWeight",
    "ShiftProblem",
    "TwoLevels",
    "WeightDiagnostics",
    "WeightErrorTerms",
    "count_guarantee",
    "derivative_gram",
    "diagnose_network",
    "direction_certificates",
    "direction_distance",
    "eigenvector_distance",
    "expected_learnability",
    "frame_theory",
    "hadamard_gram",
    "hermite_tail",
    "incoherence",
    "learnability_estimate",
    "maximiser_guarantee",
    "power_method_guarantee",
    "shift_gram",
    "shift_problem",
    "spectral_ascent_guarantee",
    "subspace_error",
    "unit_columns",
    "weight_error_terms",
    "welch_bound",
]
