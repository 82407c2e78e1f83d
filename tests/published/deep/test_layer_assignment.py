from __future__ import annotations

import numpy as np
import pytest
from planted_published import planted, true_layers, worst_distance

from unweave.errors import InvalidInput
from unweave.published.deep import (
    EntangledRecovery,
    ExactDerivatives,
    LayerAssignment,
    PublishedDeepOptions,
    assign_layers,
    hidden_directions,
    layers_of,
)
from unweave.published.deep.layer_assignment import half_sphere, kmeans
from unweave.subspace import hessian_span


def noisy_ends(lines: np.ndarray, each: int, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Copies of unit rows with random signs and a little noise, in random order."""
    rows = np.repeat(lines, each, axis=0) * rng.choice([-1.0, 1.0], (each * len(lines), 1))
    rows = rows + noise * rng.standard_normal(rows.shape)
    return rng.permutation(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def recovery_of(ends: np.ndarray, gradients: np.ndarray) -> EntangledRecovery:
    span = hessian_span(np.eye(3))
    return EntangledRecovery(np.zeros(ends.shape[1]), ends, np.ones(len(ends)), ends, gradients, span, 1, 0)


@pytest.mark.parametrize("grouping", ["lines", "half-sphere"])
def test_duplicates_become_one_and_outputs_go(grouping: str) -> None:
    rng = np.random.default_rng(1301)
    lines = rng.standard_normal((14, 10))
    lines /= np.linalg.norm(lines, axis=1, keepdims=True)
    ends = noisy_ends(lines, 7, 1e-4, rng)
    options = PublishedDeepOptions(grouping=grouping)
    found = hidden_directions(recovery_of(ends, 3.0 * lines[:4]), 10, True, rng, options)
    assert found.shape == (10, 10)
    assert worst_distance(found, lines[4:].T) < 1e-3
    kept = hidden_directions(recovery_of(ends, lines[:4]), 14, False, rng, options)
    assert worst_distance(kept, lines.T) < 1e-3


def test_a_line_on_the_border_of_the_half_sphere_splits_there_only() -> None:
    rng = np.random.default_rng(1302)
    lines = np.eye(6)[1:4]  # first coordinate zero
    ends = noisy_ends(lines, 20, 1e-5, rng)
    centres, labels = kmeans(ends, 3, rng)
    assert worst_distance(centres, lines.T) < 1e-4
    assert sorted(np.bincount(labels)) == [20, 20, 20]
    split, _ = kmeans(half_sphere(ends), 3, rng, as_lines=False)
    assert worst_distance(split, lines.T) > 0.1


def test_surplus_lines_with_the_least_objective_go() -> None:
    rng = np.random.default_rng(1303)
    lines = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    ends = np.concatenate([noisy_ends(lines[:5], 3, 1e-5, rng), noisy_ends(lines[5:], 3, 1e-5, rng)])
    found = hidden_directions(recovery_of(ends, lines), 5, False, rng)  # best first, as the search gives them
    assert worst_distance(found, lines[:5].T) < 1e-4


@pytest.mark.parametrize("grouping", ["lines", "half-sphere"])
def test_fewer_lines_than_asked_stay_fewer(grouping: str) -> None:
    rng = np.random.default_rng(1304)
    options = PublishedDeepOptions(grouping=grouping)
    ends = noisy_ends(np.eye(5)[:3], 4, 1e-6, rng)
    assert hidden_directions(recovery_of(ends, np.eye(5)), 4, False, rng, options).shape == (3, 5)
    assert hidden_directions(recovery_of(ends, np.eye(5)), 4, True, rng, options).shape == (0, 5)


@pytest.mark.parametrize("seed", [1305, 1306, 1307])
@pytest.mark.parametrize("output", ["tanh", "identity"])
def test_far_hessians_tell_the_first_layer(seed: int, output: str) -> None:
    network = planted(12, (12, 6, 8), seed, output)
    layers = true_layers(network)
    rng = np.random.default_rng(seed + 1000)
    hidden = np.concatenate(layers[:2], axis=1).T * rng.choice([-1.0, 1.0], (18, 1))
    order = rng.permutation(18)
    found = assign_layers(ExactDerivatives(network), hidden[order], layers[-1].T, (12, 6, 8), rng)
    assert worst_distance(found.first.T, layers[0]) < 1e-7
    assert worst_distance(found.inner.T, layers[1]) < 1e-7
    assert found.lowest_first > 0.99
    assert found.gap > 0.05
    assert layers_of(found, (12, 6, 8)) == (found.first, found.inner, found.last)


def test_radius_beyond_all_curvature_is_refused() -> None:
    # All first-layer arguments are far in the tails: every Hessian is exactly zero.
    network = planted(2, (2, 2, 2), seed=1308)
    options = PublishedDeepOptions(far_radius=1e6, far_hessians=5)
    with pytest.raises(InvalidInput, match="far_radius"):
        assign_layers(
            ExactDerivatives(network), np.eye(2), np.eye(2), (2, 2, 2), np.random.default_rng(3), options
        )


def test_inner_layers_need_an_oracle() -> None:
    columns = np.eye(9)
    assignment = LayerAssignment(columns[:, :3], columns[:, 3:7], columns[:, 7:], 1.0, 0.5)
    widths = (3, 2, 2, 2)
    assert layers_of(assignment, widths) is None
    layers = layers_of(assignment, widths, lambda rows: np.where(rows[:, [3, 5]].any(axis=1), 3, 2))
    assert layers is not None
    assert [layer.argmax(axis=0).tolist() for layer in layers] == [[0, 1, 2], [4, 6], [3, 5], [7, 8]]
    with pytest.raises(InvalidInput, match="layer_oracle must put"):
        layers_of(assignment, widths, lambda rows: np.full(len(rows), 2))


def test_one_hidden_layer_needs_no_far_points() -> None:
    directions, outputs = np.eye(5)[:3], np.eye(5)[3:]
    source = ExactDerivatives(planted(5, (3, 2), seed=1309))
    found = assign_layers(source, directions, outputs, (3, 2), np.random.default_rng(0))
    layers = layers_of(found, (3, 2))
    assert layers is not None
    assert [layer.shape for layer in layers] == [(5, 3), (5, 2)]
