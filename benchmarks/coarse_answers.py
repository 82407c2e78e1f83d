"""One hidden layer from rounded and noisy answers: averaging against the Cramer-Rao bound, and bisection.

Targets: "random" 20-40-1 (unit weights, biases in [-1/2, 1/2], outer weights of modulus 1/2 to 2) and
"cancer" 30-20-1, a tanh regressor that scikit-learn trained on breast cancer; the seed is that of network and
training. Nothing is told. Answers are rounded to decimals, or carry Gaussian noise.

Averaging rows: ``averaging=128`` rows per parameter in the final fit. "error of a neuron" is
|(w, b) found - (w, b)| / |(w, b)|, modulo order and sign; "expected" is a prototype's median (single seeds,
with width, activation and stencil given). "covered" is the share of all parameters within 1.645 standard
errors, as ``result.standard_errors`` has them, of the truth: 90 % if they are right. "rows per parameter,
start" are those of radius and Hessians. Bisection rows: the default for rounded answers. Seconds do not
include the training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

import unweave
from harness import COMMON, Row, Run, parser, run_recovery, say, seeds_of, summarise, tell
from named_rows import measure_all, read_rows
from unweave.arrays import Array

Target = Callable[[Array], Array]

AVERAGING = 128.0
WITHIN = 1.645  # standard errors that hold 90 % of a normal law
FAR_OFF = 8.0  # standard errors: no right parameter of thousands is as far
EXACT = 1e-8  # parameter error below which there is nothing to complain, whatever the standard error
_NOISE_STREAM = 104_729  # second word of the seed of a target's own noise
_PLANT_STREAM = 15_485_863  # the same for planted networks
_START = ("noise", "radius", "Hessians")


@dataclass(frozen=True)
class Setting:
    """A target, how coarse its answers are ("d2": decimals, "n1e-2": noise), and how they are used."""

    target: str
    mode: str
    averaging: float | None = None
    expected: float | None = None

    @property
    def name(self) -> str:
        """What --rows calls it, such as random:d2:averaging."""
        return f"{self.target}:{self.mode}:{'bisection' if self.averaging is None else 'averaging'}"

    @property
    def label(self) -> str:
        """For the table."""
        way = "bisection" if self.averaging is None else f"averaging {self.averaging:g}"
        return f"{self.target}, {describe(self.mode)}, {way}"


EXPECTED = {
    "random": {"d6": 1.3e-8, "d4": 1.1e-6, "d2": 1.2e-4, "n1e-2": 4.8e-4},
    "cancer": {"d6": 5.9e-8, "d4": 6.9e-6, "d2": 6.3e-4, "n1e-2": 2.1e-3},
}
SETTINGS = (
    *(Setting(target, "d2") for target in EXPECTED),
    *(Setting(target, mode, AVERAGING, each[mode]) for target, each in EXPECTED.items() for mode in each),
)
QUICK = (Setting("small", "d2"), Setting("small", "d4", 16.0))


def describe(mode: str) -> str:
    """``mode`` in words."""
    if mode in ("f64", "f32"):
        return {"f64": "float64", "f32": "float32"}[mode]
    return f"{mode[1:]} decimals" if mode[0] == "d" else f"noise {mode[1:]}"


def planted(
    inputs: int, width: int, outputs: int, seed: int, activation: str = "tanh", output: str = "identity"
) -> unweave.Network:
    """Unit weights, biases in [-1/2, 1/2], outer weights of modulus 1/2 to 2 and any sign."""
    rng = np.random.default_rng([seed, _PLANT_STREAM])
    incoming = rng.standard_normal((inputs, width))
    incoming /= np.linalg.norm(incoming, axis=0)
    biases = rng.uniform(-0.5, 0.5, width)
    outgoing = rng.uniform(0.5, 2, (width, outputs)) * rng.choice([-1, 1], (width, outputs))
    return unweave.Network([incoming, outgoing], [biases, np.zeros(outputs)], [activation, output])


def coarse(network: unweave.Network, mode: str, seed: int) -> Target:
    """What answers instead of ``network``: in float32 throughout, rounded, or noisy."""
    if mode == "f32":
        return in_single_precision(network)
    rng = np.random.default_rng([seed, _NOISE_STREAM])

    def answer(x: Array) -> Array:
        y = network(x)
        if mode[0] == "d":
            return np.round(y, int(mode[1:]))
        return y + float(mode[1:]) * rng.standard_normal(y.shape) if mode[0] == "n" else y

    return answer


def in_single_precision(network: unweave.Network) -> Target:
    """The same computation with float32 weights, states and answers."""
    from unweave.networks.activations import get_activation

    weights = [each.astype(np.float32) for each in network.weights]
    biases = [each.astype(np.float32) for each in network.biases]
    functions = [get_activation(name) for name in network.activations]

    def answer(x: Array) -> Array:
        state = x.astype(np.float32)
        for weight, bias, function in zip(weights, biases, functions, strict=True):
            state = function((state @ weight + bias).astype(np.float64)).astype(np.float32)
        return state.astype(np.float64)

    return answer


def target_of(setting: Setting, seed: int) -> unweave.Network:
    """The truth."""
    if setting.target == "cancer":
        from trained_models import Setting as Trained
        from trained_models import trained

        return trained(Trained("cancer", 20, "tanh"), seed)[0]
    return planted(20, 40, 1, seed) if setting.target == "random" else planted(6, 4, 1, seed)


def matched(truth: unweave.Network, found: unweave.Network) -> tuple[Array, Array] | None:
    """Order (m,) and signs (m,) of the found neurons, next to those of ``truth``; None if widths differ.

    For odd activations of one hidden layer.
    """
    if truth.hidden != found.hidden:
        return None
    one, other = (np.vstack([net.weights[0], net.biases[0]]) for net in (truth, found))
    same = np.linalg.norm(one[:, :, None] - other[:, None, :], axis=0)
    turned = np.linalg.norm(one[:, :, None] + other[:, None, :], axis=0)
    order = linear_sum_assignment(np.minimum(same, turned))[1]
    each = np.arange(len(order))
    return order, np.where(turned[each, order] < same[each, order], -1.0, 1.0)


def coarse_figures(truth: unweave.Network, result: unweave.Recovery) -> dict[str, Any]:
    """Errors of the neurons, and of all parameters in units of their standard errors."""
    stages = result.stages
    figures: dict[str, Any] = {
        "start": sum(stage.queries for stage in stages if stage.name in _START) / truth.n_parameters,
        "fit_rows": max(
            (stage.figures.get("rows", 0) for stage in stages if stage.name == "averaging"), default=0
        )
        / truth.n_parameters,
        "message": result.message,
    }
    network = result.network
    pairs = None if network is None else matched(truth, network)
    if network is None or pairs is None:
        return figures
    order, signs = pairs
    first = np.vstack([network.weights[0], network.biases[0]])[:, order] * signs
    true_first = np.vstack([truth.weights[0], truth.biases[0]])
    relative = np.linalg.norm(first - true_first, axis=0) / np.linalg.norm(true_first, axis=0)
    figures |= {"neuron_median": float(np.median(relative)), "neuron_largest": float(relative.max())}
    bars = result.standard_errors
    if bars is None:
        return figures
    last = np.vstack([network.weights[1][order] * signs[:, None], network.biases[1]])
    off = [first - true_first, last - np.vstack([truth.weights[1], truth.biases[1]])]
    widths = [
        np.vstack([bars.weights[0], bars.biases[0]])[:, order],
        np.vstack([bars.weights[1][order], bars.biases[1]]),
    ]
    ratio = np.concatenate([np.abs(a / b).reshape(-1) for a, b in zip(off, widths, strict=True)])
    return figures | {"covered": float(np.mean(ratio <= WITHIN)), "farthest": float(ratio.max())}


def judged(truth: unweave.Network, run: Run, activation: str) -> Run:
    """``run``, the same network meaning what its standard errors allow, not rounding."""
    right = run.extra.get("activation") == activation and math.isfinite(run.parameter_error)
    near = run.parameter_error <= EXACT or run.parameter_error <= FAR_OFF * run.extra.get("largest_bar", 0.0)
    return replace(run, same=right and near)


def verdict_figures(result: unweave.Recovery) -> dict[str, Any]:
    """What `judged` needs of a result."""
    network, bars = result.network, result.standard_errors
    largest = 0.0
    if bars is not None:
        largest = max(float(part.max()) for part in (*bars.weights, *bars.biases))
    return {
        "activation": None if network is None else network.activations[0],
        "width": None if network is None else list(network.hidden),
        "largest_bar": largest,
        "total_per_parameter": math.nan if network is None else result.queries / network.n_parameters,
        "message": result.message,
    }


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one target, precision and way."""
    say(f"coarse_answers: {setting.label}")
    runs = []
    for seed in seeds:
        truth = target_of(setting, seed)
        run = run_recovery(
            truth,
            seed,
            target=coarse(truth, setting.mode, seed),
            input_dim=truth.n_inputs,
            averaging=setting.averaging,
            extra=lambda result, truth=truth: {**verdict_figures(result), **coarse_figures(truth, result)},
        )
        runs.append(judged(truth, run, "tanh"))
    keys = (
        "neuron_median",
        "neuron_largest",
        "covered",
        "farthest",
        "start",
        "fit_rows",
        "total_per_parameter",
    )
    more = {key: _median_of(runs, key) for key in keys}
    more["neuron_largest"] = max((run.extra.get("neuron_largest", math.nan) for run in runs), default=None)
    return summarise(setting.label, runs, expected=setting.expected, **more)


def _median_of(runs: Sequence[Run], key: str) -> float | None:
    values = [run.extra[key] for run in runs if run.extra.get(key) is not None]
    return float(np.median(values)) if values else None


COLUMNS = {
    **{key: COMMON[key] for key in ("setting", "seeds", "recovered", "wrong")},
    "neuron_median": "median error of a neuron",
    "expected": "expected",
    "neuron_largest": "largest",
    "worst_parameter_error": "worst parameter error",
    "covered": "covered",
    "farthest": "largest error / standard error",
    "start": "rows per parameter, start",
    "fit_rows": "final fit",
    "total_per_parameter": "in all",
    "cpu_seconds": "CPU s",
}


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:3", "6-4-1 bisected and averaged, 1 seed")
    arguments, settings = read_rows(options, SETTINGS, QUICK, argv)
    rows = measure_all(settings, measure, seeds_of(arguments, 3, 1), arguments.json)
    tell(rows, COLUMNS)
    return rows


if __name__ == "__main__":
    main()
