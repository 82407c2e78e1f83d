"""Rows of two kinked layers lie where they may, and segments lead to what disagrees."""

from __future__ import annotations

import numpy as np

from planted_pairs import planted_pair
from unweave.methods.relu_pairs.joint_fit import JointFit, JointFitOptions
from unweave.methods.relu_pairs.rows import PairRows, RowOptions, segments_between
from unweave.networks.network import Network
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.target import as_queries

NET = planted_pair([5, 6, 4, 1], seed=1001)


def rows_of(region: Region) -> PairRows:
    view = NormalisedQueries(as_queries(NET, 5), region)
    return PairRows(view, np.full(1, 1e-9), np.random.default_rng(1000), RowOptions())


def test_rows_in_a_box_come_near_its_corners_and_stay_inside() -> None:
    rows = rows_of(Region.from_domain(-3, 3, 5))
    points = rows.draw(2000)
    assert rows.view.region.contains(points).all()
    inputs = np.abs(rows.view.region.to_inputs(points))
    assert (inputs[::2].min(axis=1) > 2.5).any()  # all five near an end: 1 in 8,000 of uniform rows


def test_misfits_are_counted_in_errors_of_an_answer_and_of_the_network_asked_about() -> None:
    rows = rows_of(Region.standard(5))
    points, answers = rows.ask(rows.draw(50))
    assert len(points) == 50
    assert rows.misfits(NET, points, answers).max() < 1e-5
    off = rows.misfits(NET, points, answers + 1e-7)
    size = 1 + np.linalg.norm(points, axis=1) / np.sqrt(5)
    np.testing.assert_allclose(off * size, 100, rtol=1e-3)


def test_corners_of_a_box_are_heard() -> None:
    rows = rows_of(Region.from_domain(-3, 3, 5))
    rows.ask(rows.draw(20))
    points, answers = rows.given_before()
    inputs = rows.view.region.to_inputs(points)
    np.testing.assert_allclose(answers, NET(inputs), atol=1e-12)
    assert len(np.unique(inputs[(np.abs(inputs) == 3).all(axis=1)], axis=0)) == 32


def test_segments_lead_from_a_row_that_agrees_to_one_that_does_not() -> None:
    points = np.array([[0.0, 0.0], [5.0, 0.0], [1.0, 0.0]])
    agree = np.array([True, True, False])
    (line,) = segments_between(points, agree, 6, np.random.default_rng(0))
    ends = line.points(np.array([line.low, line.high]))
    np.testing.assert_allclose(ends, [[0.0, 0.0], [1.0, 0.0]], atol=1e-12)


def test_no_segment_without_a_row_that_agrees() -> None:
    points, agree = np.eye(3), np.zeros(3, dtype=np.bool_)
    assert segments_between(points, agree, 6, np.random.default_rng(0)) == []


def test_a_joint_fit_ends_at_the_truth_and_leaves_out_a_unit_that_doubles_another() -> None:
    rows = rows_of(Region.standard(5))
    rows.ask(rows.draw(1500))
    fit = JointFit(rows, np.random.default_rng(1000), JointFitOptions())
    rng = np.random.default_rng(1001)
    first, second, outer = (weight + 1e-4 * rng.standard_normal(weight.shape) for weight in NET.weights)
    doubled = Network(
        [first, np.hstack([second, second[:, :1]]), np.vstack([outer, outer[:1] / 2])],
        [NET.biases[0], np.append(NET.biases[1], NET.biases[1][0]), NET.biases[2]],
        NET.activations,
    )
    polished = fit.without_surplus(fit.fit(doubled))
    assert polished.network.hidden == (6, 4)
    assert np.abs(polished.network(rows.points) - rows.answers).max() < 1e-9


def test_a_joint_fit_leaves_out_a_unit_of_the_first_layer_that_nothing_reads() -> None:
    rows = rows_of(Region.standard(5))
    rows.ask(rows.draw(1500))
    fit = JointFit(rows, np.random.default_rng(1000), JointFitOptions())
    first, second, outer = NET.weights
    stray = np.random.default_rng(1001).standard_normal((5, 1))
    wider = Network(
        [np.hstack([first, stray]), np.vstack([second, np.zeros((1, 4))]), outer],
        [np.append(NET.biases[0], 0.3), *NET.biases[1:]],
        NET.activations,
    )
    polished = fit.without_surplus(fit.fit(wider))
    assert polished.network.hidden == (6, 4)
    assert np.abs(polished.network(rows.points) - rows.answers).max() < 1e-9
