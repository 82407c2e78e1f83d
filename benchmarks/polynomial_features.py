"""Models of scikit-learn on polynomial features of degree two, through their answers alone.

StandardScaler, PolynomialFeatures(2) and a linear, logistic, softmax or Poisson model, trained on bundled
data, a random half of the rows per seed. The data's rows are given as ``examples``, nothing else is told.
"float32": answers rounded to single precision. "error on the data": largest difference of an answer on all
rows, relative to the largest answer. Rows asked are shown per coefficient. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import unweave
from unweave.arrays import Array

ROWS = tuple(
    f"{kind}{precision}"
    for precision in ("", ":float32")
    for kind in (
        "linear:diabetes",
        "logistic:breast_cancer",
        "softmax:iris",
        "softmax:wine",
        "poisson:diabetes",
    )
)
MOST_COLUMNS = 13  # of breast cancer, whose thirty would have more coefficients than rows


def trained(row: str, seed: int) -> tuple[Callable[[Array], Array], Array]:
    """Return a model's answers, and the rows of its data."""
    from sklearn import datasets
    from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    kind, data, *precision = row.split(":")
    x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    x = x[:, :MOST_COLUMNS]
    model: Any = {"linear": Ridge(), "poisson": PoissonRegressor()}.get(kind, LogisticRegression())
    half = np.random.default_rng(seed).permutation(len(x))[: len(x) // 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever weights it has are the truth
        fitted = make_pipeline(StandardScaler(), PolynomialFeatures(2), model).fit(x[half], y[half])

    def answer(rows: Array) -> Array:
        given = fitted.predict_proba(rows) if hasattr(fitted, "predict_proba") else fitted.predict(rows)
        given = given[:, 1:] if given.ndim == 2 and given.shape[1] == 2 else given.reshape(len(rows), -1)
        return np.asarray(given.astype(np.float32) if precision else given)

    return answer, x


def measure(row: str, seeds: range) -> None:
    """Print one line of the table, and what failed below it."""
    recovered, errors, asked, seconds, told = 0, [], [], [], []
    for seed in seeds:
        answer, x = trained(row, seed)
        began = time.process_time()
        result = unweave.recover(answer, input_dim=x.shape[1], examples=x, seed=seed)
        seconds.append(time.process_time() - began)
        truth = answer(x)
        coefficients = (x.shape[1] + 1) * (x.shape[1] + 2) // 2 * truth.shape[1]
        asked.append(result.queries / coefficients)
        if result.status.is_recovered:
            recovered += 1
            errors.append(float(np.abs(result.network(x) - truth).max() / np.abs(truth).max()))
        else:
            told.append(f"    seed {seed}: {result.status.name}: {result.message}")
    worst = f"{max(errors):.1e}" if errors else "-"
    figures = f"{np.median(asked):.1f}, {max(asked):.1f} | {np.median(seconds):.1f}, {max(seconds):.1f}"
    print(f"| {row} | {recovered} of {len(seeds)} | {worst} | {figures} |", *told, sep="\n", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    options = parser.parse_args()
    print("| model | recovered | error on the data | rows per coefficient | CPU s |")
    print("|---|---|---|---|---|")
    for row in options.rows.split(","):
        measure(row, range(options.first, options.first + options.seeds))


if __name__ == "__main__":
    main()
