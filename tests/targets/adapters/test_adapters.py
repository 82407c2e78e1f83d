"""Every kind of target behaves alike: the same table of checks crossed with the table of kinds."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import unweave
from planted_targets import DOUBLE, NET, ONE_OUTPUT, OVERFLOWS, SINGLE, TARGETS, Planted, made
from unweave import InvalidInput, Queries, TargetError
from unweave.targets.adapters.answer_source import AnswerSource
from unweave.targets.target import as_queries, open_target, release

DOUBLES = [name for name in TARGETS if TARGETS[name].precision == DOUBLE and TARGETS[name].distinct]
TOLD: dict[str, Any] = {"hidden": [4], "activation": "tanh"}
UNTOLD = ("function", "onnx", "command csv")  # width and activation are found out; the search costs time
ROWS = np.random.default_rng(1000).standard_normal((1000, 6))


@pytest.fixture(scope="module", params=TARGETS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def kind(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Planted, Any]]:
    """The description of a kind and a target of it, closed when all checks have run."""
    planted = TARGETS[name]
    net = NET if planted.most == 2 else ONE_OUTPUT
    with made(name, tmp_path_factory.mktemp("targets"), net) as target:
        yield planted, target


def truth(planted: Planted, rows: np.ndarray) -> np.ndarray:
    return NET(rows)[:, : planted.most]


@pytest.fixture
def opened(kind: tuple[Planted, Any]) -> Iterator[Any]:
    """Makes a ledger for the target, and lets go of it afterwards."""
    planted, target = kind
    made: list[Queries] = []

    def ledger(**options: Any) -> Queries:
        made.append(as_queries(target, **{"input_dim": planted.input_dim, **options}))
        return made[-1]

    yield ledger
    for queries in made:
        release(queries)


def test_same_answers_as_the_network_it_was_made_from(kind, opened):
    planted, _ = kind
    queries = opened()
    answers = queries(ROWS)
    assert queries.n_inputs == 6
    assert answers.dtype == np.float64
    assert answers.shape == (1000, planted.most)
    np.testing.assert_allclose(answers, truth(planted, ROWS), rtol=0, atol=planted.precision)
    assert queries.sent == 1000


def test_a_single_row_and_none(kind, opened):
    planted, _ = kind
    queries = opened()
    assert queries(np.empty((0, 6))).shape == (0, 0)
    np.testing.assert_allclose(queries(ROWS[:1]), truth(planted, ROWS[:1]), rtol=0, atol=planted.precision)
    assert queries(np.empty((0, 6))).shape == (0, planted.most)
    assert queries.sent == 1


def test_batches_do_not_change_the_answers(kind, opened):
    planted, target = kind
    source = open_target(target, planted.input_dim)
    queries = Queries(source, 6, batch_rows=100)
    # Sums may be taken in another order for another number of rows.
    np.testing.assert_allclose(queries(ROWS[:300]), opened()(ROWS[:300]), rtol=0, atol=planted.precision)
    assert queries.calls == 3
    if source is not target and hasattr(source, "close"):
        source.close()


def test_the_same_question_gets_the_same_answer(opened):
    queries = opened()
    first = queries(ROWS[:20], fresh=True)
    np.testing.assert_array_equal(queries(ROWS[:20], fresh=True), first)


def test_rows_given_are_left_alone(opened):
    rows = ROWS[:10].copy()
    opened()(rows)
    np.testing.assert_array_equal(rows, ROWS[:10])


def test_wrong_widths_are_refused(kind, opened):
    planted, _ = kind
    with pytest.raises(InvalidInput, match=r"x must be an array of shape \(n, 6\)"):
        opened()(np.zeros((3, 5)))
    if planted.input_dim is None and not isinstance(kind[1], str):  # a URL believes what it is told
        with pytest.raises(InvalidInput, match="input_dim must be 6"):
            opened(input_dim=5)


def test_the_budget_is_kept(opened):
    queries = opened(max_queries=15)
    queries(ROWS[:10])
    with pytest.raises(unweave.BudgetExhausted):
        queries(ROWS[10:20])
    assert queries.sent == 10


def test_asked_from_other_threads(kind, opened):
    planted, _ = kind
    queries = [opened() for _ in range(3)]
    answers: list[Any] = [None] * 3

    def ask(i: int) -> None:
        answers[i] = queries[i](ROWS[100 * i : 100 * (i + 1)])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(
        np.concatenate(answers), truth(planted, ROWS[:300]), rtol=0, atol=planted.precision
    )


def test_the_ledger_has_no_door_to_the_target(opened):
    queries = opened()
    assert not hasattr(queries, "weights")
    assert list(vars(queries._sender.function)) == []


@pytest.mark.parametrize("double", DOUBLES)
def test_recovered(double, tmp_path):
    planted = TARGETS[double]
    net = NET if planted.most == 2 else ONE_OUTPUT
    with made(double, tmp_path, net) as target:
        result = unweave.recover(target, input_dim=planted.input_dim, **({} if double in UNTOLD else TOLD))
    assert result.status is unweave.Status.RECOVERED, result.message
    # Digits that the condition of the problem costs: 1e-16 of rounding, magnified by less than 1e5.
    assert unweave.compare(net, result.network).parameter_error < 1e-11


@pytest.mark.parametrize("single", ["torch float32", "keras", "onnx float32"])
def test_single_precision_is_found_out_and_fitted(single, tmp_path):
    with made(single, tmp_path) as target:
        result = unweave.recover(target, **TOLD)
    assert result.status is unweave.Status.RECOVERED, result.message
    assert unweave.compare(NET, result.network).parameter_error < SINGLE


def test_one_output_is_one_column(name, tmp_path):
    planted = TARGETS[name]
    with made(name, tmp_path, ONE_OUTPUT) as target:
        queries = as_queries(target, input_dim=planted.input_dim)
        np.testing.assert_allclose(queries(ROWS[:9]), NET(ROWS[:9])[:, :1], rtol=0, atol=planted.precision)
        release(queries)


def test_infinite_answers_are_reported(name, tmp_path):
    with made(name, tmp_path, OVERFLOWS) as target:
        queries = as_queries(target, input_dim=TARGETS[name].input_dim)
        with pytest.raises(TargetError, match=r"finite|Infinity"):
            queries(ROWS[:3])
        release(queries)


def _ask_for_ever(queries: Queries) -> None:
    while True:
        queries(ROWS[:100], fresh=True)


def test_an_interrupt_passes_through_and_leaves_the_target_usable(kind, opened):
    """Ctrl-C at some moment of a long row of questions."""
    planted, _ = kind
    queries = opened()
    queries(ROWS[:1])

    handlers = {
        signal.SIGALRM: lambda *_: signal.raise_signal(signal.SIGINT),
        signal.SIGINT: signal.default_int_handler,  # which a worker of pytest may ignore
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(KeyboardInterrupt):
            _ask_for_ever(queries)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    np.testing.assert_allclose(queries(ROWS[:50]), truth(planted, ROWS[:50]), rtol=0, atol=planted.precision)


def test_every_adapter_is_an_answer_source(kind):
    planted, target = kind
    source: AnswerSource = open_target(target, planted.input_dim)
    assert source.n_inputs in (6, None)
    assert callable(source)
    if source is not target and hasattr(source, "close"):
        source.close()
