"""Generalised linear models of scikit-learn through their answers alone, nothing told.

``LinearRegression``, ``Ridge``, ``LogisticRegression``, ``PoissonRegressor`` and ``LinearSVC`` on the data it
brings along, as they are or behind a ``StandardScaler`` ("scaled"; the truth is then folded into the raw
inputs). Each is asked through ``predict``, ``predict_proba`` or ``decision_function`` in float64; in float32
(parameters, inputs and products); rounded to 3 decimals; and with noise of 1e-3. "examples": the training
rows are given as typical inputs. The seed chooses the 80 % of the rows that are trained on. "Rows" are those
of the method, without look and check. "chi^2" is the mean over parameters of (error / standard error)^2.
``--rows`` and ``--json`` as in deep_table.py. Needs scikit-learn.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import unweave
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell
from named_rows import measure_all, read_rows
from unweave.arrays import Array
from unweave.networks.evaluation import softmax_in_place

NOISE = 1e-3
TRAINED_SHARE = 0.8


@dataclass(frozen=True)
class Model:
    """An estimator on a data set, and what is asked of it."""

    estimator: str
    data: str
    method: str
    link: str
    arguments: tuple[tuple[str, Any], ...] = ()


MODELS = (
    Model("LinearRegression", "diabetes", "predict", "identity"),
    Model("Ridge", "diabetes", "predict", "identity"),
    Model("LinearSVC", "breast_cancer", "decision_function", "identity"),
    Model("LogisticRegression", "breast_cancer", "predict_proba", "sigmoid", (("max_iter", 200),)),
    Model("LogisticRegression", "iris", "predict_proba", "softmax"),
    Model("LogisticRegression", "wine", "predict_proba", "softmax"),
    Model("LogisticRegression", "digits", "predict_proba", "softmax"),
    Model("PoissonRegressor", "diabetes", "predict", "exp", (("alpha", 1e-3), ("max_iter", 1000))),
)
WAYS = ("float64", "float32", "decimals3", "noise")


@dataclass(frozen=True)
class Setting:
    """A model, how it is answered, and what is given."""

    model: Model
    way: str
    scaled: bool = False
    examples: bool = False

    @property
    def name(self) -> str:
        """What --rows calls it, such as LogisticRegression:iris:decimals3:scaled:examples."""
        parts = [self.model.estimator, self.model.data, self.way]
        return ":".join([*parts, *["scaled"] * self.scaled, *["examples"] * self.examples])


SETTINGS = tuple(
    Setting(model, way, scaled, examples)
    for way in WAYS
    for examples in (False, True)
    for model in MODELS
    for scaled in (False, True)
)
QUICK = Setting(MODELS[4], "float64")


@functools.cache
def trained(model: Model, scaled: bool, seed: int) -> tuple[Any, Array]:
    """The fitted estimator, or pipeline, and the rows it was trained on."""
    from sklearn import datasets, linear_model, svm
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = getattr(datasets, f"load_{model.data}")(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(len(x))[: int(TRAINED_SHARE * len(x))]
    home = linear_model if hasattr(linear_model, model.estimator) else svm
    fitted = getattr(home, model.estimator)(**dict(model.arguments))
    if scaled:
        fitted = make_pipeline(StandardScaler(), fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever weights it has are the truth
        fitted.fit(x[chosen], y[chosen])
    return fitted, x[chosen]


def truth_of(model: Model, fitted: Any) -> unweave.Network:
    """The parameters in the raw inputs."""
    scaler, last = (fitted[0], fitted[-1]) if hasattr(fitted, "steps") else (None, fitted)
    weights, bias = np.atleast_2d(last.coef_).T, np.atleast_1d(last.intercept_)
    if scaler is not None:
        weights = weights / scaler.scale_[:, None]
        bias = bias - scaler.mean_ @ weights
    return unweave.Network([weights], [bias], [model.link])


def target_of(setting: Setting, seed: int) -> tuple[unweave.Network, Callable[[Array], Array], Array]:
    """The truth, what is asked, and the training rows."""
    fitted, rows = trained(setting.model, setting.scaled, seed)
    truth, ask = truth_of(setting.model, fitted), getattr(fitted, setting.model.method)
    # One column for two classes: the other says nothing more.
    one = setting.model.link == "sigmoid"
    noise = np.random.default_rng([seed, 1])

    def answer(x: Array) -> Array:
        y: Array = ask(x)[:, 1:] if one else ask(x)
        if setting.way == "decimals3":
            return np.round(y, 3)
        return y + NOISE * noise.standard_normal(y.shape) if setting.way == "noise" else y

    if setting.way != "float32":
        return truth, answer, rows
    weights, bias = (each.astype(np.float32) for each in (truth.weights[0], truth.biases[0]))
    rounded = unweave.Network([weights], [bias], [setting.model.link])
    return rounded, lambda x: _linked(x.astype(np.float32) @ weights + bias, setting.model.link), rows


def _linked(z: Any, link: str) -> Array:
    """The link of float32 numbers z (n, K), in float32."""
    if link == "softmax":
        softmax_in_place(z)
        return np.asarray(z)
    functions = {"identity": lambda z: z, "exp": np.exp, "sigmoid": lambda z: 1 / (1 + np.exp(-z))}
    return np.asarray(functions[link](z))


def chi_square(truth: unweave.Network, result: unweave.Recovery) -> float | None:
    """Mean of (error / standard error)^2, of classes against the last behind a softmax."""
    found, errors = result.network, result.standard_errors
    if found is None or errors is None or found.hidden:
        return None

    def numbers(network: unweave.Network) -> Array:
        stacked = np.vstack([network.weights[0], network.biases[0]])
        return stacked[:, :-1] - stacked[:, -1:] if network.activations[-1] == "softmax" else stacked

    bars = np.vstack([errors.weights[0], errors.biases[0]])[:, : numbers(found).shape[1]]
    return float(np.mean(((numbers(truth) - numbers(found)) / bars) ** 2))


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one model and one way of asking."""
    say(f"linear_models: {setting.name}")
    runs = []
    for seed in seeds:
        truth, target, rows = target_of(setting, seed)

        def figures(result: unweave.Recovery, truth: unweave.Network = truth) -> dict[str, Any]:
            rest = result.queries - result.probing_queries - result.verification_queries
            return {"rows": rest, "look": result.probing_queries, "chi_square": chi_square(truth, result)}

        given = {"examples": rows} if setting.examples else {}
        runs.append(
            run_recovery(truth, seed, target=target, input_dim=truth.n_inputs, extra=figures, **given)
        )
    extras = [run.extra for run in runs if run.extra]
    squares = [extra["chi_square"] for extra in extras if extra["chi_square"] is not None]
    inputs, outputs = truth.n_inputs, truth.n_outputs
    return summarise(
        setting.name,
        runs,
        rows=max((extra["rows"] for extra in extras), default=None),
        look=max((extra["look"] for extra in extras), default=None),
        allowed=3 * (inputs + 1) * outputs,
        chi_square=float(np.mean(squares)) if squares else None,
        failed=[run.seed for run in runs if not run.recovered],
    )


COLUMNS = {
    **{key: COMMON[key] for key in ("setting", "seeds", "recovered", "worst_parameter_error", "queries")},
    "look": "most rows of the look",
    "rows": "most rows",
    "allowed": "3 (D + 1) K",
    "chi_square": "chi^2",
    "cpu_seconds": COMMON["cpu_seconds"],
    "failed": "seeds not recovered",
}


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:5", "logistic regression on iris only, 1 seed")
    arguments, settings = read_rows(options, SETTINGS, [QUICK], argv)
    rows = measure_all(settings, measure, seeds_of(arguments, 5, 1), arguments.json)
    tell(rows, COLUMNS)
    return rows


if __name__ == "__main__":
    main()
