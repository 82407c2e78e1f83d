"""Fit all parameters of a network with several hidden layers to values, more of them until it settles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.entangled import network_gradients
from unweave.networks.activations import SOFTMAX
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult, fit_values, points_to_fit
from unweave.search import Evidence, Journal
from unweave.targets.placement import points_at_units
from unweave.targets.region import Region

_ROUNDING_OF_A_SUM = 0.3  # rms error of w . x in units of eps |w| |x|: the terms' roundings average out


def final_fits(
    network: Network,
    draw: Callable[[int], Array],
    ask: Callable[[Array], Array],
    sigma: float,
    journal: Journal,
    *,
    polishes: int,
    settled: float,
    hopeless: float,
    equations_per_parameter: float = 1.5,
) -> Iterator[ValueFitResult]:
    """Yield fits of ``network``, each to more points than the one before, ``polishes`` of them at most.

    The last leaves a residual of ``settled`` floors or less, or more than the share ``hopeless`` of its first
    one. ``draw`` returns (n, D) points; ``sigma`` is the standard deviation of an answer.
    """
    model = NetworkParameters.from_network(network)
    points, answers = np.zeros((0, model.n_inputs)), np.zeros((0, model.n_outputs))

    def tell(step: int, rms: float) -> None:
        journal.tell(step, None, f"steps, residual {rms:.1e}")

    for _ in range(polishes):
        with journal.stage("polish") as stage:
            more = draw(points_to_fit(network, equations_per_parameter))
            points = np.concatenate([points, more])
            answers = np.concatenate([answers, ask(more)])
            noise = max(sigma, _input_rounding(network, points))
            fit = fit_values(model, points, answers, noise, tell)
            stage.figures.update(residual=fit.history[-1], floor=fit.floor, steps=len(fit.history) - 1)
        model = fit.model
        network = model.to_network()
        yield fit
        if fit.history[-1] < settled * fit.floor or fit.history[-1] > hopeless * fit.history[0]:
            break


def points_near(
    network: Network, region: Region, count: int, spreads: Sequence[float], rng: np.random.Generator
) -> Array:
    """Draw points (n, D) near the origin, half of them where a first-layer unit acts.

    ``spreads`` are standard deviations of the others, in turn; all in normalised inputs of ``region``.
    """
    weights, biases = network.weights[0], network.biases[0]
    units = (np.arange(count // 2) % len(biases)).astype(np.int64)
    placed = points_at_units(weights, biases, units, region, rng)
    lengths = np.resize(np.asarray(spreads), count - len(placed))
    return np.concatenate([placed, lengths[:, None] * rng.standard_normal((len(lengths), region.n_inputs))])


def with_final_fit(evidence: Evidence, fit: ValueFitResult, spread: float) -> Evidence:
    """Add what the fit measured, relative to the ``spread`` of the answers."""
    return replace(
        evidence,
        fit_history=tuple(value / spread for value in fit.history),
        fit_floor=fit.floor / spread,
        prediction_floor=fit.prediction_floor / spread,
        condition=fit.condition,
        parameter_error_bar=fit.error_bar,
    )


def corrected_widths(told: tuple[int, ...] | None, seen: tuple[int, ...]) -> tuple[str, ...]:
    """Say that the widths that were ``told`` are not those that were ``seen``, if they are not."""
    if told is None or told == seen:
        return ()
    return (
        f"hidden={list(told)} was said, {list(seen)} is what the answers show: units that do nothing or "
        "do the same, and layers after which the rest is affine, cannot be seen",
    )


def _input_rounding(network: Network, points: Array) -> float:
    """Return the rms of what rounding w . x does to the answers at ``points`` (n, D).

    Where weights are nearly dependent, points at which all units act lie far out, and their pre-activations
    are the difference of large numbers.
    """
    if network.activations[-1] == SOFTMAX:  # which damps what its logits do
        network = Network(network.weights, network.biases, (*network.activations[:-1], "identity"))
    lengths = np.linalg.norm(points, axis=1)
    slopes = np.linalg.norm(network_gradients(network, points), axis=(1, 2)) / np.sqrt(network.n_outputs)
    rounding = _ROUNDING_OF_A_SUM * np.finfo(np.float64).eps * lengths * slopes
    return float(np.sqrt(np.mean(rounding**2)))
