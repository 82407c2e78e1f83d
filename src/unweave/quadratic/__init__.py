"""Networks of quadratic units: exact solve, energy barrier, descent, counterexamples below the threshold."""

from unweave.quadratic.counterexample import Counterexample, counterexample
from unweave.quadratic.energy import (
    InputMoments,
    QuadraticDescent,
    QuadraticDescentOptions,
    StationaryCertificate,
    barrier_point,
    empirical_barrier,
    empirical_gradient,
    empirical_risk,
    identity_start,
    matched_scale,
    population_barrier,
    population_risk,
    quadratic_descent,
    start_over_barrier,
    stationary_certificate,
)
from unweave.quadratic.exact_solve import QuadraticForm, SpanTest, factor, solve_quadratic_form, span_test
from unweave.quadratic.recovery import quadratic_network, recover_quadratic, surplus_equations
from unweave.quadratic.sample_landscape import (
    LossCertificate,
    SampleBarrier,
    loss_certificate,
    sample_barrier,
)

__all__ = [
    "Counterexample",
    "InputMoments",
    "LossCertificate",
    "QuadraticDescent",
    "QuadraticDescentOptions",
    "QuadraticForm",
    "SampleBarrier",
    "SpanTest",
    "StationaryCertificate",
    "barrier_point",
    "counterexample",
    "empirical_barrier",
    "empirical_gradient",
    "empirical_risk",
    "factor",
    "identity_start",
    "loss_certificate",
    "matched_scale",
    "population_barrier",
    "population_risk",
    "quadratic_descent",
    "quadratic_network",
    "recover_quadratic",
    "sample_barrier",
    "solve_quadratic_form",
    "span_test",
    "start_over_barrier",
    "stationary_certificate",
    "surplus_equations",
]
