from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from unweave.search.journal import Journal, Progress


@dataclass
class Counter:
    """A ledger that only counts."""

    sent: int = 0


def test_stages_have_their_own_queries_and_figures() -> None:
    ledger = Counter(5)
    journal = Journal(ledger)
    with journal.stage("first") as stage:
        ledger.sent += 7
        stage.figures["gap"] = 2.5
    with journal.stage("second"):
        ledger.sent += 1
    assert [(stage.name, stage.queries, stage.figures) for stage in journal.stages] == [
        ("first", 7, {"gap": 2.5}),
        ("second", 1, {}),
    ]
    assert 0 <= sum(stage.seconds for stage in journal.stages) <= journal.seconds


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_stage_is_written_down_when_it_ends_in_an_exception(error: BaseException) -> None:
    ledger = Counter()
    journal = Journal(ledger)
    with pytest.raises(type(error)), journal.stage("broken") as stage:  # noqa: PT012
        ledger.sent += 3
        stage.figures["sites"] = 2
        raise error
    assert [(stage.name, stage.queries, stage.figures) for stage in journal.stages] == [
        ("broken", 3, {"sites": 2})
    ]


def test_after_an_exception_progress_belongs_to_the_outer_stage() -> None:
    told: list[Progress] = []
    journal = Journal(Counter(), told.append)
    with journal.stage("outer"):
        with pytest.raises(ValueError, match="no"), journal.stage("inner"):
            raise ValueError("no")
        journal.tell(1, 2, "steps")
    assert [(sign.stage, sign.done, sign.total, sign.unit) for sign in told] == [
        ("outer", 0, None, ""),
        ("inner", 0, None, ""),
        ("outer", 1, 2, "steps"),
    ]
    assert [stage.name for stage in journal.stages] == ["inner", "outer"]


def test_nothing_is_told_between_stages() -> None:
    told: list[Progress] = []
    journal = Journal(Counter(), told.append)
    journal.tell(1, 2, "steps")
    with journal.stage("only"):
        pass
    journal.tell(2, 2, "steps")
    assert [sign.stage for sign in told] == ["only"]


def test_progress_carries_the_count_of_the_ledger() -> None:
    ledger, told = Counter(10), []
    journal = Journal(ledger, told.append)
    with journal.stage("first"):
        ledger.sent = 25
        journal.tell(3, 4, "sites")
    assert [sign.queries for sign in told] == [10, 25]
    assert told[0].seconds <= told[1].seconds


def test_a_finished_stage_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    ledger = Counter()
    with caplog.at_level(logging.INFO, logger="unweave"), Journal(ledger).stage("look") as stage:
        ledger.sent = 12
        stage.figures["noise"] = "float64"
    assert len(caplog.records) == 1
    assert "look" in caplog.text
    assert "12 queries" in caplog.text
    assert "float64" in caplog.text
