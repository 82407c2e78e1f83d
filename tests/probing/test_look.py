"""The first look finds region, kinks and scale, spends little, and stays where it may ask."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from unweave.errors import BudgetExhausted, InvalidInput
from unweave.probing.lines import KinkEvidence, ask_lines, look_for_kinks
from unweave.probing.look import look
from unweave.probing.noise import estimate_noise
from unweave.probing.region_search import find_region
from unweave.targets import Queries, Region
from unweave.targets.region import NormalisedQueries

ACTIVATIONS = {
    "tanh": np.tanh,
    "sigmoid": lambda z: 0.5 + 0.5 * np.tanh(z / 2),
    "softplus": lambda z: np.logaddexp(0, z),
    "sine": np.sin,
    "relu": lambda z: np.maximum(z, 0),
    "leaky": lambda z: np.maximum(z, 0.1 * z),
}
KINKED = ("relu", "leaky")


class Net:
    """A random network sum_k a_k g(w_k . (x - shift) / scale + b_k) with unit w_k, and what it hides."""

    def __init__(self, seed, activation="tanh", n_inputs=20, width=40, n_outputs=1, bias=0.5, norm=1.0):
        rng = np.random.default_rng(seed)
        self.activation = ACTIVATIONS[activation]
        self.weights = rng.standard_normal((n_inputs, width))
        self.weights *= norm / np.linalg.norm(self.weights, axis=0)
        self.bias = rng.uniform(-bias, bias, width)
        self.outer = rng.choice([-1.0, 1.0], (width, n_outputs)) * rng.uniform(0.5, 2.0, (width, n_outputs))
        self.scale, self.shift = np.ones(n_inputs), np.zeros(n_inputs)
        self.rng = rng

    def hidden_away(self, shift):
        """Give each feature a scale between 1e-3 and 1e4, and a shift of up to ``shift`` scales."""
        self.scale = 10.0 ** self.rng.uniform(-3, 4, self.scale.size)
        self.shift = self.scale * self.rng.uniform(-shift, shift, self.scale.size)
        return self

    def before_activation(self, x):
        return ((x - self.shift) / self.scale) @ self.weights + self.bias

    def __call__(self, x):
        return self.activation(self.before_activation(x)) @ self.outer


def look_at(function, n_inputs=20, seed=1000, **options):
    return look(Queries(function, n_inputs), rng=np.random.default_rng(seed), **options)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("n_inputs", "width"), [(20, 40), (6, 8), (10, 200)])
@pytest.mark.parametrize("seed", [1000, 1001])
def test_standard_networks_are_accepted_and_kinks_are_seen(activation, n_inputs, width, seed):
    found = look_at(Net(seed, activation, n_inputs, width), n_inputs, seed)
    assert not found.searched
    np.testing.assert_array_equal(found.region.scale, 1.0)
    assert found.queries <= 250 + 78 + 3 * n_inputs
    assert found.kinks == (activation in KINKED)
    assert found.kink_evidence.judged >= 3
    assert not found.constant
    assert not found.linear
    assert found.n_outputs == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda y: y.astype(np.float32),
        lambda y: np.round(y, 6),
        lambda y: np.round(y, 4),
        lambda y: y + 1e-5 * np.random.default_rng(y.size).standard_normal(y.shape),
    ],
)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_kinks_are_seen_through_imprecise_answers(spoil, activation):
    net = Net(1002, activation)
    found = look_at(lambda x: spoil(net(x)))
    assert found.kinks == (activation == "relu")
    assert not found.searched


def test_no_kinks_are_claimed_below_the_noise():
    net = Net(1003, "relu")
    found = look_at(lambda x: np.round(net(x), 0))
    assert (found.kink_evidence.judged, found.kinks) == (0, False)


def test_maximum_grows_and_median_collapses_at_kinks():
    evidence = look_at(Net(1004, "relu")).kink_evidence
    assert evidence.medians[0] <= 1e-6 * evidence.medians[-1]
    smooth = look_at(Net(1004, "tanh")).kink_evidence
    # Curvature is the same at 0.01 and 0.05 up to the fourth derivative times 0.05^2.
    np.testing.assert_allclose(smooth.medians[1], smooth.medians[2], rtol=0.05)
    np.testing.assert_allclose(smooth.maxima[1], smooth.maxima[2], rtol=0.05)


def is_well_placed(net, region):
    """Scales within a factor 3 in most features; units alive at the location and varying by about one."""
    ratio = region.scale / net.scale
    centre = net.before_activation(region.location[None, :])[0]
    return np.mean((ratio > 1 / 3) & (ratio < 3)) >= 0.8 and np.sqrt(np.mean(centre**2)) <= 1.5


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize("shift", [3.0, 100.0])
def test_shifted_and_scaled_networks_are_found(activation, shift):
    good, costs = [], []
    for seed in range(1000, 1010):
        net = Net(seed, activation, bias=2.0).hidden_away(shift)
        found = look_at(net, seed=seed)
        assert found.searched
        assert not found.kinks
        good.append(is_well_placed(net, found.region))
        costs.append(found.queries)
    assert np.mean(good) >= 0.9
    assert max(costs) <= 6500


@pytest.mark.parametrize("norm", [1e-3, 30.0, 1e3])
def test_a_common_scale_is_found(norm):
    net = Net(1005, "tanh", norm=norm)
    found = look_at(net)
    assert found.searched
    u = np.random.default_rng(1006).standard_normal((500, 20))
    spread = np.median(net.before_activation(found.region.to_inputs(u)).std(axis=0))
    assert 0.2 <= spread <= 2.0


def test_two_outputs_of_very_different_size():
    net = Net(1007, "tanh", n_inputs=8, width=12, n_outputs=2, bias=2.0).hidden_away(50.0)
    found = look_at(lambda x: net(x) * [1e6, 1e-3], 8)
    assert is_well_placed(net, found.region)
    assert 1e8 <= found.output_scale[0] / found.output_scale[1] <= 1e10


@pytest.mark.parametrize("activation", ["relu", "softplus", "sine"])
def test_targets_that_do_not_saturate_keep_the_location_and_get_scales(activation):
    net = Net(1008, activation).hidden_away(0.0)
    found = look_at(net)
    assert found.searched
    np.testing.assert_array_equal(found.region.location, 0.0)
    ratio = found.region.scale / net.scale
    assert ratio.max() / ratio.min() <= 100  # of 1e7 between the features' scales
    assert found.kinks == (activation == "relu")


def test_features_without_effect_keep_scale_one():
    net = Net(1009, "tanh", n_inputs=6, width=12, bias=2.0).hidden_away(100.0)
    found = look_at(lambda x: net(np.delete(x, 2, axis=1)), 7)
    assert found.region.scale[2] == 1.0
    assert found.region.location[2] == 0.0
    ratio = np.delete(found.region.scale, 2) / net.scale
    assert np.mean((ratio > 1 / 3) & (ratio < 3)) >= 0.8


def test_constant_and_affine_targets():
    constant = look_at(lambda x: np.full(len(x), 2.5), 5)
    assert constant.constant
    assert constant.linear
    assert not constant.kinks
    affine = look_at(lambda x: x @ np.array([1.0, 2.0, -3.0, 4.0, 0.5]) + 1e3, 5)
    assert affine.linear
    assert not affine.constant
    np.testing.assert_array_equal(affine.region.scale, 1.0)
    assert not look_at(lambda x: x[:, 0] > 0, 5).constant


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("with_examples", [False, True])
def test_everything_stays_in_the_domain(activation, with_examples):
    net, low = Net(1010, activation, n_inputs=5, width=20), np.array([0.0, 10.0, -3.0, 1e-3, -1e4])
    high = low + np.array([1.0, 30.0, 6.0, 2e-3, 1e4])

    def guarded(x):
        assert (x >= low).all()
        assert (x <= high).all()
        return net(4 * (x - low) / (high - low))

    examples = np.random.default_rng(1011).uniform(low, high, (30, 5)) if with_examples else None
    found = look_at(guarded, 5, domain=(low, high), examples=examples)
    assert not found.searched
    assert found.kinks == (activation == "relu")
    np.testing.assert_array_equal(found.region.low, low)


def test_examples_give_the_region():
    net = Net(1012, "tanh", n_inputs=4, width=6).hidden_away(100.0)
    examples = net.shift + net.scale * np.random.default_rng(1013).standard_normal((200, 4))
    found = look_at(net, 4, examples=examples)
    assert not found.searched
    np.testing.assert_allclose(found.region.scale, examples.std(axis=0))
    np.testing.assert_allclose(found.region.location, examples.mean(axis=0))


def test_small_budget_is_exhausted_in_the_ledger():
    queries = Queries(Net(1014), 20, max_queries=10)
    with pytest.raises(BudgetExhausted):
        look(queries, rng=np.random.default_rng(1014))
    assert queries.sent <= 10


@pytest.mark.parametrize(
    "options", [{"domain": 3}, {"domain": (1, 0)}, {"domain": (0, 1, 2)}, {"examples": np.ones((3, 7))}]
)
def test_unusable_options_are_refused(options):
    with pytest.raises(InvalidInput, match=r"must (be|have)"):
        look_at(Net(1015), **options)


def test_same_seed_same_findings():
    first, second = (look_at(Net(1016, bias=2.0).hidden_away(100.0)) for _ in range(2))
    np.testing.assert_array_equal(first.region.location, second.region.location)
    np.testing.assert_array_equal(first.region.scale, second.region.scale)
    assert first.noise.sigma == second.noise.sigma


def test_search_gives_up_on_what_has_no_scale():
    rng = np.random.default_rng(1017)
    assert find_region(Queries(lambda x: np.ones(len(x)), 3), 1e-16, rng) is None
    assert find_region(Queries(lambda x: x.sum(axis=1), 3), 1e-15, rng) is None


def test_search_survives_steps_without_width():
    direction = np.random.default_rng(1021).standard_normal(4)
    region = find_region(Queries(lambda x: x @ direction > 3, 4), 1e-16, np.random.default_rng(1022))
    assert region is not None
    assert np.isfinite(region.scale).all()


def test_deep_networks_are_found_by_their_first_layer():
    net = Net(1018, "tanh", n_inputs=8, width=12, n_outputs=6).hidden_away(100.0)
    last = np.random.default_rng(1019).standard_normal(6)
    found = look_at(lambda x: np.tanh(net(x) / 4) @ last, 8)
    assert is_well_placed(net, found.region)


def test_lines_in_a_box_join_points_of_the_box():
    view = NormalisedQueries(Queries(lambda x: np.abs(x[:, 0]), 2), Region.from_domain(-1.0, 1.0, 2))
    rng = np.random.default_rng(1020)
    noise = estimate_noise(view, rng)
    evidence = look_for_kinks(ask_lines(view, 40, rng), noise)
    assert evidence.kinks
    assert 0 < evidence.judged <= 40


def behind(link, seed, n_outputs=1, activation="relu"):
    """A network whose answers come out of a sigmoid or softmax, far from saturated."""
    net = Net(seed, activation, 8, 6, n_outputs)
    net.outer *= 0.5
    if link == "softmax":
        return lambda x: scipy.special.softmax(net(x), axis=1)
    return lambda x: scipy.special.expit(net(x)) if link == "sigmoid" else np.tanh(net(x))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("link", "n_outputs"), [("sigmoid", 1), ("tanh", 2), ("softmax", 3)])
@pytest.mark.parametrize("seed", [1000, 1001])
def test_kinks_are_seen_behind_a_link_and_only_where_they_are(activation, link, n_outputs, seed):
    found = look_at(behind(link, seed, n_outputs, activation), 8, seed)
    assert found.kinks == (activation in KINKED)
    if found.kinks:
        assert found.links == (link,)


@pytest.mark.parametrize(("planted", "seed"), [(1003, 1011), (1015, 1006), (1024, 1002), (1024, 1029)])
def test_a_found_region_where_answers_are_saturated_is_not_taken(planted, seed):
    net = Net(planted, "relu", 5, 6)
    found = look_at(lambda x: np.round(scipy.special.expit(1.5 * net(x)), 3), 5, seed)
    assert found.searched  # by chance, units switch within short steps on most lines
    assert (found.noise.kind, found.noise.decimals, found.constant) == ("rounded", 3, False)


@pytest.mark.parametrize(("judged", "broken", "kinks"), [(6, 3, True), (6, 2, False), (0, 0, False)])
def test_half_of_the_lines_show_kinks(judged, broken, kinks):
    """Of a trained layer of ReLU units three lines of six broke, and no kinked unit was looked for."""
    evidence = KinkEvidence((0.1,), np.ones(1), np.ones(1), judged, broken)
    assert evidence.kinks is kinks
