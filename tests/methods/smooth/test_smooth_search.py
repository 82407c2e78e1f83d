from __future__ import annotations

import numpy as np
import pytest

import unweave
from searches import searched
from unweave import Network
from unweave.methods.shared.profiles.neuron_fits import rank_one_coefficients
from unweave.search import Candidate, Journal, Request
from unweave.subspace.symmetric import symmetric_packing

TANH = Request(activation="tanh")


def run(
    network: Network, request: Request | None = None, budget: int | None = None
) -> tuple[Candidate, Journal]:
    done = searched("smooth", network, request, budget=budget)
    return done.candidate, done.journal


def planted(layers: list[int], activation: str = "tanh", seed: int = 1001) -> Network:
    return unweave.random_network(layers, activation, seed=seed, outer="signed")


def names(journal: Journal) -> list[str]:
    return [stage.name for stage in journal.stages]


def test_few_neurons_go_by_pencils() -> None:
    candidate, journal = run(planted([7, 4, 1]), TANH)
    assert names(journal) == ["gradients", "pencils", "activation", "neurons", "polish"]
    assert (candidate.evidence.active_dimension, candidate.evidence.width, candidate.evidence.found) == (
        4,
        4,
        4,
    )


def test_many_neurons_go_by_the_span() -> None:
    candidate, journal = run(planted([5, 9, 1]), Request((9,), "tanh"))
    assert names(journal) == [
        "gradients",
        "Hessians",
        "power method",
        "activation",
        "neurons",
        "truncation",
        "polish",
    ]
    evidence = candidate.evidence
    assert (evidence.width, evidence.found) == (9, 9)
    assert evidence.spectrum is not None
    assert evidence.gap == pytest.approx(evidence.spectrum[8] / evidence.spectrum[9])
    assert evidence.rates is not None
    assert (evidence.rates < 1).all()


@pytest.mark.parametrize("layers", [[7, 4, 1], [5, 9, 1]])
def test_the_fit_ends_at_its_floor_and_the_evidence_says_so(layers: list[int]) -> None:
    candidate, _ = run(planted(layers), TANH)
    evidence = candidate.evidence
    assert evidence.fit_floor is not None
    assert evidence.fit_history[-1] <= 10 * evidence.fit_floor
    assert evidence.condition is not None
    assert 1 < evidence.condition < 1e8
    assert evidence.parameter_error_bar is not None
    assert evidence.parameter_error_bar < 1e-9
    assert candidate.problem is None
    assert candidate.notes == ()


@pytest.mark.parametrize("layers", [[7, 4, 1], [5, 9, 1]])
@pytest.mark.parametrize("activation", ["erf", "softplus", "sine"])
def test_the_activation_with_the_smallest_misfit_is_the_planted_one(
    activation: str, layers: list[int]
) -> None:
    candidate, _ = run(planted(layers, activation))
    residuals = candidate.evidence.activation_residuals
    assert min(residuals, key=lambda name: residuals[name]) == activation
    assert candidate.network is not None
    assert candidate.network.activations[0] == activation


@pytest.mark.parametrize("activation", ["softplus", "tanh"])
def test_a_skip_is_paid_for_in_equations(activation: str) -> None:
    # The final fit must see more equations than unknowns, those of a skip included.
    base = planted([7, 4, 3], activation)
    skip = np.random.default_rng(1002).standard_normal((7, 3))
    target = Network(base.weights, base.biases, base.activations, skip=skip)
    candidate, journal = run(target, Request((4,), activation))
    polish = next(stage for stage in journal.stages if stage.name == "polish")
    assert polish.figures["equations"] >= 1.1 * polish.figures["parameters"]
    assert candidate.network is not None
    assert unweave.compare(target, candidate.network).parameter_error < 1e-9


@pytest.mark.parametrize("layers", [[7, 4, 1], [5, 9, 1]])
def test_a_budget_is_never_an_exception(layers: list[int]) -> None:
    _, journal = run(planted(layers), TANH)
    whole = sum(stage.queries for stage in journal.stages)
    for budget in np.linspace(0, whole - 1, 7).astype(int):
        candidate, cut = run(planted(layers), TANH, budget=int(budget))
        assert candidate.problem is not None
        assert "budget" in candidate.problem
        assert not candidate.interrupted
        assert sum(stage.queries for stage in cut.stages) <= budget


def test_an_interruption_hands_back_what_there_is() -> None:
    target, asked = planted([7, 4, 1]), []

    def interrupted(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        if sum(asked) > 500:
            raise KeyboardInterrupt
        return target(x)

    candidate = searched("smooth", interrupted, input_dim=7, seed=1003).candidate
    assert candidate.interrupted
    assert candidate.problem == "interrupted"


def test_a_network_that_is_no_sum_of_neurons_is_refused_with_the_reason() -> None:
    candidate, _ = run(planted([5, 4, 4, 1]), TANH)
    assert candidate.problem is not None
    assert "Hessians" in candidate.problem


def test_coefficients_of_rank_one_terms() -> None:
    rng = np.random.default_rng(1004)
    directions = rng.standard_normal((6, 4))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    coefficients = rng.standard_normal((5, 6, 2))
    hessians = np.einsum("nmk,mp->nkp", coefficients, symmetric_packing(4).outer(directions))
    np.testing.assert_allclose(rank_one_coefficients(directions, hessians), coefficients, atol=1e-10)
