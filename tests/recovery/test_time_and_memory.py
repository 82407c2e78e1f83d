"""A recovery ends when its time is over, wherever it is by then, and keeps to its memory."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.linalg

import unweave
from problems import PROBLEMS, Problem
from unweave import InvalidInput, Network, Recovery, Status
from unweave.methods.table import METHODS
from unweave.recovery import recover as front_door
from unweave.recovery.sources import SampledTarget
from unweave.search import Candidate, Method, Search
from unweave.targets.target import as_queries


class CountedLooks:
    """A clock that stands still until it has been looked at ``most`` times."""

    def __init__(self, most: float = np.inf) -> None:
        self.looks, self._most = 0, most

    def __call__(self) -> float:
        self.looks += 1
        return 0.0 if self.looks <= self._most else 1e9


def run(problem: Problem, clock: CountedLooks, monkeypatch: pytest.MonkeyPatch, **told: object) -> Recovery:
    told = {**problem.told, **told}
    if problem.samples:
        monkeypatch.setattr(front_door, "SampledTarget", partial(SampledTarget, clock=clock))
        return unweave.recover(problem.target, **told, deadline=1.0)
    queries = as_queries(problem.target, input_dim=told.pop("input_dim", None))
    timed = unweave.Queries(queries, queries.n_inputs, clock=clock, deadline=1.0)
    return unweave.recover(timed, **told)


def is_honest(result: Recovery) -> bool:
    return not result.status.is_recovered or np.isfinite(result.error)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_method_ends_where_the_clock_stops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PROBLEMS[name]()
    whole = CountedLooks()
    assert run(problem, whole, monkeypatch).status.is_recovered
    for share in (0.02, 0.4, 0.9):
        clock = CountedLooks(share * whole.looks)
        result = run(problem, clock, monkeypatch)
        assert isinstance(result, Recovery)
        assert is_honest(result), result
        assert clock.looks < 1.2 * whole.looks + 100, "loops go on after the time is over"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_method_ends_at_many_places(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PROBLEMS[name]()
    whole = CountedLooks()
    run(problem, whole, monkeypatch)
    for looks in np.unique(np.geomspace(1, whole.looks, 40).astype(int)):
        assert is_honest(run(problem, CountedLooks(looks), monkeypatch))


class _Stub(Search):
    """A search whose numbers break down in a way of our choice."""

    breaks: Callable[[_Stub], None]

    def run(self) -> None:
        type(self).breaks(self)

    def candidate(self) -> Candidate:
        return Candidate()


def _of(breaks: Callable[[_Stub], None]) -> Method:
    search = type("Broken", (_Stub,), {"breaks": breaks})
    return replace(METHODS[0], name="broken", search=search, refuses=lambda request, findings: None)


def _raised(error: Exception) -> Callable[[_Stub], None]:
    def breaks(search: _Stub) -> None:
        raise error

    return breaks


BREAKDOWNS = {
    "a point that overflowed": lambda search: search.context.view(np.full((1, 3), np.inf)),
    "a network that overflowed": lambda search: Network([np.full((3, 1), np.nan)], [[0.0]], ["identity"]),
    "scipy": lambda search: scipy.linalg.cho_factor(np.full((2, 2), np.nan)),
    "numpy": lambda search: np.linalg.inv(np.zeros((2, 2))),
    "arithmetic": _raised(FloatingPointError("overflow encountered")),
    "a float too large": lambda search: math.exp(1e4),
    "a division": lambda search: 1.0 / float(np.zeros(1)[0]),
    "no memory": _raised(MemoryError("Unable to allocate 74.5 GiB")),
}


@pytest.mark.parametrize("what", BREAKDOWNS)
def test_numbers_that_break_down_end_a_method_and_not_the_recovery(what: str) -> None:
    result = unweave.recover(unweave.random_network([3, 2, 1]), method=_of(BREAKDOWNS[what]))
    assert result.status is Status.FAILED
    assert "broke down" in result.message or "memory" in result.message


def test_a_mistake_in_a_program_is_not_hidden() -> None:
    with pytest.raises(ValueError, match="cannot reshape"):
        unweave.recover(
            unweave.random_network([3, 2, 1]), method=_of(_raised(ValueError("cannot reshape array")))
        )


def test_a_candidate_that_overflowed_is_none() -> None:
    class Held(_Stub):
        def run(self) -> None:
            pass

        def candidate(self) -> Candidate:
            return Candidate(Network([np.full((3, 1), np.inf)], [[0.0]], ["identity"]))

    method = replace(_of(lambda search: None), search=Held)
    result = unweave.recover(unweave.random_network([3, 2, 1]), method=method)
    assert result.status is Status.FAILED
    assert "must be finite" in result.message


def test_examples_that_are_not_finite_are_still_refused() -> None:
    with pytest.raises(InvalidInput, match="finite"):
        unweave.recover(unweave.random_network([3, 2, 1]), examples=np.full((5, 3), np.nan))


@pytest.mark.parametrize("activation", [pytest.param("relu", marks=pytest.mark.slow), "tanh"])
def test_many_inputs_are_asked_about_in_pieces(activation: str) -> None:
    network = unweave.random_network([1500, 2, 1], activation=activation, seed=1000, outer="signed")
    examples = np.random.default_rng(1).standard_normal((20, 1500))
    most = 0

    def target(x: np.ndarray) -> np.ndarray:
        nonlocal most
        most = max(most, x.nbytes)
        return network(x)

    result = unweave.recover(target, [2], activation, input_dim=1500, examples=examples)
    assert result.status.is_recovered, result.message
    assert unweave.compare(network, result.network).function_error < 1e-8
    assert most <= 40e6


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_ten_thousand_inputs_need_no_matrix_of_their_square(activation: str) -> None:
    code = (
        "import resource, unweave\n"
        f"net = unweave.random_network([10_000, 3, 1], activation={activation!r}, seed=1, outer='normal')\n"
        "result = unweave.recover(net, max_memory=2e9)\n"
        "print(result.status.name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    status, peak = told.split()
    assert status == "RECOVERED"
    assert float(peak) < 2000
