from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Network, Queries, random_network
from unweave.methods.shared.profiles.profiles import SMOOTH_ACTIVATIONS
from unweave.methods.smooth.lattice_route import LatticeOptions, LatticeRoute
from unweave.methods.smooth.random_slice import SliceOptions
from unweave.methods.smooth.slice_route import SliceResult
from unweave.methods.smooth.span_members import MemberFinder, MemberOptions
from unweave.search.journal import Journal
from unweave.targets.region import Region

NOISE = 1e-15


def run(
    network: Network,
    width: int | None = None,
    activations: tuple[str, ...] = ("tanh",),
    region: Region | None = None,
    seed: int = 1000,
    options: LatticeOptions | None = None,
) -> tuple[SliceResult | None, Journal, Queries]:
    queries = Queries(network, network.n_inputs)
    journal = Journal(queries)
    region = region or Region.standard(network.n_inputs)
    route = LatticeRoute(
        lambda u: queries(region.to_inputs(u)),
        region,
        network.n_outputs,
        NOISE,
        width,
        activations,
        MemberFinder(MemberOptions(), journal, np.random.default_rng(seed)),
        options or LatticeOptions(),
    )
    return route.run(), journal, queries


def planted(layers: list[int], activation: str = "tanh", seed: int = 1000) -> Network:
    return random_network(layers, activation, seed=seed, outer="signed", norms=(0.6, 1.6), bias=1)


def parameter_error(truth: Network, found: SliceResult | None) -> float:
    assert found is not None
    return unweave.compare(truth, found.model.to_network()).parameter_error


@pytest.mark.parametrize("layers", [[12, 20, 1], [16, 10, 1], [40, 6, 1], [12, 20, 3]])
@pytest.mark.parametrize("told", [False, True])
def test_networks_come_back(layers: list[int], told: bool) -> None:
    truth = planted(layers)
    found, _, queries = run(truth, layers[1] if told else None)
    assert parameter_error(truth, found) < 1e-10
    assert found is not None
    evidence = found.evidence
    assert evidence.width == evidence.found == layers[1]
    assert evidence.gap is not None
    assert evidence.gap > 100
    assert evidence.fit_history[-1] < 30 * NOISE
    assert evidence.parameter_error_bar is not None
    assert evidence.parameter_error_bar < 1e-9
    if layers[2] == 1:
        assert queries.sent < 7 * truth.n_parameters


@pytest.mark.parametrize("activation", ["erf", "softplus", "gelu", "sine"])
def test_the_activation_need_not_be_told(activation: str) -> None:
    truth = planted([12, 9, 1], activation)
    found, _, _ = run(truth, activations=SMOOTH_ACTIVATIONS)
    assert found is not None
    assert found.model.activation.name == activation
    assert parameter_error(truth, found) < 1e-9


def test_the_rows_are_those_of_the_estimate() -> None:
    truth = planted([14, 18, 1])
    found, journal, queries = run(truth)
    assert found is not None
    dimension = next(SliceOptions().dimensions(14, 18))
    expected = SliceOptions().cost(14, 18, 1, dimension, mirrored=True).rows
    assert queries.sent == pytest.approx(expected, rel=0.25)
    assert {stage.name for stage in journal.stages} == {
        "step",
        "lattices",
        "power method",
        "activation",
        "truncation",
        "slice fit",
        "other inputs",
    }


def test_units_that_truncation_hides_come_out() -> None:
    base = planted([12, 20, 1], seed=1004)
    outgoing = base.weights[1].copy()
    outgoing[:2] *= 3e-4
    truth = Network([base.weights[0], outgoing], base.biases, base.activations)
    found, _, _ = run(truth)
    # Weak units are determined to their own precision, 1e-15 over 3e-4, times the conditioning.
    assert parameter_error(truth, found) < 1e-7


def test_a_skip_is_found() -> None:
    base = planted([12, 9, 2])
    skip = np.random.default_rng(1005).standard_normal((12, 2))
    truth = Network(base.weights, base.biases, base.activations, skip=skip)
    found, _, _ = run(truth)
    assert parameter_error(truth, found) < 1e-10


def test_nothing_is_asked_outside_a_box() -> None:
    region = Region.from_domain(-1.5, 1.0, 12)
    base, seen = planted([12, 20, 1]), []

    def watched(x: np.ndarray) -> np.ndarray:
        seen.append((x.min(), x.max()))
        return base(x)

    queries = Queries(watched, 12)
    route = LatticeRoute(
        lambda u: queries(region.to_inputs(u)),
        region,
        1,
        NOISE,
        None,
        ("tanh",),
        MemberFinder(MemberOptions(), Journal(queries), np.random.default_rng(1000)),
        LatticeOptions(),
    )
    assert route.run() is not None
    assert min(low for low, _ in seen) >= -1.5
    assert max(high for _, high in seen) <= 1.0


@pytest.mark.parametrize("layers", [[12, 10, 8, 1], [12, 60, 1]])
def test_what_is_not_in_sight_is_given_up(layers: list[int]) -> None:
    # Two hidden layers, or more units than 12 directions can show: no verdict, no exception.
    found, journal, _ = run(planted(layers))
    assert found is None
    assert [stage.name for stage in journal.stages][:2] == ["step", "lattices"]


def test_widths_that_are_not_told_are_sought_in_small_slices_only() -> None:
    small, limited = planted([12, 20, 1]), LatticeOptions(largest_fit=100)
    assert run(small, options=limited)[0] is None
    assert run(small, 20, options=limited)[0] is not None


@pytest.mark.parametrize(("outputs", "outer"), [(1, "ones"), (2, "unit")])
def test_wide_layers_are_fitted_without_a_matrix(outputs: int, outer: str) -> None:
    # 0.76 of the units that 12 inputs determine, on one side of every site; slopes instead of values.
    truth = random_network([12, 50, outputs], seed=1007, outer=outer, bias=0.5)
    options = LatticeOptions(slices=SliceOptions(largest_value_fit=100))
    found, journal, queries = run(truth, 50, options=options)
    assert parameter_error(truth, found) < 1e-10
    assert found is not None
    assert found.evidence.fit_floor is not None
    assert found.evidence.fit_floor > 10 * NOISE  # of slopes
    if outer == "ones":  # weak units may need both sides
        assert "mirrored lattices" not in {stage.name for stage in journal.stages}
        assert queries.sent < 6.5 * truth.n_parameters


@pytest.mark.parametrize("width", [40, 57])
def test_slopes_see_a_skip_on_a_slice_and_on_all_inputs(width: int) -> None:
    base = random_network([12, width, 1], seed=1008, outer="unit", bias=0.5)
    skip = np.random.default_rng(1008).standard_normal((12, 1))
    truth = Network(base.weights, base.biases, base.activations, skip=skip)
    options = LatticeOptions(slices=SliceOptions(largest_value_fit=100))
    found, _, _ = run(truth, width, options=options)
    assert parameter_error(truth, found) < 1e-8


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("layers", [[12, 14, 6], [12, 14, 40]])
def test_many_outputs_are_never_too_many(layers: list[int], told: bool) -> None:
    truth, limited = planted(layers, "gelu"), LatticeOptions(largest_fit=100)
    found, _, queries = run(truth, layers[1] if told else None, ("gelu",), options=limited)
    assert parameter_error(truth, found) < 1e-10
    assert queries.sent < 4 * truth.n_parameters


def test_outputs_beyond_the_units_show_nothing_more() -> None:
    slices, width, d = SliceOptions(), 10, 8
    incoming = width * (d + 1)
    for outputs in (10, 20, 1000):
        # Behind what enters linearly, (width + 1) per output, a point leaves ten equations at most.
        points = slices.values_needed(width, d, outputs) - (width + 1)
        assert points * min(outputs, width) >= incoming
