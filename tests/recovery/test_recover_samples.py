"""`recover` on samples: the verdicts, and what is said with them."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Samples, Status
from unweave.methods.samples_smooth.search import SamplesSmoothOptions


def exact(inputs=6, width=5, outputs=1, seed=1000, activation="relu", per_parameter=20):
    net = unweave.random_network(
        [inputs, width, outputs], activation=activation, seed=seed, outer="signed", bias=1
    )
    x = np.random.default_rng(seed + 77).standard_normal((per_parameter * net.n_parameters, inputs))
    return net, x, net(x)


@pytest.mark.parametrize(
    "told",
    [
        {"hidden": [5], "activation": "relu"},
        {"hidden": [7], "activation": "relu"},
        {"activation": "relu"},
        {},
    ],
)
def test_exact_samples_are_recovered(told):
    net, x, y = exact()
    result = unweave.recover(Samples(x, y), **told)
    assert result.status is Status.RECOVERED
    assert result.error <= 1e-12
    assert result.queries == result.verification_queries == 0
    assert result.certificate.holds
    assert unweave.compare(net, result.network).parameter_error <= 1e-11
    assert ("were asked for" in " ".join(result.notes)) == (told.get("hidden") == [7])


def test_same_seed_same_result():
    _, x, y = exact()
    first, second = (unweave.recover(Samples(x, y), seed=3) for _ in range(2))
    assert first.network == second.network


def test_too_few_units_are_only_approximate():
    _, x, y = exact()
    result = unweave.recover(Samples(x, y), hidden=[4], activation="relu")
    assert result.status is Status.APPROXIMATE
    assert result.network.hidden == (4,)
    assert result.error > 1e-3
    assert "5 units fit exactly" in result.message


@pytest.mark.parametrize("count", [20, 50])
def test_too_few_samples_are_said_to_be(count):
    _, x, y = exact()
    result = unweave.recover(Samples(x[:count], y[:count]), hidden=[5], activation="relu")
    assert result.status in (Status.APPROXIMATE, Status.FAILED)
    assert f"{count} samples are too few for 5 units" in result.message


def test_rounded_answers_count_by_their_precision():
    net, x, y = exact(per_parameter=30)
    for answers, kind, size in ((y.astype(np.float32), "float32", 1e-6), (y.round(4), "decimals", 1e-3)):
        result = unweave.recover(Samples(x, answers), activation="relu")
        assert result.status is Status.RECOVERED
        assert any(kind in note for note in result.notes)
        assert unweave.compare(net, result.network).parameter_error <= size


def test_noise_is_never_called_precision_unless_repeated_rows_show_it():
    _, x, y = exact(per_parameter=30)
    rng = np.random.default_rng(1)
    noisy = y + 0.01 * y.std() * rng.standard_normal(y.shape)
    alone = unweave.recover(Samples(x, noisy), activation="relu")
    assert alone.status is Status.APPROXIMATE
    assert alone.network.hidden == (5,)
    assert any("standard error" in note for note in alone.notes)
    repeated = np.vstack([noisy, y + 0.01 * y.std() * rng.standard_normal(y.shape)])
    known = unweave.recover(Samples(np.vstack([x, x]), repeated), activation="relu")
    assert known.status is Status.RECOVERED
    told = unweave.recover(Samples(x, noisy), activation="relu", hidden=[5], tolerance=0.1)
    assert told.status is Status.RECOVERED


def test_squared_units_are_found_without_being_told():
    net, x, y = exact(width=3, activation="squared_relu")
    result = unweave.recover(Samples(x, y))
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).is_same


def test_classes_are_not_recovered_exactly():
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((200, 4))
    # A step between samples is fitted exactly by two parallel units; where they bend is anybody's guess.
    separable = unweave.recover(Samples(x, (x[:, 0] > 0).astype(float)), activation="relu")
    assert separable.status is Status.APPROXIMATE
    assert "undetermined" in separable.message
    noisy = unweave.recover(Samples(x, (x[:, 0] + rng.standard_normal(200) > 0).astype(float)))
    assert noisy.status in (Status.APPROXIMATE, Status.FAILED)


def test_random_labels_are_not_recovered():
    rng = np.random.default_rng(1001)
    result = unweave.recover(Samples(rng.standard_normal((150, 6)), rng.standard_normal(150)))
    assert result.status in (Status.FAILED, Status.APPROXIMATE)
    assert result.status is Status.APPROXIMATE or result.network is None


def test_skip_connection_is_the_same_function():
    net, x, _ = exact()
    rng = np.random.default_rng(2)
    skipping = unweave.Network(net.weights, net.biases, net.activations, skip=rng.standard_normal((6, 1)))
    result = unweave.recover(Samples(x, skipping(x)), hidden=[5], activation="relu")
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert unweave.compare(skipping, result.network).parameter_error <= 1e-11


def test_affine_and_tiny_data():
    x = np.random.default_rng(3).standard_normal((40, 3))
    affine = unweave.recover(Samples(x, x @ [1.0, 2.0, 3.0] + 1))
    assert (affine.status, affine.network.hidden) == (Status.RECOVERED, ())
    tiny = unweave.recover(Samples(x[:3], x[:3, 0]))
    assert tiny.status is Status.APPROXIMATE
    assert np.isnan(tiny.error)
    alone = unweave.recover(Samples(x[:1], [2.0]))
    assert alone.network(x[:1])[0, 0] == pytest.approx(2.0)


def test_quadratic_units_go_their_own_way():
    net = unweave.random_network([5, 3, 1], "quadratic", seed=1000, bias=0)
    x = np.random.default_rng(4).standard_normal((40, 5))
    result = unweave.recover(Samples(x, net(x)), activation="quadratic", hidden=[3])
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert result.error <= 1e-10
    few = unweave.recover(Samples(x[:14], net(x[:14])), activation="quadratic", hidden=[3])
    assert few.status in (Status.APPROXIMATE, Status.FAILED)


def test_deadline_returns_the_best_so_far():
    _, x, y = exact(inputs=10, width=20)
    noisy = y + 0.01 * np.random.default_rng(1).standard_normal(y.shape)
    result = unweave.recover(Samples(x, noisy), activation="relu", deadline=0.2)
    assert result.status is Status.APPROXIMATE
    assert "deadline" in result.message
    assert result.seconds < 5


def test_what_samples_cannot_do_is_refused():
    _, x, y = exact()
    with pytest.raises(unweave.InvalidInput, match="activation must be those of a method for samples"):
        unweave.recover(Samples(x, y), activation="cubic")
    with pytest.raises(unweave.InvalidInput, match="must be those of a method for samples"):
        unweave.recover(Samples(x, y), hidden=[5, 4, 3])


FOR_TARGETS_ONLY = {
    "input_dim": 6,
    "domain": (-1.0, 1.0),
    "examples": np.zeros((3, 6)),
    "max_queries": 100,
    "averaging": 10.0,
    "executor": unweave.execution.SerialExecutor(),
    "checkpoint": "run.sqlite",
}


@pytest.mark.parametrize("name", FOR_TARGETS_ONLY)
def test_what_is_only_for_targets_that_are_asked_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, x, y = exact()
    with pytest.raises(unweave.InvalidInput, match=f"{name} must be None for samples"):
        unweave.recover(Samples(x, y), **{name: FOR_TARGETS_ONLY[name]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("method", "activation"),
    [("samples_relu", "relu"), ("samples_squared_relu", "squared_relu"), ("samples_smooth", "tanh")],
)
def test_methods_for_samples_can_be_asked_for_by_name(method, activation):
    net, x, y = exact(width=3, activation=activation)
    result = unweave.recover(Samples(x, y), method=method)
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).is_same
    fits = [stage.name for stage in result.stages if stage.name.startswith("fit")]
    assert all(activation in name or name == "fit smooth units" for name in fits)


def test_a_method_for_targets_is_refused_for_samples_and_the_other_way_round():
    net, x, y = exact()
    with pytest.raises(unweave.InvalidInput, match=r"method must be one of samples_.*samples\. Got 'relu'"):
        unweave.recover(Samples(x, y), method="lines")
    with pytest.raises(unweave.InvalidInput, match=r"method must be one of affine, .* Got 'samples_relu'"):
        unweave.recover(net, method="samples_relu")


def test_samples_take_options():
    _, x, y = exact(width=3, activation="tanh")
    told = {"activation": "tanh", "method": "samples_smooth"}
    given = unweave.recover(Samples(x, y), options=SamplesSmoothOptions(work=1.0), **told)
    assert given.network == unweave.recover(Samples(x, y), **told).network
    with pytest.raises(unweave.InvalidInput, match="options must be those of a method"):
        unweave.recover(Samples(x, y), options={"work": 1.0}, **told)


def test_result_survives_saving(tmp_path):
    _, x, y = exact()
    result = unweave.recover(Samples(x, y), activation="relu")
    result.save(tmp_path / "run.npz")
    again = unweave.Recovery.load(tmp_path / "run.npz")
    assert again.network == result.network
    assert again.to_dict() == result.to_dict()
    assert [stage.name for stage in again.stages] == ["look", "fit relu", "verification"]


def test_large_offset_does_not_hide_an_error():
    _, x, y = exact()
    shifted = unweave.recover(Samples(x, y + 1e6), activation="relu")
    assert shifted.status is Status.RECOVERED
    # 1e-5 of the spread, 1e-11 of the answers
    noisy = y + 1e6 + 1e-5 * np.random.default_rng(1).standard_normal(y.shape)
    assert unweave.recover(Samples(x, noisy), activation="relu").status is Status.APPROXIMATE


def test_a_unit_that_hardly_any_sample_switches_is_not_called_recovered():
    network = unweave.random_network([6, 4, 1], activation="relu", seed=1000, outer="signed", bias=0.5)
    x = np.random.default_rng(1000).standard_normal((800, 6))
    z = np.sort(x @ network.weights[0][:, 0])
    biases = network.biases[0].copy()
    biases[0] = -(z[-4] + z[-3]) / 2  # three samples beyond its kink, and seven numbers to find
    rare = unweave.Network(network.weights, [biases, network.biases[1]], network.activations)
    result = unweave.recover(Samples(x, rare(x)), hidden=[4], activation="relu")
    assert result.status is not Status.RECOVERED


def test_ctrl_c_hands_back_what_was_found():
    net = unweave.random_network([6, 8, 1], activation="relu", seed=1000, outer="signed")
    x = np.random.default_rng(1000).standard_normal((1200, 6))
    told = []

    def stop(progress):
        told.append(progress)
        if len(told) == 12:
            raise KeyboardInterrupt

    with pytest.raises(unweave.Interrupted) as caught:
        unweave.recover(unweave.Samples(x, net(x)), hidden=[8], activation="relu", progress=stop)
    assert caught.value.ledger is None
    found = caught.value.recovery
    assert found.network is not None
    assert found.status is not unweave.Status.RECOVERED
    assert "interrupted" in found.message


def test_a_method_asked_for_by_name_tells_what_it_found() -> None:
    x = np.random.default_rng(1).standard_normal((400, 3))
    result = unweave.recover(unweave.Samples(x, np.abs(x).sum(axis=1)), method="samples_smooth")
    assert not result.status.is_recovered
    assert "so steep that only" in result.message
