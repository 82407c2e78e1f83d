"""Networks of smooth units from samples: exact where samples decide, and honest where they do not."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Samples, Status
from unweave.errors import InvalidInput
from unweave.methods.samples_smooth.fit import fit_smooth_samples, handles


def exact(activation="tanh", inputs=6, width=4, outputs=1, rows=3000, seed=1000):
    outer = "signed" if outputs == 1 else "normal"
    net = unweave.random_network(
        [inputs, width, outputs], activation=activation, seed=seed, outer=outer, bias=1
    )
    x = np.random.default_rng(seed + 77).standard_normal((rows, inputs))
    return net, x, net(x)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "erf", "softplus", "gelu"])
@pytest.mark.parametrize("hidden", [[4], None])
def test_exact_samples_are_recovered(activation, hidden):
    net, x, y = exact(activation)
    result = unweave.recover(Samples(x, y), hidden=hidden, activation=activation)
    assert result.status is Status.RECOVERED
    assert result.error <= 1e-13
    assert result.queries == 0
    assert result.certificate.holds
    assert unweave.compare(net, result.network).parameter_error <= 1e-12


def test_several_outputs():
    net, x, y = exact(outputs=3)
    result = unweave.recover(Samples(x, y), activation="tanh")
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error <= 1e-12


def test_tanh_is_found_without_being_told():
    net, x, y = exact(rows=1000, inputs=4, width=2)
    result = unweave.recover(Samples(x, y))
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error <= 1e-12


def test_any_mean_and_covariance():
    net, z, _ = exact()
    x = 0.7 * z @ (np.eye(6) + 0.5 * np.eye(6, k=1)) + 0.5
    result = unweave.recover(Samples(x, net(x)), hidden=[4], activation="tanh")
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error <= 1e-12


def test_inputs_need_not_be_gaussian():
    net, _, _ = exact()
    x = np.random.default_rng(1).uniform(-1.7, 1.7, (3000, 6))
    result = unweave.recover(Samples(x, net(x)), hidden=[4], activation="tanh")
    assert result.status is Status.RECOVERED


def test_units_that_are_not_needed_are_left_out():
    _, x, y = exact()
    result = unweave.recover(Samples(x, y), hidden=[6], activation="tanh")
    assert result.network.hidden == (4,)
    assert any("4 units explain the samples; 6 were asked for" in note for note in result.notes)


def test_too_few_units_are_only_approximate():
    _, x, y = exact()
    result = unweave.recover(Samples(x, y), hidden=[3], activation="tanh")
    assert result.status is Status.APPROXIMATE
    assert result.network.hidden == (3,)
    assert not result.certificate.holds


def test_noise_is_not_recovered_but_the_network_is_close():
    net, x, y = exact()
    noisy = y + 0.01 * np.random.default_rng(2).standard_normal(y.shape)
    result = unweave.recover(Samples(x, noisy), hidden=[4], activation="tanh")
    assert result.status is Status.APPROXIMATE
    # Standard errors: noise / sqrt(rows), times the condition of the units.
    assert unweave.compare(net, result.network).parameter_error < 0.05


def test_rounded_answers_count_by_their_precision():
    net, x, y = exact()
    result = unweave.recover(Samples(x, y.round(4)), hidden=[4], activation="tanh")
    assert result.status is Status.RECOVERED
    assert 1e-9 < unweave.compare(net, result.network).parameter_error < 1e-3


@pytest.mark.parametrize("rows", [30, 90])
def test_too_few_samples_are_said_to_be(rows):
    _, x, y = exact(width=6, rows=rows)
    result = unweave.recover(Samples(x, y), hidden=[6], activation="tanh")
    assert result.status is Status.APPROXIMATE or result.status is Status.FAILED
    assert "too few" in result.message


@pytest.mark.parametrize("told", [True, False])
def test_more_units_than_inputs_come_from_random_starts(told):
    net = unweave.random_network([2, 5, 1], seed=1000, outer="normal", norms=(0.5, 2), bias=1)
    x = np.random.default_rng(1001).uniform(-2, 2, (900, 2))
    result = unweave.recover(Samples(x, net(x)), hidden=[5] if told else None, activation="tanh")
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error < 1e-10
    assert "random starts" in result.notes[0]


def test_more_units_than_the_samples_carry_are_not_recovered():
    net, x, y = exact()
    result = unweave.recover(Samples(x[:60], y[:60]), hidden=[net.n_inputs + 20], activation="tanh")
    assert result.status in (Status.APPROXIMATE, Status.FAILED)
    assert "too few" in result.message


def test_inputs_that_never_change_leave_weights_open():
    net, x, _ = exact()
    x[:, 2] = 0.5
    result = unweave.recover(Samples(x, net(x)), hidden=[4], activation="tanh")
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "do not vary in 1 directions" in result.message


def test_affine_answers_need_no_units():
    x = np.random.default_rng(3).standard_normal((400, 3))
    result = unweave.recover(Samples(x, x @ [1.0, -2.0, 0.5] + 3), activation="tanh")
    assert result.status is Status.RECOVERED
    assert result.network.hidden == ()


def test_deadline_returns_the_best_so_far():
    _, x, y = exact(inputs=10, width=8)
    noisy = y + 0.1 * np.random.default_rng(1).standard_normal(y.shape)
    result = unweave.recover(Samples(x, noisy), activation="tanh", deadline=0.3)
    assert result.status in (Status.APPROXIMATE, Status.FAILED)
    assert "deadline" in result.message
    assert result.seconds < 5


def test_same_seed_same_network():
    _, x, y = exact(rows=1000)
    first, second = (
        fit_smooth_samples(x, y, None, "tanh", floor=1e-10, rng=np.random.default_rng(5)) for _ in range(2)
    )
    assert first.network == second.network


def test_only_smooth_units_that_are_no_polynomials():
    _, x, y = exact()
    for name in ("relu", "cubic", "identity"):
        assert not handles(unweave.networks.activations.get_activation(name))
        with pytest.raises(InvalidInput, match="smooth and no polynomial"):
            fit_smooth_samples(x, y, 2, name, floor=1e-10, rng=np.random.default_rng(0))
