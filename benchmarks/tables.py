"""Estimators on the tables that scikit-learn brings along, beside its own.

Five folds, shuffled with the seed (classes spread evenly). Regression: R^2 of ``NetworkRegressor``,
``RidgeCV`` (13 ridges) and ``MLPRegressor``, the classes' numbers as answers where a table has classes
(digits: one column per class). Classification: log loss and accuracy of ``NetworkClassifier``,
``LogisticRegression`` and ``MLPClassifier``. All inputs are standardized; scikit-learn's estimators have
their defaults otherwise (LogisticRegression: max_iter=2000). "within": whether ours is within one standard
error, over the folds, of the best of the others. ``--rows`` chooses, e.g.
diabetes:regression,digits:classes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness import Row, parser, say, seeds_of, tell
from named_rows import measure_all, read_rows
from unweave.arrays import Array

FOLDS = 5
COLUMNS = {
    "setting": "table",
    "seeds": "seeds",
    "measure": "measure",
    "ours": "unweave",
    "linear": "ridge / logistic",
    "mlp": "MLP",
    "error": "standard error",
    "within": "within",
    "wins": "wins",
    "accuracy": "accuracies",
    "cpu_seconds": "CPU s per fit",
}


@dataclass(frozen=True)
class Setting:
    """A table and what is asked of it."""

    data: str
    task: str

    @property
    def name(self) -> str:
        """What --rows calls it."""
        return f"{self.data}:{self.task}"


SETTINGS = (
    *(Setting(data, "regression") for data in ("diabetes", "cancer", "iris", "wine", "digits", "linnerud")),
    *(Setting(data, "classes") for data in ("cancer", "iris", "wine", "digits")),
)
QUICK = Setting("iris", "classes")


def table(setting: Setting) -> tuple[Array, Any]:
    """Return inputs and answers as scikit-learn gives them."""
    from sklearn import datasets

    load = {
        "diabetes": datasets.load_diabetes,
        "cancer": datasets.load_breast_cancer,
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
        "digits": datasets.load_digits,
        "linnerud": datasets.load_linnerud,
    }
    x, y = load[setting.data](return_X_y=True)
    if setting == Setting("digits", "regression"):
        y = np.eye(10)[y]
    return np.asarray(x, dtype=np.float64), y


def estimators(task: str, seed: int) -> dict[str, Any]:
    """Return ours, the linear one and the multilayer perceptron."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from unweave.sklearn import NetworkClassifier, NetworkRegressor

    if task == "regression":
        linear, mlp = RidgeCV(np.logspace(-3, 3, 13)), MLPRegressor(random_state=seed)
        ours: Any = NetworkRegressor(seed=seed)
    else:
        linear, mlp = LogisticRegression(max_iter=2000), MLPClassifier(random_state=seed)
        ours = NetworkClassifier(seed=seed)
    return {
        "ours": ours,
        "linear": make_pipeline(StandardScaler(), linear),
        "mlp": make_pipeline(StandardScaler(), mlp),
    }


def fold_figures(setting: Setting, seed: int, folds: int = FOLDS) -> dict[str, Array]:
    """Return (folds, 3) of each estimator: what is measured (higher is better), accuracy, CPU seconds."""
    from sklearn.metrics import log_loss
    from sklearn.model_selection import KFold, StratifiedKFold

    x, y = table(setting)
    kind = KFold if setting.task == "regression" else StratifiedKFold
    result: dict[str, list[tuple[float, float, float]]] = {}
    for fitted, held in kind(folds, shuffle=True, random_state=seed).split(x, y):
        for name, estimator in estimators(setting.task, seed).items():
            start = time.process_time()
            estimator.fit(x[fitted], y[fitted])
            seconds = time.process_time() - start
            score, measure = float(estimator.score(x[held], y[held])), 0.0
            if setting.task == "classes":
                labels = np.unique(y)
                measure = -float(log_loss(y[held], estimator.predict_proba(x[held]), labels=labels))
            else:
                measure, score = score, np.nan
            result.setdefault(name, []).append((measure, score, seconds))
    return {name: np.array(rows) for name, rows in result.items()}


def measure(setting: Setting, seeds: range, folds: int = FOLDS) -> Row:
    """Return the row of one table."""
    runs: dict[str, list[Array]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            say(f"{setting.name} seed {seed}")
            for name, rows in fold_figures(setting, seed, folds).items():
                runs.setdefault(name, []).append(rows)
    gathered = {name: np.concatenate(rows) for name, rows in runs.items()}
    means = {name: float(rows[:, 0].mean()) for name, rows in gathered.items()}
    others = {name: mean for name, mean in means.items() if name != "ours"}
    best = max(others, key=lambda name: others[name])
    # Folds of one table are compared, so the error is that of the best one's mean over its folds.
    error = float(gathered[best][:, 0].std(ddof=1) / np.sqrt(folds))
    return {
        "setting": setting.name,
        "seeds": len(seeds),
        "measure": "R^2" if setting.task == "regression" else "- log loss",
        **means,
        "error": error,
        "within": means["ours"] >= others[best] - error,
        "wins": means["ours"] > others[best],
        "accuracy": {name: round(float(rows[:, 1].mean()), 4) for name, rows in gathered.items()}
        if setting.task == "classes"
        else None,
        "cpu_seconds": {name: round(float(rows[:, 2].mean()), 2) for name, rows in gathered.items()},
    }


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:1", "the classes of iris only")
    arguments, settings = read_rows(options, SETTINGS, [QUICK], argv)
    rows = measure_all(settings, measure, seeds_of(arguments, 1, 1), arguments.json)
    tell(rows, COLUMNS)
    within, wins = (sum(row[key] for row in rows) for key in ("within", "wins"))
    print(f"within one standard error of the best: {within} of {len(rows)}; wins: {wins}")
    return rows


if __name__ == "__main__":
    main()
