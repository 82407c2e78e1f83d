"""Checkable figures: how hard a network is to recover, and what the theory promises about a result."""

import sys

from unweave.diagnose.deep import DeepDiagnostics, LayerDiagnostics, diagnose_layers
from unweave.diagnose.frame_theory import (
    CountOfMaximisers,
    DirectionCertificates,
    DistanceToWeight,
    FrameTheory,
    MaximiserNearWeight,
    TwoLevels,
    count_guarantee,
    direction_certificates,
    direction_distance,
    distance_guarantee,
    eigenvector_distance,
    frame_theory,
    maximiser_guarantee,
    power_method_guarantee,
    spectral_ascent_guarantee,
    subspace_error,
)
from unweave.diagnose.hypotheses import (
    ActivationHypotheses,
    Independence,
    ShiftBasin,
    activation_hypotheses,
    hessians_needed,
    independence,
    inputs_needed,
    isometry_bracket,
    shift_basin,
    span_error_bound,
)
from unweave.diagnose.incoherence import Incoherence, hadamard_gram, incoherence, unit_columns, welch_bound
from unweave.diagnose.learnability import (
    Learnability,
    derivative_gram,
    expected_learnability,
    hermite_tail,
    learnability_estimate,
    slope_bounds,
)
from unweave.diagnose.room import DiagnoseRoom, Diagnosis, diagnose
from unweave.diagnose.shifts import (
    ShiftProblem,
    WeightErrorTerms,
    shift_gram,
    shift_problem,
    weight_error_terms,
)
from unweave.diagnose.spectral_test import SpectralOptimality, spectral_optimality
from unweave.diagnose.weights import WeightDiagnostics, diagnose_network

__all__ = [
    "ActivationHypotheses",
    "CountOfMaximisers",
    "DeepDiagnostics",
    "Diagnosis",
    "DirectionCertificates",
    "DistanceToWeight",
    "FrameTheory",
    "Incoherence",
    "Independence",
    "LayerDiagnostics",
    "Learnability",
    "MaximiserNearWeight",
    "ShiftBasin",
    "ShiftProblem",
    "SpectralOptimality",
    "TwoLevels",
    "WeightDiagnostics",
    "WeightErrorTerms",
    "activation_hypotheses",
    "count_guarantee",
    "derivative_gram",
    "diagnose",
    "diagnose_layers",
    "diagnose_network",
    "direction_certificates",
    "direction_distance",
    "distance_guarantee",
    "eigenvector_distance",
    "expected_learnability",
    "frame_theory",
    "hadamard_gram",
    "hermite_tail",
    "hessians_needed",
    "incoherence",
    "independence",
    "inputs_needed",
    "isometry_bracket",
    "learnability_estimate",
    "maximiser_guarantee",
    "power_method_guarantee",
    "shift_basin",
    "shift_gram",
    "shift_problem",
    "slope_bounds",
    "span_error_bound",
    "spectral_ascent_guarantee",
    "spectral_optimality",
    "subspace_error",
    "unit_columns",
    "weight_error_terms",
    "welch_bound",
]

sys.modules[__name__].__class__ = DiagnoseRoom  # so that unweave.diagnose(network) is an answer
