"""Trained networks through their predictions alone: scikit-learn and torch, two and three hidden layers.

Regression on the data that scikit-learn brings along, inputs standardised: diabetes (target standardised),
breast cancer (target 0 or 1), digits (constant pixels dropped, one-hot targets). scikit-learn:
``MLPRegressor(max_iter=400, alpha=1e-3)``, tanh or logistic units. torch: tanh in double precision, default
start, 3000 steps of Adam on batches of 64. The seed is that of the training. The recovery asks ``predict``
(torch: the module) and is told the hidden widths, not the data. "R2" is the training's own score, to show
that something was learnt; seconds do not include the training. Needs scikit-learn, and torch for its rows.
``--rows`` and ``--json`` as in deep_table.py.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import trained_models
import unweave
from deep_table import COLUMNS, deep_figures, deep_row
from harness import Row, parser, run_recovery, say, seeds_of, tell
from named_rows import measure_all, read_rows
from unweave.arrays import Array

Target = Callable[[Array], Array]

ITERATIONS, PENALTY = 400, 1e-3
STEPS, BATCH, RATE = 3000, 64, 1e-3


@dataclass(frozen=True)
class Setting:
    """One data set, hidden widths, and a way of training."""

    data: str
    hidden: tuple[int, ...]
    way: str

    @property
    def name(self) -> str:
        """What --rows calls it, such as diabetes:8-5:tanh."""
        return f"{self.data}:{'-'.join(map(str, self.hidden))}:{self.way}"


ARCHITECTURES = (
    ("diabetes", (8, 5)),
    ("diabetes", (10, 6)),
    ("cancer", (20, 10)),
    ("cancer", (20, 12, 6)),
    ("digits", (32, 16)),
)
WAYS = ("tanh", "logistic", "torch")
SETTINGS = tuple(Setting(data, hidden, way) for way in WAYS for data, hidden in ARCHITECTURES)
QUICK = Setting("diabetes", (8, 5), "tanh")


@functools.cache
def standardised(data: str) -> tuple[Array, Array]:
    """Inputs (n, D) with mean 0 and deviation 1, constant ones dropped, and targets (n, K)."""
    x, y = trained_models.standardised(data)
    if data == "digits":
        return x, np.eye(10)[y]
    y = np.asarray(y, dtype=float)[:, None]
    return x, (y - y.mean()) / y.std() if data == "diabetes" else y


def train_sklearn(
    x: Array, y: Array, hidden: tuple[int, ...], activation: str, seed: int
) -> tuple[unweave.Network, Target]:
    """The trained parameters, as the truth, and ``predict``."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    model = MLPRegressor(
        hidden_layer_sizes=hidden,
        activation=activation,
        max_iter=ITERATIONS,
        alpha=PENALTY,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # some need more; any trained network will do
        model.fit(x, y.squeeze())
    truth = unweave.Network(model.coefs_, model.intercepts_, [activation] * len(hidden) + ["identity"])
    return truth, model.predict


def train_torch(x: Array, y: Array, hidden: tuple[int, ...], seed: int) -> tuple[unweave.Network, Target]:
    """The trained parameters, as the truth, and the module as a function of arrays."""
    import torch

    widths = (x.shape[1], *hidden, y.shape[1])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        linear = [torch.nn.Linear(n_in, n_out, dtype=torch.float64) for n_in, n_out in pairwise(widths)]
    parts = [part for layer in linear[:-1] for part in (layer, torch.nn.Tanh())]
    module = torch.nn.Sequential(*parts, linear[-1])
    stepper = torch.optim.Adam(module.parameters(), lr=RATE)
    inputs, targets = torch.from_numpy(x), torch.from_numpy(y)
    rng = np.random.default_rng([seed, BATCH])
    for _ in range(STEPS):
        batch = torch.from_numpy(rng.choice(len(x), BATCH, replace=False))
        stepper.zero_grad()
        torch.mean((module(inputs[batch]) - targets[batch]) ** 2).backward()
        stepper.step()
    weights = [layer.weight.detach().numpy().T for layer in linear]
    biases = [layer.bias.detach().numpy() for layer in linear]
    truth = unweave.Network(weights, biases, ["tanh"] * len(hidden) + ["identity"])

    def answer(rows: Array) -> Array:
        with torch.no_grad():
            return np.asarray(module(torch.from_numpy(np.ascontiguousarray(rows))).numpy())

    return truth, answer


def train(setting: Setting, seed: int) -> tuple[unweave.Network, Target]:
    """Truth and target of one seed."""
    x, y = standardised(setting.data)
    if setting.way == "torch":
        return train_torch(x, y, setting.hidden, seed)
    return train_sklearn(x, y, setting.hidden, setting.way, seed)


def score(network: unweave.Network, x: Array, y: Array) -> float:
    """R2 = 1 - sum of squared errors / sum of squared deviations from the mean."""
    return float(1 - np.sum((network(x) - y) ** 2) / np.sum((y - y.mean(axis=0)) ** 2))


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one data set, architecture and way of training."""
    x, y = standardised(setting.data)
    widths = (x.shape[1], *setting.hidden, y.shape[1])
    way = "torch tanh" if setting.way == "torch" else f"scikit-learn {setting.way}"
    label = f"{setting.data} {'-'.join(map(str, widths))}, {way}"
    say(f"deep_trained: {label}")
    runs, scores = [], []
    for seed in seeds:
        truth, target = train(setting, seed)
        scores.append(score(truth, x, y))
        runs.append(
            run_recovery(
                truth,
                seed,
                target=target,
                input_dim=x.shape[1],
                hidden=setting.hidden,
                extra=deep_figures,
            )
        )
    return deep_row(label, runs, data=setting.data, way=setting.way, score=float(np.median(scores)))


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:5", "diabetes 10-8-5-1 of scikit-learn with tanh only, 1 seed")
    arguments, settings = read_rows(options, SETTINGS, [QUICK], argv)
    rows = measure_all(settings, measure, seeds_of(arguments, 5, 1), arguments.json)
    tell(rows, {**COLUMNS, "score": "R2"})
    return rows


if __name__ == "__main__":
    main()
