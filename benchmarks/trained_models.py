"""Trained one-hidden-layer networks through their answers alone, nothing told.

scikit-learn: ``MLPRegressor`` and ``MLPClassifier`` (max_iter=300, alpha=1e-3), tanh, logistic or ReLU, on
the data it brings along, inputs standardised: diabetes (10 inputs), breast cancer (30), digits (61; one-hot
targets). The recovery asks ``predict`` of a regressor and ``predict_proba`` of a classifier (breast cancer:
one sigmoid output, digits: softmax), as it is or rounded to 3 decimals ("predict_proba3"). "torch" and
"onnx": float32 copies of the tanh and ReLU regressors. ReLU regressors as they are stand in relu_queries.py.
The seed is that of the training, whose seconds are not counted. ``--rows`` and ``--json`` as in
deep_table.py. Needs scikit-learn, torch and onnxruntime.
"""

from __future__ import annotations

import functools
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import unweave
from coarse_answers import judged, verdict_figures
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell
from named_rows import measure_all, read_rows
from unweave.arrays import Array

Target = Callable[[Array], Array]

ITERATIONS, PENALTY = 300, 1e-3


@dataclass(frozen=True)
class Setting:
    """A data set, a width, units, and through what the network is asked."""

    data: str
    width: int
    activation: str
    way: str = "predict"

    @property
    def name(self) -> str:
        """What --rows calls it, such as digits-32:tanh:predict_proba."""
        return f"{self.data}-{self.width}:{self.activation}:{self.way}"


REGRESSORS = (("diabetes", 8), ("diabetes", 16), ("cancer", 20), ("digits", 32))
CLASSIFIERS = (("cancer", 20), ("digits", 32))
UNITS = ("tanh", "logistic")
SETTINGS = (
    *(Setting(*each, units) for each in REGRESSORS for units in UNITS),
    *(Setting(*each, units, "predict_proba") for each in CLASSIFIERS for units in UNITS),
    *(Setting(*each, "relu", way) for each in CLASSIFIERS for way in ("predict_proba", "predict_proba3")),
    *(Setting(*each, "tanh", way) for way in ("torch", "onnx") for each in REGRESSORS),
    *(Setting(*each, "relu", "torch") for each in REGRESSORS),
)
QUICK = Setting("diabetes", 8, "tanh")


@functools.cache
def standardised(data: str) -> tuple[Array, Array]:
    """Inputs (n, D) with mean 0 and deviation 1, constant ones dropped, and targets (n,)."""
    from sklearn import datasets

    load = {
        "diabetes": datasets.load_diabetes,
        "cancer": datasets.load_breast_cancer,
        "digits": datasets.load_digits,
    }
    x, y = load[data](return_X_y=True)
    x = x[:, x.std(axis=0) > 0]
    return (x - x.mean(axis=0)) / x.std(axis=0), np.asarray(y)


@functools.cache
def trained(setting: Setting, seed: int) -> tuple[unweave.Network, Target]:
    """The trained parameters, as the truth, and what scikit-learn answers."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    classifies = setting.way.startswith("predict_proba")
    x, y = standardised(setting.data)
    if not classifies:
        y = np.eye(10)[y] if setting.data == "digits" else y.astype(float)
        y = (y - y.mean(axis=0)) / y.std(axis=0)
    model = (MLPClassifier if classifies else MLPRegressor)(
        hidden_layer_sizes=(setting.width,),
        activation=setting.activation,
        max_iter=ITERATIONS,
        alpha=PENALTY,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # some need more; any trained network will do
        model.fit(x, y)
    output = {"identity": "identity", "logistic": "sigmoid", "softmax": "softmax"}[model.out_activation_]
    truth = unweave.Network(model.coefs_, model.intercepts_, [setting.activation, output])
    if setting.way == "predict_proba3":
        # One column for two classes: the other says nothing more.
        columns = slice(1, None) if truth.n_outputs == 1 else slice(None)
        return truth, lambda rows: np.round(model.predict_proba(rows)[:, columns], 3)
    return truth, model.predict_proba if classifies else model.predict


def target_of(setting: Setting, seed: int, folder: Path) -> tuple[unweave.Network, object]:
    """The truth, and what is asked."""
    if setting.way.startswith("predict"):
        return trained(setting, seed)
    truth = trained(Setting(setting.data, setting.width, setting.activation), seed)[0]
    if setting.way == "torch":
        return truth, truth.to_torch().float()
    path = folder / f"{setting.data}{setting.width}_{seed}.onnx"
    truth.save(path, dtype="float32")
    return truth, path


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one data set, width, activation and way of asking."""
    label = f"{setting.data} {setting.width}, {setting.activation}, {setting.way}"
    say(f"trained_models: {label}")
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            truth, target = target_of(setting, seed, Path(folder))
            inputs = None if setting.way == "onnx" else truth.n_inputs
            run = run_recovery(truth, seed, target=target, input_dim=inputs, extra=verdict_figures)
            # Logistic units come back as tanh.
            runs.append(judged(truth, run, "relu" if setting.activation == "relu" else "tanh"))
    messages = {
        str(run.seed): run.extra.get("message", "raised an error") for run in runs if not run.recovered
    }
    return summarise(label, runs, failures=messages, failed=sorted(messages))


COLUMNS = {
    **{
        key: COMMON[key]
        for key in (
            "setting",
            "seeds",
            "recovered",
            "wrong",
            "worst_parameter_error",
            "median_parameter_error",
            "queries_per_parameter",
            "queries",
            "cpu_seconds",
        )
    },
    "failed": "seeds not recovered",
}


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:5", "the tanh regressor of diabetes with 8 units only, 1 seed")
    arguments, settings = read_rows(options, SETTINGS, [QUICK], argv)
    rows = measure_all(settings, measure, seeds_of(arguments, 5, 1), arguments.json)
    tell(rows, COLUMNS)
    return rows


if __name__ == "__main__":
    main()
