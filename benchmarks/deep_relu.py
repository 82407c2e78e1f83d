"""Two hidden layers of ReLU or leaky ReLU units from queries, with nothing told.

Planted networks have normal weights of variance 2 / n_in (1 / n_in in the output layer) and normal biases of
standard deviation 1 in the first layer and 1/2 in the others. Rows with the name of a data set are networks
that scikit-learn trained on it (as in deep_trained.py, seed of the training), asked through ``predict``;
"policy" is a synthetic task of control: 3000 normal states, actions u = clip(x A + sin(2 x B) / 2, -1, 1).
Dead units, active on none of 200,000 points spread by 1 to 100, show in no answer: they are taken out of the
truth before it is compared, and their number is given. A row that ends in "/float32" computes in float32
throughout, with parameters rounded; in "/torch" or "/onnx", so does that runtime; in "/sigmoid" or
"/softmax", that follows the output; in "/box", inputs lie within +-3; in "/4dp", answers have 4 decimals.
"not recovered" lists seed, status and widths found. ``--rows`` and ``--json`` as in deep_table.py;
``--deadline`` is what a run may take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

import unweave
from deep_any_width import in_single
from deep_trained import standardised, train_sklearn
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell
from many_inputs import in_onnx, in_torch
from named_rows import measure_all, read_rows
from unweave.arrays import Array
from unweave.networks.activations import get_activation

Planted = tuple[unweave.Network, Callable[[Array], Array]]
COLUMNS = {
    **COMMON,
    "max_seconds": "most CPU s",
    "most_queries_per_parameter": "most queries per parameter",
    "dead": "dead units",
    "statuses": "not recovered",
}
SINGLES = ("float32", "torch", "onnx")
SPREADS = (1.0, 3.0, 10.0, 100.0)
POINTS = 50_000  # of each spread
BOX = 3.0
SINGLE = 1e-4
"""Parameter error up to which a network behind float32 answers counts as the planted one."""


@dataclass(frozen=True)
class Setting:
    """A shape, and how it is filled."""

    layers: tuple[int, ...]
    activation: str = "relu"
    data: str | None = None
    """Trained on this instead of planted."""
    seen: str | None = None
    """How answers are seen: in float32, behind a link, in a box; None for precise answers everywhere."""

    @property
    def is_single(self) -> bool:
        """Whether answers are computed in float32."""
        return self.seen in SINGLES

    @property
    def name(self) -> str:
        """What --rows calls it."""
        parts = ["-".join(map(str, self.layers))]
        parts += [self.activation] if self.activation != "relu" else []
        name = ":".join(parts if self.data is None else [self.data, *parts])
        return name if self.seen is None else f"{name}/{self.seen}"

    @property
    def arguments(self) -> dict[str, Any]:
        """What `recover` is told."""
        return {"domain": (-BOX, BOX)} if self.seen == "box" else {}

    def behind(self, truth: unweave.Network, target: Callable[[Array], Array]) -> Planted:
        """Truth and target as they are seen."""
        if self.seen in (None, "box"):
            return truth, target
        if self.is_single:
            answer, rounded = in_single(truth)
            return rounded, RUNTIMES[self.seen](rounded) if self.seen in RUNTIMES else answer
        if self.seen == "4dp":
            return truth, lambda x: np.round(target(x), 4)
        truth = unweave.Network(truth.weights, truth.biases, [*truth.activations[:-1], self.seen])
        return truth, truth

    def plant(self, seed: int) -> Planted:
        """Truth and target."""
        if self.data is not None:
            states, actions = self.layers[0], self.layers[-1]
            x, y = control(states, actions, seed) if self.data == "policy" else standardised(self.data)
            return train_sklearn(x, y, self.layers[1:-1], self.activation, seed)
        rng = np.random.default_rng(seed)
        weights, biases = [], []
        for number, (read, width) in enumerate(pairwise(self.layers)):
            gain = 1.0 if number == len(self.layers) - 2 else 2.0
            weights.append(rng.standard_normal((width, read)).T * np.sqrt(gain / read))
            biases.append(rng.standard_normal(width) * (0.5 if number else 1.0))
        names = [self.activation] * (len(self.layers) - 2) + ["identity"]
        network = unweave.Network(weights, biases, names)
        return network, network


RUNTIMES: dict[str | None, Callable[[unweave.Network], Callable[[Array], Array]]] = {
    "torch": in_torch,
    "onnx": in_onnx,
}


def control(states: int, actions: int, seed: int) -> tuple[Array, Array]:
    """States (n, d) and the actions (n, K) of a controller with saturated actuators."""
    rng = np.random.default_rng([seed, 77])
    x = rng.standard_normal((3000, states))
    gain = rng.standard_normal((states, actions)) / np.sqrt(states)
    bend = rng.standard_normal((states, actions)) / np.sqrt(states)
    return x, np.clip(x @ gain + 0.5 * np.sin(2 * x @ bend), -1, 1)


SETTINGS = (
    *(Setting(shape) for shape in ((10, 15, 15, 1), (40, 20, 10, 1), (20, 20, 20, 1), (8, 6, 5, 1))),
    *(Setting(shape) for shape in ((10, 15, 15, 3), (61, 32, 16, 10))),
    Setting((10, 15, 15, 1), "leaky_relu"),
    Setting((10, 16, 16, 1), data="diabetes"),
    Setting((10, 10, 10, 1), data="diabetes"),
    *(
        Setting(shape, seen=seen)
        for seen in SINGLES
        for shape in ((10, 15, 15, 1), (20, 20, 20, 1), (40, 20, 10, 1), (64, 32, 16, 10))
    ),
    *(Setting((10, 16, 16, 1), data="diabetes", seen=seen) for seen in SINGLES),
    Setting((10, 15, 15, 3), seen="softmax"),
    *(Setting((10, 15, 15, 1), seen=seen) for seen in ("sigmoid", "box", "4dp")),
)
QUICK = ("8-6-5-1",)


def without_dead(network: unweave.Network) -> tuple[unweave.Network, int]:
    """The network without the units that are active nowhere, and how many there were."""
    rng = np.random.default_rng(0)
    shape = (POINTS, network.n_inputs)
    state = np.concatenate([spread * rng.standard_normal(shape) for spread in SPREADS])
    weights, biases, dead = list(network.weights), list(network.biases), 0
    for layer, name in enumerate(network.activations[:-1]):
        z = state @ weights[layer] + biases[layer]
        alive = (z > 0).any(axis=0) if name == "relu" else np.ones(z.shape[1], dtype=bool)
        dead += int((~alive).sum())
        weights[layer], biases[layer] = weights[layer][:, alive], biases[layer][alive]
        weights[layer + 1] = weights[layer + 1][alive]
        state = get_activation(name)(z[:, alive])
    return unweave.Network(weights, biases, network.activations), dead


def figures(result: unweave.Recovery) -> dict[str, Any]:
    """Status and widths of one run."""
    widths = None if result.network is None else "-".join(map(str, result.network.hidden))
    return {"status": result.status.name, "widths": widths}


def measure(setting: Setting, seeds: range, deadline: float | None = None) -> Row:
    """The row of one setting."""
    say(f"deep_relu: {setting.name}")
    runs, dead = [], 0
    for seed in seeds:
        planted, target = setting.plant(seed)
        alive, count = without_dead(planted)
        dead += count
        truth, target = setting.behind(alive, target)
        told = {"input_dim": truth.n_inputs, "deadline": deadline, **setting.arguments}
        run = run_recovery(truth, seed, target=target, extra=figures, **told)
        runs.append(replace(run, same=run.parameter_error <= SINGLE) if setting.is_single else run)
        say(
            f"    seed {seed}: {runs[-1].extra}, parameters {run.parameter_error:.1e}, "
            f"{run.queries / truth.n_parameters:.0f} rows per parameter, {run.cpu_seconds:.1f} CPU s"
        )
    missed = [run for run in runs if not run.recovered]
    return summarise(
        setting.name,
        runs,
        max_seconds=float(np.max([run.cpu_seconds for run in runs])),
        most_queries_per_parameter=max(
            (run.queries_per_parameter for run in runs if run.recovered), default=None
        ),
        dead=dead,
        statuses=[f"{run.seed} {run.extra.get('status')} {run.extra.get('widths')}" for run in missed],
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:10", f"{' and '.join(QUICK)} only, 2 seeds")
    options.add_argument("--deadline", type=float, default=None, metavar="S", help="seconds of a run")
    quick = [setting for setting in SETTINGS if setting.name in QUICK]
    arguments, settings = read_rows(options, SETTINGS, quick, argv)

    def limited(setting: Setting, seeds: range) -> Row:
        return measure(setting, seeds, arguments.deadline)

    rows = measure_all(settings, limited, seeds_of(arguments, 10, 2), arguments.json)
    tell(rows, COLUMNS)
    return rows


if __name__ == "__main__":
    main()
