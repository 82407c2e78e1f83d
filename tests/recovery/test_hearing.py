"""What was asked elsewhere, asked again or declared speaks against a network that agrees with fresh rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import unweave
from searches import judged, searched
from unweave import Network, Samples, Status
from unweave.arrays import Array
from unweave.errors import InvalidInput, NonFiniteAnswers
from unweave.recovery.fresh_rows import ALL_CORNERS_INPUTS, MOST_CORNERS, Elsewhere
from unweave.recovery.hearing import hear
from unweave.targets.witnesses import MOST_WITNESSES, ROWS_ASKED_AGAIN

SMALL = unweave.random_network([4, 3, 1], seed=1000, outer="signed")
KINKED = unweave.random_network([4, 3, 1], "relu", seed=1001, outer="signed")


def corner_unit(inputs: int) -> Callable[[Array], Array]:
    network = unweave.random_network([inputs, 2, 1], "relu", seed=1002, outer="signed")
    corner = np.random.default_rng(1003).choice([-1.0, 1.0], inputs)
    return lambda x: network(x) + 5 * np.maximum(x @ corner - (inputs - 1.5), 0)[:, None]


def test_a_unit_that_acts_in_one_corner_of_a_box_is_seen() -> None:
    result = unweave.recover(corner_unit(9), input_dim=9, domain=(-1, 1), method="relu")
    assert result.status is Status.APPROXIMATE
    assert "contradict the network" in result.message
    assert result.certificate["corners"].value == 2**9


def test_not_all_corners_of_a_large_box_are_asked(recorder: Any) -> None:
    inputs = ALL_CORNERS_INPUTS + 2
    target = recorder(unweave.random_network([inputs, 2, 1], "relu", seed=1004, outer="signed"))
    result = unweave.recover(target, input_dim=inputs, domain=(-1, 1))
    assert result.status is Status.RECOVERED
    assert result.certificate["corners"].value == MOST_CORNERS
    assert f"of the 2^{inputs} that" in result.certificate["corners"].implies
    assert np.abs(target.rows).max() <= 1


@pytest.mark.parametrize("inputs", [ALL_CORNERS_INPUTS, ALL_CORNERS_INPUTS + 2])
def test_a_small_budget_pays_for_some_corners(inputs: int) -> None:
    network = unweave.random_network([inputs, 2, 1], "relu", seed=1004, outer="signed")
    given: dict[str, Any] = {"input_dim": inputs, "domain": (-1, 1), "method": "relu"}
    usual = unweave.recover(network, **given)
    limit = usual.queries - 1000  # fewer than all corners, more than all else
    result = unweave.recover(network, max_queries=limit, **given)
    assert result.status is Status.RECOVERED
    assert result.queries <= limit
    assert 0 < result.certificate["corners"].value < usual.certificate["corners"].value


@pytest.mark.parametrize("bound", [1.5, 2.5])
@pytest.mark.parametrize("instead", [np.nan, np.inf])
def test_near_rows_without_a_number_speak_against_any_network(bound: float, instead: float) -> None:
    def target(x: Array) -> Array:
        return np.where((np.abs(x) > bound).any(axis=1, keepdims=True), instead, SMALL(x))

    try:
        result = unweave.recover(target, input_dim=4, seed=1)
    except NonFiniteAnswers:
        return
    assert not result.status.is_recovered
    assert "contradict the network" in result.message


def test_what_overflows_in_the_network_too_is_no_contradiction() -> None:
    growing = Network([np.full((3, 1), 400.0)], [np.zeros(1)], ["exp"])
    result = unweave.recover(growing, input_dim=3)
    assert result.queries > 0
    assert result.status is Status.RECOVERED


def test_rows_far_out_can_contradict() -> None:
    # Two units of a second layer bend the surfaces of the first only far from the region.
    done = searched("relu", KINKED, seed=1005)
    far = 1e4 * np.ones((1, 4))
    wrong = Network(
        [np.hstack([KINKED.weights[0], np.ones((4, 1))]), np.vstack([KINKED.weights[1], [[1.0]]])],
        [np.append(KINKED.biases[0], -2e4), KINKED.biases[1]],
        KINKED.activations,
    )
    near = np.random.default_rng(0).standard_normal((1000, 4))
    np.testing.assert_allclose(wrong(near), KINKED(near), atol=1e-13)
    done.view(done.findings.region.to_normalised(far))
    verdict = judged(replace(done.candidate, network=wrong), done.view, done.findings)
    assert not verdict.status.is_recovered
    assert judged(done.candidate, done.view, done.findings).status is Status.RECOVERED


def test_a_problem_that_the_search_reports_is_never_overruled() -> None:
    done = searched("smooth", SMALL, seed=1006)
    verdict = judged(replace(done.candidate, problem="rows far out differ"), done.view, done.findings)
    assert verdict.status is Status.APPROXIMATE
    assert verdict.reason.startswith("rows far out differ; fresh rows agree to")
    told = judged(
        replace(done.candidate, problem="rows far out differ"), done.view, done.findings, tolerance=1e-6
    )
    assert told.status is Status.RECOVERED  # the user said how good is good enough


class Drifting:
    """Answers as a network does, and otherwise after so many rows."""

    def __init__(self, network: Network, rows: int, change: float) -> None:
        self.network, self.left, self.change = network, rows, change

    def __call__(self, x: Array) -> Array:
        self.left -= len(x)
        return self.network(x) + (self.change if self.left < 0 else 0.0)


@pytest.mark.parametrize("rows", [100, 300, 500])
def test_a_target_that_changes_is_noticed(rows: int) -> None:
    result = unweave.recover(Drifting(SMALL, rows, 1e-3), input_dim=4)
    assert not result.status.is_recovered, result.message


def test_early_rows_are_asked_again(recorder: Any) -> None:
    target = recorder(SMALL)
    result = unweave.recover(target, input_dim=4)
    assert result.status is Status.RECOVERED
    check = result.certificate["change of answers"]
    assert check.holds
    assert check.decides
    again = target.rows[-ROWS_ASKED_AGAIN:]
    before = {tuple(row) for row in target.rows[:-ROWS_ASKED_AGAIN]}
    assert all(tuple(row) in before for row in again)


def test_a_target_that_remembers_rows_is_noticed() -> None:
    seen: set[bytes] = set()

    def target(x: Array) -> Array:
        again = np.array([row.tobytes() in seen for row in x])
        seen.update(row.tobytes() for row in x)
        return SMALL(x) + 1e-4 * again[:, None]

    result = unweave.recover(target, input_dim=4)
    assert not result.status.is_recovered
    assert "remembers" in result.message


@pytest.mark.parametrize(
    "target",
    [
        SMALL,
        lambda x: np.full((len(x), 1), 2.5),
        lambda x: x @ np.ones((4, 1)),
        lambda x: np.round(SMALL(x), 3),
        lambda x: SMALL(x).astype(np.float32),
        lambda x: SMALL(x).astype(np.float16),
        lambda x: np.sin(3 * x[:, :1]) * x[:, 1:2],
        lambda x: (x[:, :1] > 0.3) * 1.0,
        lambda x: KINKED(x) + 0.3 * (x @ np.full((4, 1), 0.5) > 4),
        lambda x: np.clip(SMALL(x), -0.5, 0.5),
    ],
)
def test_status_and_certificate_never_contradict(target: Callable[[Array], Array]) -> None:
    result = unweave.recover(target, input_dim=4, deadline=3)
    assert result.certificate.holds == result.status.is_recovered, str(result.certificate)


@pytest.mark.parametrize("digits", [1, 2])
def test_samples_with_few_decimals_have_imitators(digits: int) -> None:
    x = np.random.default_rng(1007).uniform(-3, 3, (500, 1))
    result = unweave.recover(Samples(x, np.sin(x).round(digits)))
    found = result.network
    if found.activations[0] == "sine" and found.hidden == (1,):  # no imitator: the function itself
        truth = Network([[[1.0]], [[1.0]]], [[0.0], [0.0]], ["sine", "identity"])
        assert unweave.compare(truth, found).parameter_error <= 0.1 * 10.0**-digits
        return
    assert not result.status.is_recovered, result.message
    assert result.certificate.holds is False


# -- verify --------------------------------------------------------------------------------------------


def test_more_rows_rule_out_more() -> None:
    usual, more = (unweave.recover(SMALL, verify=verify) for verify in (None, 1000))
    assert more.status is Status.RECOVERED
    assert more.queries - usual.queries == more.verification_queries - usual.verification_queries == 1000
    shares = [result.certificate["share not ruled out"].value for result in (usual, more)]
    drawn = [np.log(0.05) / np.log1p(-share) for share in shares]
    assert drawn[1] - drawn[0] == pytest.approx(1000)


def test_rows_of_the_users_own_are_heard() -> None:
    def target(x: Array) -> Array:
        return SMALL(x) + np.where(np.linalg.norm(x - 3, axis=1, keepdims=True) < 0.1, 1.0, 0.0)

    assert unweave.recover(target, input_dim=4).status is Status.RECOVERED  # a thin bump that nothing touched
    result = unweave.recover(target, input_dim=4, verify=np.full((1, 4), 3.0))
    assert result.status is Status.APPROXIMATE
    assert "1 of" in result.message


def test_they_are_heard_however_many_rows_were_asked() -> None:
    done = searched("relu", KINKED, seed=1005)
    own = np.full((1, 4), 3.0)
    ledger = done.view.ledger
    ledger(np.random.default_rng(0).standard_normal((3 * MOST_WITNESSES, 4)))
    ledger(own)
    assert not (ledger.witnesses.rows()[0] == own).all(axis=1).any()  # the sample does not hold it
    heard = hear(
        done.candidate, done.view, done.findings.noise, Elsewhere(own, KINKED(own) + 1), 1e-9, np.ones(1)
    )
    assert heard.contradicting == 1


@pytest.mark.parametrize(
    ("verify", "given", "message"),
    [
        (-1, {}, "verify must be"),
        (np.zeros((2, 3)), {}, r"shape \(n, 4\)"),
        (np.full((2, 4), 3.0), {"domain": (-1, 1)}, "inside the domain. Got 2 outside"),
    ],
)
def test_rows_that_cannot_be_asked_are_refused(verify: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        unweave.recover(SMALL, verify=verify, **given)


def test_samples_cannot_be_verified_further() -> None:
    with pytest.raises(InvalidInput, match="verify must be None for samples"):
        unweave.recover(Samples(np.zeros((9, 1)), np.zeros(9)), verify=10)


@pytest.mark.parametrize("seed", [1000, 1005, 1007, 1009])
def test_two_kinked_layers_are_not_one(seed: int) -> None:
    # In the region the second layer's unit looks like a third one of the first; far along it bends.
    rng = np.random.default_rng(seed)
    first, second, last = (rng.standard_normal(shape) for shape in ((2, 2), (2, 1), (1, 1)))
    inner, outer = rng.standard_normal(2), rng.standard_normal(1)

    def kinked(z: Array) -> Array:
        return np.where(z > 0, z, 0.25 * z)

    def target(x: Array) -> Array:
        return kinked(kinked(x @ first + inner) @ second + outer) @ last

    assert unweave.recover(target, input_dim=2, method="relu").status is Status.APPROXIMATE
