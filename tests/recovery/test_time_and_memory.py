"""A recovery ends when its time is over, wherever it is by then, and keeps to its memory."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import unweave
from problems import PROBLEMS, Problem
from unweave import Recovery
from unweave.recovery import recover as front_door
from unweave.recovery.sources import SampledTarget
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
