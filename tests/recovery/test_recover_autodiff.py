"""``recover(..., derivatives="autodiff")``: the network to the last digits, counted, named, or refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import unweave
from unweave import InvalidInput, Status, recover
from unweave.report.repeat import python_call, shell_command

EXACT = 1e-9
"""What is asked for; typical errors are 1e-13."""
nn = torch.nn


def planted(layers, activation="tanh", seed=1000):
    return unweave.random_network(layers, activation, seed=seed, outer="normal", norms=(0.5, 2), bias=1)


class Partly(nn.Module):
    """The network of a module, and one neuron more that its backward pass does not see."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) + 2 * torch.tanh(x[:, :1].detach())


def per_parameter(result, truth):
    return (result.queries - result.probing_queries - result.verification_queries) / truth.n_parameters


@pytest.mark.parametrize("activation", ["tanh", "softplus"])
@pytest.mark.parametrize(
    ("layers", "most"), [([20, 40, 1], 1.4), ([12, 30, 2], 1.6), ([50, 8, 1], 0.7)], ids=str
)
def test_planted_modules_with_nothing_told(layers, most, activation):
    truth = planted(layers, activation)
    result = recover(truth.to_torch(), derivatives="autodiff")
    assert result.status is Status.RECOVERED
    assert unweave.compare(truth, result.network).parameter_error <= EXACT
    assert per_parameter(result, truth) <= most


@pytest.mark.parametrize("activation", ["erf", "gelu", "swish", "sine", "sigmoid"])
def test_other_activations(activation):
    truth = planted([8, 12, 1], activation, seed=1001)
    result = recover(truth.to_torch(), derivatives="autodiff")
    assert result.status is Status.RECOVERED
    assert unweave.compare(truth, result.network).parameter_error <= EXACT


def test_width_and_activation_told_and_a_domain():
    truth = planted([6, 10, 1])
    result = recover(truth.to_torch(), [10], "tanh", derivatives="autodiff", domain=(-1.5, 2.5))
    assert result.status is Status.RECOVERED
    assert unweave.compare(truth, result.network).parameter_error <= EXACT


def test_a_network_and_a_bound_method_give_the_same():
    truth = planted([7, 5, 1])
    module = truth.to_torch()
    results = [recover(target, derivatives="autodiff") for target in (module, module.forward, truth)]
    assert [result.status for result in results] == 3 * [Status.RECOVERED]
    assert len({result.queries for result in results}) == 1
    assert all(unweave.compare(truth, result.network).parameter_error <= EXACT for result in results)


def test_a_module_in_single_precision_to_about_five_digits():
    truth = planted([10, 14, 1])
    result = recover(truth.to_torch().float(), derivatives="autodiff")
    assert result.status is Status.RECOVERED
    assert 1e-10 < unweave.compare(truth, result.network).parameter_error < 1e-4
    assert "polish" in [stage.name for stage in result.stages]  # by its derivatives, not as coarse answers


# -- counted and named ---------------------------------------------------------------------------------


def test_the_result_says_what_was_taken(tmp_path):
    truth = planted([7, 12, 1])
    result = recover(truth.to_torch(), derivatives="autodiff")
    figures = [stage.figures.get("autodiff queries", 0) for stage in result.stages]
    (note,) = (note for note in result.notes if "autodiff" in note)
    assert f"{sum(figures)} of the queries" in note
    assert sum(stage.queries for stage in result.stages) == result.queries > sum(figures) > 0
    check = next(check for check in result.certificate.checks if check.name == "autodiff mismatch")
    assert check.holds
    assert result.settings["arguments"]["derivatives"] == "autodiff"
    assert "derivatives='autodiff'" in python_call(result.settings)
    assert "--derivatives=autodiff" in shell_command(result.settings)
    assert "autodiff" in json.dumps(result.to_dict())
    result.save(tmp_path / "run.npz")
    result.save_report(tmp_path / "report.html")
    assert "derivatives by autodiff" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_default_takes_no_derivatives():
    watched = []

    class Watching(nn.Sequential):
        def forward(self, x):
            watched.append(torch.is_grad_enabled())
            return super().forward(x)

    module = Watching(*planted([6, 4, 1]).to_torch())
    plain, said = recover(module), recover(module, derivatives="queries")
    assert not any(watched)
    np.testing.assert_array_equal(plain.network.weights[0], said.network.weights[0])
    assert plain.queries == said.queries
    assert not any("autodiff" in note for note in plain.notes)
    assert "derivatives" not in plain.settings["arguments"]


@pytest.mark.parametrize("share", [0.55, 0.75, 0.95])
def test_the_budget_holds_whatever_it_cuts(share):
    truth = planted([8, 12, 1])
    whole = recover(truth.to_torch(), derivatives="autodiff")
    budget = int(share * whole.queries)
    result = recover(truth.to_torch(), derivatives="autodiff", max_queries=budget)
    assert result.queries <= budget
    if result.status is Status.RECOVERED:  # fewer fresh rows do, where the budget ends with them
        assert unweave.compare(truth, result.network).parameter_error < 1e-9
    else:
        assert result.status in (Status.FAILED, Status.APPROXIMATE)
        assert "budget" in result.message


def test_the_deadline_holds():
    result = recover(planted([8, 12, 1]).to_torch(), derivatives="autodiff", deadline=0)
    assert result.status is Status.FAILED
    assert "deadline" in result.message


def test_a_checkpoint_takes_derivatives_again_and_arrives_at_the_same(tmp_path):
    module = planted([7, 12, 1]).to_torch()
    first, second = (
        recover(module, derivatives="autodiff", checkpoint=tmp_path / "run.sqlite") for _ in range(2)
    )
    np.testing.assert_array_equal(first.network.weights[0], second.network.weights[0])
    taken = sum(stage.figures.get("autodiff queries", 0) for stage in second.stages)
    assert second.queries == taken > 0


# -- where it does not apply ---------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [[12, 8, 5, 1], [6, 1]], ids=str)
def test_other_classes_are_recovered_from_answers_and_say_so(layers):
    truth = unweave.random_network(layers, "tanh", seed=1000, outer="normal")
    result = recover(truth.to_torch(), derivatives="autodiff")
    assert result.status is Status.RECOVERED
    assert any("not used" in note for note in result.notes)


def test_a_part_that_is_detached_is_noticed():
    truth = planted([12, 6, 1])
    result = recover(Partly(truth.to_torch()), derivatives="autodiff", method="smooth", input_dim=12)
    assert result.status is Status.FAILED
    assert "not those of its answers" in result.message
    assert not next(c for c in result.certificate.checks if c.name == "autodiff mismatch").holds


def test_a_straight_through_estimator_is_noticed():
    class StraightThrough(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = planted([8, 6, 1]).to_torch()

        def forward(self, x):
            y = self.inner(x)
            return y + (torch.sin(3 * y) - y).detach()

    result = recover(StraightThrough(), derivatives="autodiff", method="smooth", input_dim=8)
    assert result.status is Status.FAILED
    assert result.network is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"derivatives": "exact"}, "derivatives must be .*queries.*autodiff.*Got 'exact' instead"),
        ({"hidden": [5, 3]}, r"one smooth hidden layer. Got hidden=\[5, 3\] instead.*queries"),
        ({"hidden": []}, r"Got hidden=\[\] instead"),
        ({"activation": "relu"}, "Got activation='relu' instead"),
        ({"output_activation": "sigmoid"}, "Got output_activation='sigmoid' instead"),
        ({"method": "smooth_deep"}, "Got method='smooth_deep', which asks for answers only"),
    ],
)
def test_what_no_method_could_use_is_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        recover(planted([6, 4, 1]), **{"derivatives": "autodiff", **arguments})


@pytest.mark.parametrize("target", [lambda x: x[:, 0], unweave.Samples(np.ones((9, 2)), np.arange(9.0))])
def test_targets_without_derivatives_are_refused(target):
    with pytest.raises(InvalidInput, match=r"must be a torch module, a bound method of one.*instead"):
        recover(target, derivatives="autodiff", input_dim=2)


def test_an_estimator_is_refused():
    from sklearn import linear_model as linear

    x = np.random.default_rng(1000).standard_normal((40, 3))
    model = linear.LinearRegression().fit(x, x[:, 0])
    for target in (model, model.predict):
        with pytest.raises(InvalidInput, match="estimator"):
            recover(target, derivatives="autodiff")
