"""Units that are missing, mirrored, superfluous, or seen through contrasts of classes only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import unweave
from coarse_targets import noisy, planted, rounded, rows_of
from unweave.methods.shared.coarse_answers.averaged_fit import without_unit
from unweave.methods.smooth_coarse.fit import UnitFits
from unweave.methods.smooth_coarse.hessians_behind_links import HessiansBehindLinks, Seen, likeliest_contrasts
from unweave.methods.smooth_coarse.missing_units import (
    residual_hessians,
    with_averaged_units,
    with_missing_unit,
)
from unweave.methods.smooth_coarse.noisy_hessians import (
    RotatedHessians,
    noisy_span,
    random_rotations,
    rotated_hessians,
)
from unweave.methods.smooth_coarse.start import contrast_profiles
from unweave.networks.activations import get_activation
from unweave.networks.links import Link
from unweave.networks.mirrored_units import unmirrored
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing


def hessians_of(function, inputs: int, sites: int, radius: float, seed: int) -> RotatedHessians:
    rng = np.random.default_rng(seed)
    at = rng.standard_normal((sites, inputs))
    return rotated_hessians(function, at, radius, random_rotations(sites, inputs, rng))


# -- missing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_missing_unit_is_found_in_the_residual_hessians(outputs: int) -> None:
    network = planted(6, 5, outputs, 1000)
    truth = NetworkParameters.from_network(network)
    taken = hessians_of(network, 6, 40, 1e-2, 1001)
    found = with_missing_unit(without_unit(truth, 2), taken, np.ones(outputs), np.random.default_rng(0))
    assert found is not None
    new = found.weights[0][:, -1]
    cosine = abs(new @ network.weights[0][:, 2]) / np.linalg.norm(new)
    # Truncation r^2 / 12 |f''''| = 1e-5 of the direction.
    assert cosine > 1 - 1e-8
    sign = np.sign(new @ network.weights[0][:, 2])
    assert_allclose(sign * new, network.weights[0][:, 2], rtol=0, atol=1e-2)
    assert_allclose(sign * found.weights[1][-1], network.weights[1][2], rtol=0.02)


def test_nothing_is_found_where_nothing_is_missing() -> None:
    network = planted(6, 5, 1, 1002)
    taken = hessians_of(noisy(network, 1e-3, 1003), 6, 40, 0.5, 1003)
    model = NetworkParameters.from_network(network)
    residual = residual_hessians(model, taken)
    # What is left is noise and truncation, of the size that the stencils say themselves (times the diagonal).
    assert np.linalg.norm(residual.hessians) < 3 * np.linalg.norm(taken.errors)
    assert np.linalg.norm(residual.hessians) < 0.1 * np.linalg.norm(taken.hessians)


def test_a_weak_unit_is_found_in_the_average_of_what_is_left() -> None:
    network = planted(6, 5, 1, 1004)
    truth = NetworkParameters.from_network(network)
    smaller = without_unit(truth, 0)
    rng = np.random.default_rng(1005)
    points = rng.standard_normal((20_000, 6))
    left = network(points) - smaller.values(points)
    candidates = with_averaged_units(smaller, points, left, rng)
    assert len(candidates) == 2
    directions = [each.weights[0][:, -1] / np.linalg.norm(each.weights[0][:, -1]) for each in candidates]
    # Averages of 20,000 rows: the direction to some sqrt(D / n) times the ratio of r to its slope, 0.05.
    assert max(abs(each @ network.weights[0][:, 0]) for each in directions) > 0.99


def test_a_softmax_unit_is_added_against_the_last_class() -> None:
    network = planted(5, 4, 3, 1006, output="softmax")
    truth = NetworkParameters.from_network(network)
    link = Link("softmax")
    taken = hessians_of(lambda x: link.undo(network(x), 0.0), 5, 40, 1e-2, 1007)
    found = with_missing_unit(without_unit(truth, 1), taken, np.ones(3), np.random.default_rng(0))
    assert found is not None
    assert found.weights[1].shape == (4, 2)
    sign = np.sign(found.weights[0][:, -1] @ network.weights[0][:, 1])
    assert_allclose(sign * found.weights[1][-1], truth.weights[1][1], rtol=0, atol=0.05)


# -- mirrored --------------------------------------------------------------------------------------------


def mirror(network: unweave.Network, which: np.ndarray) -> unweave.Network:
    """The same function, some units turned round, for g(-z) = g(z) - z, and a skip that makes up for it."""
    sign = np.where(which, -1.0, 1.0)
    turned = network.weights[1] * which[:, None]
    return unweave.Network(
        [network.weights[0] * sign, network.weights[1]],
        [network.biases[0] * sign, network.biases[1] + network.biases[0] @ turned],
        network.activations,
        skip=network.weights[0] @ turned,
    )


@pytest.mark.parametrize("activation", ["softplus", "gelu", "swish"])
@pytest.mark.parametrize(("inputs", "width", "outputs"), [(6, 4, 1), (4, 9, 1), (4, 9, 2)])
def test_mirrored_units_are_turned_back(activation: str, inputs: int, width: int, outputs: int) -> None:
    network = planted(inputs, width, outputs, 1008, activation)
    which = np.random.default_rng(1009).random(width) < 0.5
    given = mirror(network, which)
    x = np.random.default_rng(1010).standard_normal((20, inputs))
    assert_allclose(given(x), network(x), rtol=0, atol=1e-13)  # the premise: the same function
    found = unmirrored(NetworkParameters.from_network(given), 1e-6)
    assert found is not None
    assert found.skip is None
    assert_allclose(found.weights[0], network.weights[0], rtol=0, atol=1e-13)
    assert_allclose(found.values(x), network(x), rtol=0, atol=1e-12)


def test_a_skip_that_is_no_mirror_stays() -> None:
    network = planted(6, 4, 1, 1011, "softplus")
    skipping = unweave.Network(network.weights, network.biases, network.activations, skip=np.ones((6, 1)))
    assert unmirrored(NetworkParameters.from_network(skipping), 1e-6) is None
    assert (
        unmirrored(NetworkParameters.from_network(planted(6, 4, 1, 1011)), 1e-6) is None
    )  # tanh has no mirror


# -- superfluous ------------------------------------------------------------------------------------------


def seen_of(rows, inputs: int) -> Seen:
    hessians = HessiansBehindLinks(rows, [Link("identity")], np.random.default_rng(1), lambda _: None)
    return hessians.sample(0.5, 1.25, None, 0)


def test_a_unit_that_does_not_act_is_taken_out_and_a_missing_one_is_added() -> None:
    network = planted(6, 4, 1, 1012)
    rows = rows_of(rounded(network, 3), 6)
    rows.extend_to(1000)
    fits = UnitFits(rows, np.random.default_rng(2), lambda *_: None)
    truth = NetworkParameters.from_network(network)
    seen = seen_of(rows, 6)
    idle = replace(
        truth,
        weights=(np.hstack([truth.weights[0], np.ones((6, 1))]), np.vstack([truth.weights[1], [[1e-9]]])),
        biases=(np.append(truth.biases[0], 0.1), truth.biases[1]),
    )
    pruned = fits.settled(fits.averaged(idle, 1e-3))
    assert pruned.model.weights[0].shape[1] == 4
    assert pruned.misfit <= rows.acceptable_misfit()
    lacking = fits.averaged(without_unit(truth, 1), 1e-2)
    assert lacking.misfit > 10
    assert fits.peeled(lacking, seen, most_units=3) is lacking  # a rival may have no more units
    peeled = fits.peeled(lacking, seen)
    assert peeled.model.weights[0].shape[1] == 4
    assert peeled.misfit <= rows.acceptable_misfit()


def test_a_fit_that_explains_nothing_is_not_peeled() -> None:
    rows = rows_of(lambda x: np.round(np.prod(np.sin(3 * x), axis=1), 4), 6)
    rows.extend_to(500)
    fits = UnitFits(rows, np.random.default_rng(3), lambda *_: None)
    fit = fits.averaged(NetworkParameters.from_network(planted(6, 2, 1, 1013)), 1e-2)
    assert rows.leaves_most(fit.misfit)
    assert fits.peeled(fit, seen_of(rows_of(rounded(planted(6, 2, 1, 1), 4), 6), 6)) is fit


# -- behind links -----------------------------------------------------------------------------------------


def test_the_link_behind_which_there_are_fewest_units_is_the_right_one() -> None:
    network = planted(7, 4, 1, 1014, output="sigmoid")
    rows = rows_of(rounded(network, 5), 7)
    links = [Link("identity"), Link("sigmoid")]
    hessians = HessiansBehindLinks(rows, links, np.random.default_rng(4), lambda _: None)
    seen = hessians.sample(0.6, 1.25, None, 0)
    assert (seen.link.name, seen.span.width) == ("sigmoid", 4)
    more = hessians.sample(0.6, 3.0, None, 4)  # those taken before are kept
    assert more.link.name == "sigmoid"
    assert len(more.taken) > len(seen.taken)


def test_sites_are_where_the_link_is_not_saturated() -> None:
    network = planted(5, 4, 1, 1015, output="sigmoid")
    steep = unweave.Network([network.weights[0], 6 * network.weights[1]], network.biases, network.activations)
    rows = rows_of(rounded(steep, 4), 5)
    link = Link("sigmoid")
    hessians = HessiansBehindLinks(rows, [link], np.random.default_rng(5), lambda _: None)
    sites = hessians.sites(20, 0.5, [link])
    assert sites.shape == (20, 5)
    assert np.mean(link.sees_well(steep(sites))) > 0.9


# -- contrasts of classes ---------------------------------------------------------------------------------


def test_contrasts_are_differences_of_the_two_likeliest_classes() -> None:
    rng = np.random.default_rng(1016)
    taken = RotatedHessians(rng.standard_normal((2, 3)), rng.standard_normal((2, 3, 6)), np.zeros((2, 3, 6)))
    seen = likeliest_contrasts(taken, np.array([[0.5, 0.1, 0.4], [0.2, 0.7, 0.1]]))
    assert_array_equal(seen.selectors, [[1, 0, -1], [-1, 1, 0]])
    assert_allclose(seen.hessians[0, 0], taken.hessians[0, 0] - taken.hessians[0, 2])
    assert_allclose(seen.hessians[1, 0], taken.hessians[1, 1] - taken.hessians[1, 0])


def test_profiles_from_contrasts() -> None:
    """Coefficients of a planted unit, one contrast per site: scale and bias to the grid, weights near."""
    rng = np.random.default_rng(1017)
    sites, classes, s, b = 400, 4, 1.2, 0.3
    outgoing = np.array([1.5, -0.5, 0.4, -1.4])
    t = rng.standard_normal((sites, 1))
    selectors = np.zeros((sites, classes))
    for row in selectors:
        i, j = rng.choice(classes, 2, replace=False)
        row[i], row[j] = 1, -1
    activation = get_activation("tanh")
    samples = s**2 * activation.jet(s * t + b, 2)[2] * (selectors @ outgoing)[:, None]
    fit = contrast_profiles(t, samples, selectors, activation)
    assert fit.residuals[0] < 0.2
    sign = np.sign(
        fit.outgoing[0] @ outgoing
    )  # tanh is odd: (s, b, a) and (s, -b, -a) of mirrored t are apart
    assert fit.scales[0] == pytest.approx(s, rel=0.2)
    assert fit.biases[0] == pytest.approx(b, abs=0.2)
    found = sign * (fit.outgoing[0] - fit.outgoing[0].mean())
    assert_allclose(found, outgoing - outgoing.mean(), rtol=0, atol=0.5)


def test_residual_hessians_of_contrasts_vanish_for_the_right_network() -> None:
    network = planted(5, 4, 3, 1018, output="softmax")
    link = Link("softmax")
    taken = hessians_of(lambda x: link.undo(network(x), 0.0), 5, 30, 1e-2, 1019)
    seen = likeliest_contrasts(taken, network(taken.sites))
    left = residual_hessians(NetworkParameters.from_network(network), seen)
    size = np.linalg.norm(seen.hessians)
    assert np.linalg.norm(left.hessians) < 1e-4 * size  # truncation r^2 / 12
    assert noisy_span(seen, np.ones(1)).width == 4
    assert symmetric_packing(5).size == seen.hessians.shape[2]
