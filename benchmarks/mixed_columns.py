"""Pipelines of scikit-learn on mixed columns: StandardScaler + OneHotEncoder + a linear model or a network.

Eight numbers, a whole number, a boolean and two categories of 3 and 4 levels, in a pandas frame; the frame is
given as ``examples``, nothing else is told. Every row that is asked is checked to be admissible: types as in
the frame, levels that exist, whole numbers. Networks have 12 hidden units. "error on the data": largest
difference of an answer on the training rows. Needs scikit-learn and pandas.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

import unweave

KINDS = ("linear", "logistic", "softmax")
NETWORKS = tuple(f"{what}:{units}" for what in ("regressor", "classifier") for units in ("tanh", "relu"))
ROWS = (*KINDS, *NETWORKS)
NUMBERS = ["income", *(f"score{k}" for k in range(7))]
PEOPLE = 500


def people(seed: int) -> tuple[Any, Any]:
    """Return a frame of mixed columns, and numbers to predict."""
    import pandas

    rng = np.random.default_rng(seed)
    table = pandas.DataFrame(
        {
            "age": rng.integers(18, 80, PEOPLE),
            "income": np.exp(rng.normal(10, 0.5, PEOPLE)),
            "city": rng.choice(["oslo", "paris", "rome"], PEOPLE),
            **{f"score{k}": rng.normal(0, 2, PEOPLE) for k in range(7)},
            "member": rng.random(PEOPLE) < 0.4,
            "plan": pandas.Categorical(rng.choice(list("abcd"), PEOPLE)),
        }
    )
    worth = table["city"].map({"paris": 1.0, "rome": -1.0, "oslo": 0.3}).to_numpy()
    worth = worth + table["plan"].astype(str).map({"a": 0.0, "b": 0.5, "c": -0.7, "d": 1.0}).to_numpy()
    scores = [table[f"score{k}"].to_numpy() for k in range(5)]
    bent = np.sin(scores[1]) + 0.2 * scores[2] * scores[3] - 0.3 * np.abs(scores[4])
    plain = 0.05 * (table["age"].to_numpy() - 45) + 2e-5 * table["income"].to_numpy()
    joint = 0.4 * scores[0] * (table["member"].to_numpy() - 0.5)
    return table, worth + bent + plain + joint + 0.3 * rng.normal(size=PEOPLE)


def trained(row: str, seed: int) -> tuple[Any, Any]:
    """Return the fitted pipeline, and the frame it was trained on."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    table, worth = people(seed)
    prepared = make_column_transformer(
        (StandardScaler(), ["age", *NUMBERS]), (OneHotEncoder(), ["city", "plan"]), remainder="passthrough"
    )
    kind, _, units = row.partition(":")
    if kind in KINDS:
        model = Ridge() if kind == "linear" else LogisticRegression()
    else:
        network = MLPRegressor if kind == "regressor" else MLPClassifier
        model = network(hidden_layer_sizes=(12,), activation=units, random_state=seed, max_iter=300)
    if kind in ("linear", "regressor"):
        answers = worth
    else:
        answers = np.digitize(worth, np.quantile(worth, [1 / 3, 2 / 3] if kind == "softmax" else [0.5]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever weights it has are the truth
        return make_pipeline(prepared, model).fit(table, answers), table


class Admissible:
    """A pipeline that takes only rows that its users could have, and counts them."""

    def __init__(self, model: Any, table: Any) -> None:
        self._ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
        self._table, self.rows = table, 0

    def __call__(self, rows: Any) -> Any:
        assert list(rows.columns) == list(self._table.columns)
        assert (rows.dtypes == self._table.dtypes).all()
        for name in ("city", "plan", "member"):
            assert set(rows[name]) <= set(self._table[name])
        self.rows += len(rows)
        answers = self._ask(rows)
        return answers[:, 1] if answers.ndim == 2 and answers.shape[1] == 2 else answers


def measure(row: str, first: int, seeds: int, deadline: float | None) -> None:
    """Print one line of the table, and what failed below it."""
    recovered, errors, asked, seconds, told = 0, [], [], [], []
    for seed in range(first, first + seeds):
        model, table = trained(row, seed)
        target = Admissible(model, table)
        began = time.process_time()
        result = unweave.recover(target, examples=table, deadline=deadline)
        seconds.append(time.process_time() - began)
        assert target.rows == result.queries
        asked.append(result.queries)
        if result.status.is_recovered:
            recovered += 1
            truth = np.asarray(target(table)).reshape(len(table), -1)
            errors.append(float(np.abs(result.network(table) - truth).max()))
        else:
            told.append(f"    seed {seed}: {result.status.name}: {result.message}")
    worst = f"{max(errors):.1e}" if errors else "-"
    print(
        f"| {row} | {recovered} of {seeds} | {worst} | {np.median(asked):,.0f}, {max(asked):,} | "
        f"{np.median(seconds):.1f}, {max(seconds):.1f} |",
        *told,
        sep="\n",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--deadline", type=float)
    options = parser.parse_args()
    print("| pipeline | recovered | error on the data | rows asked, all admissible | CPU s |")
    print("|---|---|---|---|---|")
    for row in options.rows.split(","):
        measure(row, options.first, options.seeds, options.deadline)


if __name__ == "__main__":
    main()
