from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.errors import InvalidInput
from unweave.quadratic import (
    factor,
    quadratic_network,
    recover_quadratic,
    solve_quadratic_form,
    span_test,
    surplus_equations,
)


def planted(inputs: int, width: int, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((inputs, width))
    x = rng.standard_normal((samples, inputs))
    return weights, x, np.sum((x @ weights) ** 2, axis=1)


def form_error(weights: np.ndarray, network: unweave.Network | None) -> float:
    assert network is not None
    found, truth = network.weights[0], weights @ weights.T
    return float(np.linalg.norm(found @ found.T - truth) / np.linalg.norm(truth))


@pytest.mark.parametrize("inputs", [1, 2, 5, 10, 20])
def test_the_threshold_is_exact(inputs: int) -> None:
    needed = inputs * (inputs + 1) // 2
    _, x, _ = planted(inputs, 1, needed, 1000)
    enough = span_test(x)
    assert (enough.rank, enough.spans) == (needed, True)
    assert enough.condition >= 1
    if needed > 1:
        fewer = span_test(x[:-1])
        assert (fewer.rank, fewer.spans, fewer.condition, fewer.smallest) == (needed - 1, False, np.inf, 0.0)


def test_inputs_of_two_values_never_span() -> None:
    x = np.random.default_rng(1001).choice([-1.0, 1.0], (500, 6))
    found = span_test(x)
    # x_i^2 = 1: the six diagonal columns are one.
    assert found.rank == found.needed - 5
    found_network = recover_quadratic(x, np.sum(x**2, axis=1) + x[:, 0] * x[:, 1], hidden=6)
    assert found_network.problem is not None
    assert "special position" in found_network.problem


@pytest.mark.parametrize("inputs", [1, 2, 5, 10, 20, 40])
@pytest.mark.parametrize("relative_width", [0.5, 1, 2])
def test_exact_from_as_many_samples_as_unknowns(inputs: int, relative_width: float) -> None:
    width = max(1, int(relative_width * inputs))
    weights, x, y = planted(inputs, width, inputs * (inputs + 1) // 2, 1002)
    found = recover_quadratic(x, y, hidden=width)
    assert found.problem is None
    assert form_error(weights, found.network) < 1e-10
    assert found.network is not None
    assert found.network.hidden == (width,)
    assert found.network.activations == ("quadratic", "identity")
    # The error is below its bar, which is relative to the largest eigenvalue of the scaled form.
    assert found.evidence.parameter_error_bar is not None
    assert form_error(weights, found.network) < found.evidence.parameter_error_bar * inputs


@pytest.mark.parametrize("inputs", [2, 5, 10, 20])
@pytest.mark.parametrize("hidden", [1, None])
def test_one_sample_fewer_is_never_recovered(inputs: int, hidden: int | None) -> None:
    for seed in range(1003, 1008):
        _, x, y = planted(inputs, 1 if hidden else 2 * inputs, inputs * (inputs + 1) // 2 - 1, seed)
        found = recover_quadratic(x, y, hidden=hidden)
        assert found.problem is not None
        assert "do not determine" in found.problem
        assert found.evidence.condition == np.inf
        assert found.network is not None  # the nearest network of least norm, for what it is worth


def test_what_is_not_determined_is_said() -> None:
    weights, x, y = planted(4, 3, 10, 1008)
    assert "W W^T" in (recover_quadratic(x, y, hidden=3).ambiguity or "")
    turned = weights @ np.linalg.qr(np.random.default_rng(1009).standard_normal((3, 3)))[0]
    np.testing.assert_allclose(quadratic_network(turned)(x)[:, 0], y, rtol=1e-12)
    # A single unit is determined up to its sign, which comparison removes.
    weights, x, y = planted(4, 1, 10, 1010)
    single = recover_quadratic(x, y, hidden=1)
    assert single.ambiguity is None
    assert unweave.compare(quadratic_network(weights), single.network).parameter_error < 1e-11


def test_the_width_is_the_rank() -> None:
    weights, x, y = planted(8, 3, 60, 1011)
    found = recover_quadratic(x, y)
    assert found.network is not None
    assert (found.network.hidden, found.evidence.width) == ((3,), 3)
    assert form_error(weights, found.network) < 1e-12
    wider = recover_quadratic(x, y, hidden=5)
    assert wider.problem is None
    assert any("rank 3" in note for note in wider.notes)
    assert form_error(weights, wider.network) < 1e-12
    narrower = recover_quadratic(x, y, hidden=2)
    assert "rank 3: 2 units" in (narrower.problem or "")


def test_what_verifies_the_class_is_counted() -> None:
    assert surplus_equations(10, 4, 4) == surplus_equations(10, 4, 7) == 0
    assert surplus_equations(13, 4, 4) == 3
    assert surplus_equations(10, 4, 2) == 3  # rank 2 of 4: three equations
    _, x, y = planted(4, 4, 10, 1012)
    assert any("conditional on the class" in note for note in recover_quadratic(x, y, hidden=4).notes)
    _, x, y = planted(4, 4, 13, 1012)
    assert any(note.startswith("3 equations") for note in recover_quadratic(x, y, hidden=4).notes)


@pytest.mark.parametrize(("inputs", "hidden"), [(5, 5), (5, 4), (8, 20), (6, None)])
@pytest.mark.parametrize("surplus", [0, 10])
def test_random_labels_are_refused(inputs: int, hidden: int | None, surplus: int) -> None:
    for seed in range(1013, 1023):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((inputs * (inputs + 1) // 2 + surplus, inputs))
        found = recover_quadratic(x, rng.standard_normal(len(x)) ** 2, hidden=hidden)
        assert found.problem is not None


def test_positive_by_chance_is_called_conditional() -> None:
    # Two inputs: every fifth draw of random labels happens to be a sum of squares. Nothing can tell.
    notes = []
    for seed in range(1023, 1053):
        rng = np.random.default_rng(seed)
        found = recover_quadratic(rng.standard_normal((3, 2)), rng.standard_normal(3) ** 2, hidden=2)
        if found.problem is None:
            notes.append(found.notes)
    assert notes
    assert all("conditional on the class" in first for first, *_ in notes)


def test_labels_of_another_class_are_refused() -> None:
    _, x, y = planted(5, 2, 60, 1053)
    signed = y - 2 * x[:, 0] ** 2 * np.linalg.norm(y) / np.linalg.norm(x[:, 0] ** 2)
    assert "negative eigenvalue" in (recover_quadratic(x, signed, hidden=5).problem or "")
    other = np.tanh(3 * x @ np.ones(5))
    assert "no quadratic form fits" in (recover_quadratic(x, other, hidden=5).problem or "")


def test_noisy_labels() -> None:
    weights, x, y = planted(6, 3, 500, 1054)
    noise = 1e-3
    noisy = y + noise * np.random.default_rng(1055).standard_normal(500)
    found = recover_quadratic(x, noisy, hidden=3)
    assert found.problem is None
    assert any("noisy" in note for note in found.notes)
    assert 1e-6 < form_error(weights, found.network) < 1e-3
    history, floor = found.evidence.fit_history, found.evidence.fit_floor
    assert floor is not None
    assert history[-1] > 100 * floor
    # At the threshold the residual cannot show the noise: it must be told, or the rank comes out too high.
    few, labels = x[:21], noisy[:21]
    assert recover_quadratic(few, labels, hidden=3).problem is not None
    assert recover_quadratic(few, labels, hidden=3, label_noise=noise).problem is None


def test_units_of_the_inputs_do_not_matter() -> None:
    weights, x, y = planted(5, 2, 15, 1056)
    units = 10.0 ** np.array([-6, -2, 0, 3, 7])
    plain, scaled = recover_quadratic(x, y, hidden=2), recover_quadratic(x * units, y, hidden=2)
    assert scaled.problem is None
    assert plain.evidence.condition == pytest.approx(scaled.evidence.condition, rel=1e-6)
    assert scaled.network is not None
    back = units[:, None] * scaled.network.weights[0]
    np.testing.assert_allclose(back @ back.T, weights @ weights.T, rtol=0, atol=1e-10)


def test_a_column_of_zeros_is_not_determined() -> None:
    _, x, y = planted(3, 2, 30, 1057)
    x = np.column_stack([x, np.zeros(30)])
    assert span_test(x).rank == 6
    assert recover_quadratic(x, y, hidden=2).problem is not None


def test_zero_labels_are_the_zero_network() -> None:
    _, x, _ = planted(3, 2, 10, 1058)
    found = recover_quadratic(x, np.zeros(10))
    assert found.network is not None
    assert not found.network(x).any()


def test_factor_drops_what_is_within_the_error_bar() -> None:
    weights, x, y = planted(6, 2, 40, 1059)
    form = solve_quadratic_form(x, y)
    assert form.rank == 2
    assert form.positive
    assert not factor(form, 6)[:, 2:].any()
    np.testing.assert_allclose(form.matrix, weights @ weights.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "hidden", "match"),
    [
        (np.ones(4), np.ones(4), 1, "x must be finite"),
        (np.full((4, 2), np.inf), np.ones(4), 1, "x must be finite"),
        (np.ones((4, 2)), np.ones(3), 1, "y must be finite"),
        (np.ones((4, 2)), np.ones((4, 2)), 1, "one output"),
        (np.ones((4, 2)), np.full(4, np.nan), 1, "y must be finite"),
        (np.ones((4, 2)), np.ones(4), 0, "hidden must be at least 1"),
    ],
)
def test_bad_samples_are_refused(x: np.ndarray, y: np.ndarray, hidden: int, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        recover_quadratic(x, y, hidden)
