"""Targets that no network explains, or that misbehave: an honest answer, never an accident."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unweave
from unweave import InvalidInput, Network, Recovery, Status, TargetError
from unweave.methods.smooth_values.search import SmoothValuesOptions
from unweave.recovery.fresh_rows import FEWEST_ROWS_TIGHT
from unweave.targets.witnesses import ROWS_ASKED_AGAIN

GOOD = (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)
BRIEF = SmoothValuesOptions(work=3.0)
"""Targets in few inputs that no method explains are given up sooner than a user would want."""


def planted(layers: list[int], activation: str = "tanh", seed: int = 1000, **how: Any) -> Network:
    return unweave.random_network(layers, activation, seed=seed, outer="signed", **how)


def assert_recovered(network: Network, result: Recovery, tolerance: float = 1e-8) -> None:
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert unweave.compare(network, result.network).parameter_error <= tolerance


def scaled(network: Network, scale: Any) -> Network:
    weights, biases = list(network.weights), list(network.biases)
    weights[-1], biases[-1] = weights[-1] * scale, biases[-1] * scale
    return Network(weights, biases, network.activations, skip=network.skip)


# -- nothing curved ------------------------------------------------------------------------------------


def test_a_constant() -> None:
    result = unweave.recover(lambda x: np.full(len(x), 3.25), input_dim=4)
    assert result.status is Status.RECOVERED
    assert result.network is not None
    assert result.network.hidden == ()
    assert not result.network.weights[0].any()
    assert result.network.biases[0] == pytest.approx(3.25, rel=1e-14)
    assert any("constant" in note for note in result.notes)


def test_zero() -> None:
    result = unweave.recover(lambda x: np.zeros((len(x), 2)), input_dim=4)
    assert result.status is Status.RECOVERED
    assert result.network is not None
    assert not result.network.weights[0].any()
    assert not result.network.biases[0].any()
    assert result.error == 0.0


@pytest.mark.parametrize(
    "given", [{}, {"hidden": [3]}, {"hidden": [3], "activation": "tanh"}, {"hidden": []}]
)
def test_an_affine_map_needs_no_hidden_layer_whatever_was_said(given: dict[str, Any]) -> None:
    slope = np.random.default_rng(1001).standard_normal((4, 2))
    result = unweave.recover(lambda x: x @ slope + 1.0, input_dim=4, **given)
    assert result.status is Status.RECOVERED
    assert result.network is not None
    assert result.network.hidden == ()
    np.testing.assert_allclose(result.network.weights[0], slope, atol=1e-13)
    assert any("affine" in note for note in result.notes)


def test_an_affine_map_is_not_for_the_shallow_method() -> None:
    result = unweave.recover(lambda x: x @ np.ones((4, 1)), input_dim=4, method="smooth")
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "affine" in result.message


def test_no_hidden_layer_asked_for_where_there_is_one() -> None:
    result = unweave.recover(planted([6, 4, 1]), hidden=[])
    assert result.status not in GOOD


# -- not a network -------------------------------------------------------------------------------------


def product_of_sines(x: np.ndarray) -> np.ndarray:
    return np.prod(np.sin(x), axis=1)


def test_a_product_of_sines() -> None:
    result = unweave.recover(product_of_sines, activation="tanh", input_dim=6)
    assert result.status not in GOOD
    assert result.message


def test_a_product_of_many_sines() -> None:
    result = unweave.recover(product_of_sines, activation="tanh", input_dim=20, deadline=5)
    assert result.status not in GOOD
    assert result.message


@pytest.mark.parametrize("given", [{}, {"hidden": [3], "activation": "tanh"}])
def test_pure_noise(given: dict[str, Any]) -> None:
    seeds = iter(range(1000, 10_000))
    result = unweave.recover(
        lambda x: np.random.default_rng(next(seeds)).standard_normal(len(x)), input_dim=5, **given
    )
    assert result.status is Status.FAILED
    assert result.network is None


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_kinks_are_seen_and_named(activation: str) -> None:
    result = unweave.recover(planted([6, 4, 1], activation), method="smooth")
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "kink" in result.message


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_kinks_that_the_user_names_are_refused_by_the_smooth_method(activation: str) -> None:
    network = planted([6, 4, 1], activation)
    result = unweave.recover(network, hidden=[4], activation=activation, method="smooth")
    assert result.status is Status.FAILED
    assert f"{activation} has a kink" in result.message


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_kinks_taken_for_something_smooth_do_not_pass(activation: str) -> None:
    result = unweave.recover(planted([6, 4, 1], activation), hidden=[4], activation="tanh")
    assert result.status not in GOOD


def test_two_hidden_layers_are_not_taken_for_one() -> None:
    result = unweave.recover(planted([6, 5, 4, 1]), hidden=[8])
    assert result.status not in GOOD
    assert "more than one hidden layer" in result.message


@pytest.mark.parametrize("hidden", [None, [5, 4]])
def test_two_hidden_layers_are_found(hidden: list[int] | None) -> None:
    network = planted([6, 5, 4, 1])
    result = unweave.recover(network, hidden=hidden)
    assert_recovered(network, result)
    assert result.network is not None
    assert result.network.hidden == (5, 4)


# -- targets that misbehave ----------------------------------------------------------------------------


def test_a_target_that_overflows_far_out_is_looked_at_nearer_by() -> None:
    network = unweave.random_network([5, 4, 1], seed=1000, outer="normal")

    def target(x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x).max(axis=1, keepdims=True) > 1000, np.nan, network(x))

    result = unweave.recover(target, input_dim=5)
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(network, result.network).is_same


def test_smooth_and_kinked_units_in_one_layer() -> None:
    rng = np.random.default_rng(1000)
    weights, biases, outer = rng.standard_normal((10, 8)), rng.uniform(-1, 1, 8), rng.standard_normal((8, 1))

    def target(x: np.ndarray) -> np.ndarray:
        z = 0.6 * x @ weights + biases
        return np.hstack([np.tanh(z[:, :4]), np.maximum(z[:, 4:], 0)]) @ outer

    result = unweave.recover(target, input_dim=10)
    assert result.status in (unweave.Status.APPROXIMATE, unweave.Status.FAILED)
    assert "a mixture of several" in result.message


def test_nan_in_part_of_the_space() -> None:
    network = planted([6, 4, 1])

    def target(x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x[:, :1]) > 0.75, np.nan, network(x))

    with pytest.raises(TargetError, match=r"must be finite.*domain") as caught:
        unweave.recover(target, input_dim=6)
    assert caught.value.ledger is not None
    # What the message advises works, and what was paid for stays paid.
    assert_recovered(network, unweave.recover(caught.value.ledger, domain=(-0.75, 0.75)))


def test_a_target_that_raises() -> None:
    def target(x: np.ndarray) -> np.ndarray:
        raise RuntimeError("the service is down")

    with pytest.raises(TargetError, match="RuntimeError: the service is down") as caught:
        unweave.recover(target, input_dim=3)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.ledger is not None
    assert caught.value.ledger.sent > 0


MISSHAPEN: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "a row too many": (lambda x: np.zeros(len(x) + 1), "one answer per row"),
    "a row too few": (lambda x: np.zeros((len(x) - 1, 2)), "one answer per row"),
    "no output": (lambda x: np.zeros((len(x), 0)), "at least one output"),
    "three axes": (lambda x: np.zeros((len(x), 2, 2)), r"shape \(n,\) or \(n, m\)"),
    "a number": (lambda x: 1.0, r"shape \(n,\) or \(n, m\)"),
    "words": (lambda x: ["no"] * len(x), "real numbers"),
    "nothing": (lambda x: None, "array of numbers"),
}


@pytest.mark.parametrize("name", list(MISSHAPEN))
def test_answers_of_a_wrong_shape(name: str) -> None:
    target, message = MISSHAPEN[name]
    with pytest.raises(TargetError, match=message):
        unweave.recover(target, input_dim=3)


def test_a_number_of_outputs_that_changes() -> None:
    widths = iter(range(1, 10_000))
    with pytest.raises(TargetError, match="as before"):
        unweave.recover(lambda x: np.zeros((len(x), next(widths))), input_dim=3)


def test_a_number_of_outputs_that_changes_in_the_middle() -> None:
    network, asked = planted([6, 4, 1]), []

    def target(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return np.repeat(network(x), 1 if sum(asked) < 400 else 2, axis=1)

    with pytest.raises(TargetError, match="1 outputs as before"):
        unweave.recover(target, input_dim=6)


# -- small and degenerate networks ---------------------------------------------------------------------


def test_one_input_one_neuron() -> None:
    network = planted([1, 1, 1])
    assert_recovered(network, unweave.recover(network))


@pytest.mark.parametrize("given", [{}, {"hidden": [3]}, {"hidden": [3], "activation": "tanh"}])
@pytest.mark.parametrize("seed", [1000, 1001])
def test_one_input_three_neurons_have_no_directions_to_tell_them_apart(
    seed: int, given: dict[str, Any]
) -> None:
    network = planted([1, 3, 1], seed=seed)
    result = unweave.recover(network, options=BRIEF, **given)
    if result.status is Status.RECOVERED:
        assert result.network is not None
        assert unweave.compare(network, result.network).parameter_error <= 1e-8
    assert result.message


@pytest.mark.parametrize("given", [{}, {"hidden": [1], "activation": "tanh"}])
def test_one_neuron(given: dict[str, Any]) -> None:
    network = planted([5, 1, 1])
    assert_recovered(network, unweave.recover(network, **given))


def test_two_identical_neurons_come_back_as_one() -> None:
    base = planted([6, 4, 1])
    twins = Network(
        [np.c_[base.weights[0], base.weights[0][:, 0]], np.r_[base.weights[1], [[0.7]]]],
        [np.r_[base.biases[0], base.biases[0][0]], base.biases[1]],
        base.activations,
    )
    result = unweave.recover(twins, hidden=[5])
    assert_recovered(twins, result)
    assert result.network is not None
    assert result.network.hidden == (4,)
    assert any("4 units where 5 were given" in note for note in result.notes)


def test_a_neuron_without_effect_is_left_out() -> None:
    base = planted([6, 4, 1])
    dead = Network(
        [np.c_[base.weights[0], np.ones(6)], np.r_[base.weights[1], [[0.0]]]],
        [np.r_[base.biases[0], 0.1], base.biases[1]],
        base.activations,
    )
    result = unweave.recover(dead, hidden=[5])
    assert_recovered(base, result)
    assert result.network is not None
    assert result.network.hidden == (4,)


@pytest.mark.parametrize(
    ("layers", "given"), [([6, 4, 1], 2), ([6, 4, 1], 5), ([6, 4, 1], 20), ([5, 8, 1], 4), ([5, 8, 1], 12)]
)
def test_a_wrong_width_is_corrected_and_noted(layers: list[int], given: int) -> None:
    network = planted(layers)
    result = unweave.recover(network, hidden=[given], activation="tanh")
    assert_recovered(network, result)
    assert any(f"where {given} were given" in note for note in result.notes)


# -- arguments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [[0], [-1], [2.5], [4, 0], ["four"], 0, 2.5, True, "four"])
def test_hidden_that_is_no_list_of_widths(hidden: Any) -> None:
    with pytest.raises(InvalidInput, match="hidden must"):
        unweave.recover(planted([6, 4, 1]), hidden=hidden)


def test_an_unknown_activation() -> None:
    with pytest.raises(InvalidInput, match="activation must be one of tanh"):
        unweave.recover(planted([6, 4, 1]), activation="sinh")


def test_an_unknown_method() -> None:
    with pytest.raises(
        InvalidInput, match="method must be one of affine, one_versus_rest, quadratic_form, relu,"
    ):
        unweave.recover(planted([6, 4, 1]), method="magic")


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan])
def test_a_tolerance_that_is_not_positive(tolerance: float) -> None:
    with pytest.raises(InvalidInput, match="tolerance must be positive"):
        unweave.recover(planted([6, 4, 1]), tolerance=tolerance)


def test_a_callable_without_input_dim() -> None:
    with pytest.raises(InvalidInput, match="input_dim must be given"):
        unweave.recover(lambda x: x)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"domain": (1.0, -1.0)}, "low must be smaller than high"),
        ({"domain": 3.0}, "domain must be a pair"),
        ({"domain": ([0.0] * 5, 1.0)}, "low must be a number or 6 numbers"),
        ({"examples": np.zeros((5, 4))}, "examples must have 6 columns"),
        ({"examples": np.zeros((1, 6))}, "examples must be an array of shape"),
        ({"max_queries": -1}, "max_queries must be"),
        ({"max_queries": 10.5}, "max_queries must be"),
    ],
)
def test_circumstances_that_make_no_sense_are_refused_before_a_row_is_asked(
    given: dict[str, Any], message: str, recorder: Any
) -> None:
    target = recorder(planted([6, 4, 1]))
    with pytest.raises(InvalidInput, match=message):
        unweave.recover(target, input_dim=6, **given)
    assert len(target.rows) == 0


# -- budgets -------------------------------------------------------------------------------------------


def test_ten_queries() -> None:
    result = unweave.recover(planted([6, 4, 1]), max_queries=10)
    assert (result.status, result.network) == (Status.FAILED, None)
    assert result.queries <= 10
    assert "budget ended" in result.message
    assert np.isnan(result.error)


@pytest.mark.parametrize("layers", [[6, 4, 1], [4, 6, 2]])
def test_a_budget_that_ends_in_any_stage(layers: list[int], recorder: Any) -> None:
    network = planted(layers)
    whole = unweave.recover(network, activation="tanh")
    ends = np.cumsum([stage.queries for stage in whole.stages])
    assert ends[-1] == whole.queries
    stopped = set()
    small = (30, 60, 100, 150)
    ended = (int(end) + shift for end in ends for shift in (-1, 0))
    for budget in sorted({*small, *ended, whole.queries + 50}):
        target = recorder(network)
        result = unweave.recover(target, activation="tanh", input_dim=layers[0], max_queries=budget)
        assert result.queries == len(target.rows) <= budget
        if budget >= whole.queries:
            assert result.status is Status.RECOVERED
        if result.status is Status.RECOVERED:  # a small budget may do, on another way
            assert_recovered(network, result)
            assert result.verification_queries >= FEWEST_ROWS_TIGHT
        else:
            assert np.isnan(result.error)
            stopped.add(tuple(stage.name for stage in result.stages))
        json.dumps(result.to_dict(), allow_nan=False)
    assert len(stopped) >= 2  # as many different ends


def test_a_deadline_in_the_past() -> None:
    with pytest.raises(InvalidInput, match="deadline must be a number of seconds >= 0"):
        unweave.recover(planted([6, 4, 1]), deadline=-1.0)


def test_no_time_at_all(recorder: Any) -> None:
    target = recorder(planted([6, 4, 1]))
    result = unweave.recover(target, input_dim=6, deadline=0.0)
    assert (result.status, result.network, result.queries) == (Status.FAILED, None, 0)
    assert "deadline" in result.message
    assert len(target.rows) == 0


@pytest.mark.parametrize("deadline", [0.001, 0.01, 0.03])
def test_hardly_any_time(deadline: float) -> None:
    network = planted([6, 4, 1])
    result = unweave.recover(network, deadline=deadline)
    if result.status is Status.RECOVERED:
        assert_recovered(network, result)
    else:
        assert "deadline" in result.message
        assert np.isnan(result.error)


# -- precision -----------------------------------------------------------------------------------------


def test_answers_in_float32() -> None:
    network = planted([6, 4, 1])
    w, a = (part.astype(np.float32) for part in network.weights)
    b, c = (part.astype(np.float32) for part in network.biases)

    def target(x: np.ndarray) -> np.ndarray:
        return np.tanh(x.astype(np.float32) @ w + b) @ a + c

    result = unweave.recover(target, input_dim=6)
    # Gradients of step h carry eps/h, with h = 0.5 eps^(1/6) a hundred eps or less: 1e-5.
    assert_recovered(network, result, tolerance=1e-5)
    assert 1e-9 < result.error < 1e-5


@pytest.mark.parametrize("seed", range(1000, 1006))
@pytest.mark.parametrize("layers", [[6, 4, 1], [5, 8, 1]])
def test_answers_with_four_decimals_are_never_recovered_wrongly(layers: list[int], seed: int) -> None:
    network = planted(layers, seed=seed)
    result = unweave.recover(lambda x: np.round(network(x), 4), activation="tanh", input_dim=layers[0])
    assert result.message
    if result.status in GOOD:
        assert result.network is not None
        assert result.network.hidden == network.hidden
        # sigma = 3e-5 and gradients of step 0.1: some 1e-3 in the parameters, ten times that when unlucky
        x = np.random.default_rng(1002).standard_normal((1000, layers[0]))
        assert np.abs(result.network(x) - network(x)).max() < 1e-2 * np.abs(network(x)).max()
        if result.status is Status.RECOVERED:
            assert unweave.compare(network, result.network).parameter_error < 1e-2


@pytest.mark.parametrize("scale", [1e12, 1e-12])
def test_huge_and_tiny_outputs(scale: float) -> None:
    network = scaled(planted([6, 4, 1]), scale)
    result = unweave.recover(network)
    assert_recovered(network, result)
    assert result.network is not None
    np.testing.assert_allclose(  # compare measures small layers against one: here against their own size
        np.sort(np.abs(result.network.weights[1]).ravel()),
        np.sort(np.abs(network.weights[1]).ravel()),
        rtol=1e-9,
    )


@pytest.mark.parametrize("layers", [[6, 4, 3], [5, 7, 3]])
def test_outputs_of_very_different_sizes(layers: list[int]) -> None:
    scale = np.array([1.0, 1e-6, 1e6])
    network = scaled(planted(layers), scale)
    result = unweave.recover(network)
    assert_recovered(network, result)
    assert result.network is not None
    # The same after every output has been brought to size one: none was sacrificed for another.
    assert (
        unweave.compare(scaled(network, 1 / scale), scaled(result.network, 1 / scale)).parameter_error <= 1e-8
    )


# -- outputs and inputs --------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [2.0, 0.0])
@pytest.mark.parametrize("layers", [[6, 4, 3], [5, 7, 3]])
def test_one_constant_output_among_several(layers: list[int], value: float) -> None:
    base = planted(layers)
    outer, offset = base.weights[1].copy(), base.biases[1].copy()
    outer[:, 1], offset[1] = 0.0, value
    network = Network([base.weights[0], outer], [base.biases[0], offset], base.activations)
    assert_recovered(network, unweave.recover(network))


@pytest.mark.parametrize("layers", [[6, 4, 3], [5, 7, 3]])
def test_one_output_given_twice(layers: list[int]) -> None:
    base = planted(layers)
    outer, offset = base.weights[1].copy(), base.biases[1].copy()
    outer[:, 2], offset[2] = outer[:, 0], offset[0]
    network = Network([base.weights[0], outer], [base.biases[0], offset], base.activations)
    assert_recovered(network, unweave.recover(network))


@pytest.mark.parametrize("width", [4, 7])
def test_inputs_without_effect(width: int) -> None:
    base = planted([5, width, 1])
    weights = np.zeros((9, width))
    weights[[0, 2, 3, 6, 8]] = base.weights[0]
    network = Network([weights, base.weights[1]], base.biases, base.activations)
    result = unweave.recover(network)
    assert_recovered(network, result)
    assert result.network is not None
    assert np.abs(result.network.weights[0][[1, 4, 5, 7]]).max() < 1e-10


SCALE = 10.0 ** np.array([-3, 0, 2, 4, -1])
LOCATION = SCALE * np.array([1.0, -2.0, 3.0, 0.0, 5.0])
CIRCUMSTANCES = {
    "domain": {"domain": (LOCATION - 2 * SCALE, LOCATION + 2 * SCALE)},
    "examples": {"examples": LOCATION + SCALE * np.random.default_rng(1003).standard_normal((200, 5))},
    "probing": {},
}


@pytest.mark.parametrize("how", list(CIRCUMSTANCES))
@pytest.mark.parametrize("width", [4, 7])
def test_inputs_of_other_scales_and_places(width: int, how: str) -> None:
    base = planted([5, width, 1])
    network = Network(
        [base.weights[0] / SCALE[:, None], base.weights[1]],
        [base.biases[0] - (LOCATION / SCALE) @ base.weights[0], base.biases[1]],
        base.activations,
    )
    result = unweave.recover(network, **CIRCUMSTANCES[how])
    assert_recovered(network, result)
    assert result.network is not None
    # In units of each input's own scale as well: weights of 1e-4 count like those of 1e3.
    again = Network(
        [result.network.weights[0] * SCALE[:, None], result.network.weights[1]],
        [result.network.biases[0] + LOCATION @ result.network.weights[0], result.network.biases[1]],
        result.network.activations,
    )
    assert unweave.compare(base, again).parameter_error <= 1e-8


@pytest.mark.parametrize("domain", [(-1.0, 1.0), (0.0, 0.25), (np.arange(5) / 5 - 1, np.arange(5) / 5 + 0.5)])
@pytest.mark.parametrize(("width", "examples"), [(3, False), (7, False), (7, True)])
def test_nothing_outside_the_domain_is_asked(domain: Any, width: int, examples: bool, recorder: Any) -> None:
    target = recorder(planted([5, width, 1]))
    low, high = (np.broadcast_to(bound, 5) for bound in domain)
    around = np.random.default_rng(1004).normal((low + high) / 2, high - low, (50, 5))
    given = {"examples": np.clip(around, low, high)} if examples else {}
    result = unweave.recover(target, input_dim=5, domain=domain, activation="tanh", **given)
    assert ((target.rows >= low) & (target.rows <= high)).all()
    assert len(target.rows) == result.queries > 400


# -- interruptions -------------------------------------------------------------------------------------


class StopsAt:
    """Answers like a network until it has been asked for ``limit`` rows, then raises once."""

    def __init__(self, network: Network, limit: int, error: BaseException) -> None:
        self._network, self._limit, self._error = network, limit, error
        self.paid: list[np.ndarray] = []
        self._raised = False

    def __call__(self, x: np.ndarray) -> np.ndarray:
        if not self._raised and sum(map(len, self.paid)) + len(x) > self._limit:
            self._raised = True
            raise self._error
        self.paid.append(x.copy())
        return self._network(x)

    @property
    def rows(self) -> np.ndarray:
        return np.concatenate(self.paid)


REPEATED_ON_PURPOSE = 4 * 6
"""Rows that the look asks anew in each run, to see whether the target repeats itself."""


def assert_continues(network: Network, target: StopsAt, ledger: unweave.Queries) -> None:
    before = len(target.rows)
    result = unweave.recover(ledger, activation="tanh")
    assert_recovered(network, result)
    assert result.queries == len(target.rows) - before
    times = np.unique(target.rows, axis=0, return_counts=True)[1]
    assert times.max() <= 2 * REPEATED_ON_PURPOSE // 4 + 1
    assert (times > 1).sum() <= REPEATED_ON_PURPOSE // 4 + ROWS_ASKED_AGAIN
    whole = unweave.recover(network, activation="tanh")
    assert len(target.rows) <= whole.queries + REPEATED_ON_PURPOSE


@pytest.mark.parametrize("limit", [10, 380, 500, 640])
@pytest.mark.parametrize("layers", [[6, 4, 1], [5, 8, 1]])
def test_an_interrupted_recovery_tells_and_goes_on_without_paying_twice(
    layers: list[int], limit: int
) -> None:
    network = planted(layers)
    target = StopsAt(network, limit, KeyboardInterrupt())
    with pytest.raises(unweave.Interrupted) as caught:
        unweave.recover(target, activation="tanh", input_dim=layers[0])
    assert isinstance(caught.value, KeyboardInterrupt)
    told = caught.value.recovery
    assert told.status in (Status.FAILED, Status.APPROXIMATE)
    assert "interrupted" in told.message
    assert np.isnan(told.error)
    assert told.stages
    assert_continues(network, target, caught.value.ledger)


@pytest.mark.parametrize("limit", [10, 380, 640])
def test_the_ledger_of_a_target_error_goes_on_without_paying_twice(limit: int) -> None:
    network = planted([6, 4, 1])
    target = StopsAt(network, limit, ConnectionError("reset by peer"))
    with pytest.raises(TargetError, match="reset by peer") as caught:
        unweave.recover(target, activation="tanh", input_dim=6)
    assert caught.value.ledger is not None
    assert_continues(network, target, caught.value.ledger)


def test_a_spent_ledger_goes_on_with_a_new_budget() -> None:
    network = planted([6, 4, 1])
    ledger = unweave.Queries(network, 6, max_queries=100)
    assert unweave.recover(ledger, activation="tanh").status not in GOOD
    result = unweave.recover(ledger, activation="tanh", max_queries=400)
    assert_recovered(network, result)
    assert result.queries <= 400


def test_a_box_in_which_most_neurons_hardly_act() -> None:
    # Few directions are left to see, and the affine part of the others looks like a skip connection.
    network = planted([6, 8, 2], "gelu", seed=1097, norms=(0.5, 2))
    result = unweave.recover(network, hidden=[8], domain=(-4.9, -4.5))
    assert result.message
    if result.status in GOOD:
        assert result.network is not None
        x = np.random.default_rng(1005).uniform(-4.9, -4.5, (1000, 6))
        np.testing.assert_allclose(result.network(x), network(x), rtol=1e-9)


def test_neurons_that_are_known_to_exist_but_do_not_act_in_the_domain_are_an_ambiguity() -> None:
    # Three of the four neurons are constant in the box: the function comes back, their parameters cannot.
    network = planted([5, 4, 1], "erf", seed=1178, norms=(0.5, 2))
    result = unweave.recover(network, hidden=[4], activation="erf", domain=(6.54, 6.77))
    assert result.network is not None
    assert result.network.hidden == (1,)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_recovered_in_a_box_agrees_in_its_corners_too(seed: int) -> None:
    # One neuron is constant nearly everywhere and moves by 1e-9 in a corner: rows drawn evenly miss it.
    network = unweave.random_network([4, 6, 2], "erf", seed=1166, outer="normal", norms=(0.5, 2))
    domain = (-7.675, -6.372)
    result = unweave.recover(network, activation="erf", seed=seed, domain=domain)
    assert result.network is not None
    x = np.random.default_rng(1006).uniform(*domain, (20_000, 4))
    error = np.abs(result.network(x) - network(x)).max(axis=0) / np.abs(network(x)).max(axis=0)
    if result.status is Status.RECOVERED:
        assert error.max() <= 10 * result.stages[-1].figures["threshold"]
