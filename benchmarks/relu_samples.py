"""Networks with one layer of ReLU units from samples alone.

    unit weights, biases in [-1, 1], outer weights of random sign and size 1/2 to 2, Gaussian inputs,
    20 samples per parameter, a fifth of them held out by the recovery

Groups (``--rows`` chooses):

- told, open: the width given, and left to be found;
- small: outer weights down to 1 % of the largest, log-uniform;
- inputs: uniform, Laplace and correlated Gaussian inputs;
- noise: independent noise of 1e-4 and 1e-2 of the answers' spread. Nothing is then called recovered; the
  table shows the error over the noise, and how often +-1.645 standard errors hold the truth (0.9);
- width: one unit too few is told (never recovered), and two too many;
- large: 100 inputs and 50 units, 200 inputs and 100 units, 10 and 8 samples per parameter.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import unweave
from harness import COMMON, Row, Run, parser, run_recovery, say, seeds_of, summarise, tell
from unweave.arrays import Array
from unweave.methods.samples_relu.standard_errors import standard_errors

SIZES = ((10, 10), (10, 20), (20, 10), (20, 20), (10, 40), (30, 30))
QUICK = (6, 5)
PER_PARAMETER = 20
QUANTILE = 1.6448536269514722  # two-sided, nine in ten
GROUPS = ("told", "open", "small", "inputs", "noise", "width", "large")
_STREAM = 104_729  # second word of the seed of the samples


@dataclass(frozen=True)
class Setting:
    """One row."""

    inputs: int
    width: int
    group: str
    law: str = "Gaussian"
    smallest: float | None = None
    noise: float = 0.0
    told: int | None = None
    """Width that the recovery is told; None: to find out."""
    per_parameter: int = PER_PARAMETER

    @property
    def label(self) -> str:
        """Name of the row."""
        told = "open" if self.told is None else f"told {self.told}"
        parts = [f"{self.group}: {self.inputs}-{self.width}", f"width {told}"]
        parts += [f"{self.law} inputs"] if self.law != "Gaussian" else []
        parts += [f"noise {self.noise:g}"] if self.noise else []
        return ", ".join(parts)


def settings_of(groups: Sequence[str]) -> list[Setting]:
    """The rows of the groups."""
    every = [Setting(d, m, "told", told=m) for d, m in SIZES]
    every += [Setting(d, m, "open") for d, m in SIZES]
    every += [Setting(d, m, "small", smallest=0.01, told=m) for d, m in ((10, 10), (20, 20))]
    every += [
        Setting(d, m, "inputs", law=law, told=m)
        for law in ("uniform", "Laplace", "correlated")
        for d, m in ((10, 10), (10, 20))
    ]
    every += [Setting(10, 8, "noise", noise=noise, told=told) for noise in (1e-4, 1e-2) for told in (8, None)]
    every += [Setting(10, 10, "width", told=9), Setting(10, 10, "width", told=12)]
    every += [Setting(100, 50, "large", told=50, per_parameter=10)]
    every += [Setting(200, 100, "large", told=100, per_parameter=8)]
    return [setting for setting in every if setting.group in groups]


def plant(setting: Setting, seed: int) -> unweave.Network:
    """The network of a row."""
    shape = [setting.inputs, setting.width, 1]
    net = unweave.random_network(shape, activation="relu", seed=seed, outer="signed", bias=1)
    if setting.law == "correlated":  # biases in units of what the unit reads, so that every unit switches
        read = np.sqrt((axes(setting, seed).T @ net.weights[0]).T ** 2 @ spreads(setting) ** 2)
        return unweave.Network(net.weights, [net.biases[0] * read, net.biases[1]], net.activations)
    if setting.smallest is None:
        return net
    rng = np.random.default_rng([seed, 1])
    sizes = np.exp(rng.uniform(math.log(setting.smallest), 0, setting.width))
    sizes[:2] = setting.smallest, 1.0  # the extremes are always there
    outer = np.sign(net.weights[1]) * sizes[:, None]
    return unweave.Network([net.weights[0], outer], net.biases, net.activations)


def spreads(setting: Setting) -> Array:
    """Deviations (d,) of correlated inputs along their axes."""
    return np.geomspace(1, 0.1, setting.inputs)


def axes(setting: Setting, seed: int) -> Array:
    """Random axes (d, d) of correlated inputs, in columns."""
    return np.linalg.qr(np.random.default_rng([seed, 2]).standard_normal((setting.inputs,) * 2))[0]


def draw(setting: Setting, net: unweave.Network, seed: int) -> tuple[Array, Array]:
    """Samples of a row."""
    rng = np.random.default_rng([seed, _STREAM])
    shape = (setting.per_parameter * net.n_parameters, setting.inputs)
    laws: dict[str, Callable[[], Array]] = {
        "Gaussian": lambda: rng.standard_normal(shape),
        "uniform": lambda: rng.uniform(-math.sqrt(3), math.sqrt(3), shape),
        "Laplace": lambda: rng.laplace(0, math.sqrt(0.5), shape),
        "correlated": lambda: (rng.standard_normal(shape) * spreads(setting)) @ axes(setting, seed).T,
    }
    x = laws[setting.law]()
    y = net(x)
    return x, y + setting.noise * y.std() * rng.standard_normal(y.shape)


def coverage(truth: unweave.Network, found: unweave.Network, x: Array, y: Array) -> float:
    """Share of the parameters of ``truth`` within their intervals of nine in ten; nan if unmatched."""
    errors = standard_errors(found, x, y)
    if errors is None or found.hidden != truth.hidden or found.skip is not None:
        return math.nan
    net = errors.network  # incoming weights of length one, as planted
    order = np.argmax(truth.weights[0].T @ net.weights[0], axis=1)
    if len(set(order)) != len(order):
        return math.nan
    pairs = [
        (truth.weights[0], net.weights[0][:, order], errors.weights[0][:, order]),
        (truth.biases[0], net.biases[0][order], errors.biases[0][order]),
        (truth.weights[1], net.weights[1][order], errors.weights[1][order]),
        (truth.biases[1], net.biases[1], errors.biases[1]),
    ]
    inside = [np.abs(a - b) <= QUANTILE * error for a, b, error in pairs]
    return float(np.mean(np.concatenate([entry.reshape(-1) for entry in inside])))


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one setting."""
    say(setting.label)
    runs: list[Run] = []
    for seed in seeds:
        truth = plant(setting, seed)
        x, y = draw(setting, truth, seed)

        def figures(
            result: unweave.Recovery, truth: unweave.Network = truth, x: Array = x, y: Array = y
        ) -> dict[str, Any]:
            net = result.network
            fit = next(stage for stage in result.stages if stage.name.startswith("fit"))
            fitted = int(fit.figures["rows"])  # type: ignore[arg-type]
            covered = math.nan
            if net is not None and setting.noise:
                covered = coverage(truth, net, x[:fitted], y[:fitted])  # as many as were fitted
            starts = max(int(stage.figures.get("starts", 0)) for stage in result.stages)  # type: ignore[arg-type]
            return {
                "width": None if net is None else sum(net.hidden),
                "covered": covered,
                "starts": starts,
                "error": result.error,
            }

        hidden = None if setting.told is None else [setting.told]
        runs.append(
            run_recovery(
                truth, seed, target=unweave.Samples(x, y), hidden=hidden, activation="relu", extra=figures
            )
        )
    covered = [c for run in runs if math.isfinite(c := run.extra.get("covered", math.nan))]
    over = [run.parameter_error / setting.noise for run in runs] if setting.noise else []
    held = [run.extra.get("error", math.inf) for run in runs]
    return summarise(
        setting.label,
        runs,
        within=sum(run.parameter_error <= 1e-9 for run in runs),
        width_exact=sum(run.extra.get("width") == setting.width for run in runs),
        most_starts=max(run.extra.get("starts", 0) for run in runs),
        held_out_error=max(held) if math.isfinite(max(held)) else None,
        error_over_noise=float(np.median(over)) if over and math.isfinite(np.median(over)) else None,
        covered=float(np.mean(covered)) if covered else None,
    )


def groups_from(text: str) -> list[str]:
    """Read names of groups."""
    groups = text.split(",")
    if not set(groups) <= set(GROUPS):
        raise argparse.ArgumentTypeError(f"rows must be names of {', '.join(GROUPS)}. Got {text!r} instead.")
    return groups


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    commands = parser(__doc__, "0:10; large 0:1", "6 inputs and 5 units only, 2 seeds")
    commands.add_argument("--rows", type=groups_from, default=list(GROUPS), metavar="NAME,...")
    arguments = commands.parse_args(argv)
    settings = settings_of(arguments.rows)
    if arguments.quick:
        settings = [
            Setting(*QUICK, "told", told=QUICK[1]),
            Setting(*QUICK, "noise", noise=1e-3, told=QUICK[1]),
        ]
    rows = []
    for setting in settings:
        seeds = seeds_of(arguments, 1 if setting.group == "large" else 10, 2)
        rows.append(measure(setting, seeds))
    columns = {
        **{key: COMMON[key] for key in ("setting", "seeds", "recovered", "wrong", "worst_parameter_error")},
        "within": "within 1e-9",
        "width_exact": "width exact",
        "most_starts": "most starts",
        "held_out_error": "worst error on held-out rows",
        "error_over_noise": "parameter error over noise",
        "covered": "covered at 0.9",
        **{key: COMMON[key] for key in ("seconds", "cpu_seconds", "peak_rss_mb")},
    }
    tell(rows, columns, arguments.json)
    return rows


if __name__ == "__main__":
    main()
