"""Decision trees, boosting and forests of scikit-learn, through their answers alone.

Trained on diabetes and breast cancer as they are (raw columns from 1e-3 to 1e3), asked through ``predict`` or
``predict_proba``; nothing told, or with the training rows as ``examples``. "wrong cells": largest share, over
seeds called recovered, of 100 000 rows in cells between the model's own thresholds (drawn so that every cell
of an input is as likely as any other) on which the answer is not the target's to 1e-9; "wrong data": the same
of the training rows. The seed is the model's ``random_state``. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import unweave
from unweave.arrays import Array

KINDS = ("tree", "boosting", "forest")
DATA = ("diabetes", "breast_cancer")
ROWS = tuple(f"{kind}:{data}:{given}" for kind in KINDS for data in DATA for given in ("examples", "nothing"))
CELL_ROWS = 100_000
EXACT = 1e-9
"""Error relative to the largest answer."""


def trained(kind: str, data: str, seed: int) -> tuple[Any, Array]:
    """Return the fitted estimator, and the rows it was trained on."""
    from sklearn import datasets, ensemble, tree

    x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    what = "Regressor" if data == "diabetes" else "Classifier"
    if kind == "tree":
        model = getattr(tree, f"DecisionTree{what}")(random_state=seed)
    elif kind == "boosting":
        model = getattr(ensemble, f"GradientBoosting{what}")(n_estimators=50, max_depth=3, random_state=seed)
    else:
        model = getattr(ensemble, f"RandomForest{what}")(n_estimators=20, max_depth=4, random_state=seed)
    return model.fit(x, y), x


def thresholds(model: Any, inputs: int) -> list[Array]:
    """Return the model's own thresholds of every input."""
    trees = [model.tree_] if hasattr(model, "tree_") else [each.tree_ for each in np.ravel(model.estimators_)]
    return [
        np.unique(np.concatenate([each.threshold[each.feature == j] for each in trees]))
        for j in range(inputs)
    ]


def cell_rows(model: Any, x: Array, seed: int) -> Array:
    """Return rows in the middle of cells between the model's thresholds; other inputs as in the data."""
    rng = np.random.default_rng(seed)
    rows = x[rng.integers(len(x), size=CELL_ROWS)]
    for feature, known in enumerate(thresholds(model, x.shape[1])):
        if len(known):
            beyond = np.ptp(known) + 1e-3 * np.abs(known).max()
            edges = np.concatenate([[known[0] - beyond], known, [known[-1] + beyond]])
            cell = rng.integers(len(known) + 1, size=CELL_ROWS)
            rows[:, feature] = (edges[cell] + edges[cell + 1]) / 2
    return rows


def wrong_share(model: Any, found: Any, rows: Array) -> float:
    """Return the share of ``rows`` on which the two differ."""
    truth = model.predict_proba(rows)[:, 1] if hasattr(model, "predict_proba") else model.predict(rows)
    off = np.abs(found(rows)[:, 0] - truth)
    return float(np.mean(off > EXACT * np.abs(truth).max()))


def measure(row: str, first: int, seeds: int, deadline: float | None) -> None:
    """Print one line of the table, and what was not recovered below it."""
    kind, data, given = row.split(":")
    recovered, cells, own, partial, asked, seconds, sizes, told = 0, [], [], [], [], [], [], []
    for seed in range(first, first + seeds):
        model, x = trained(kind, data, seed)
        examples = x if given == "examples" else None
        began = time.process_time()
        result = unweave.recover(model, examples=examples, deadline=deadline)
        seconds.append(time.process_time() - began)
        asked.append(result.queries)
        found = result.network
        if found is not None:
            sizes.append(f"{sum(len(each) for each in found.thresholds())}")
            share = wrong_share(model, found, cell_rows(model, x, seed))
        if result.status.is_recovered:
            recovered += 1
            cells.append(share)
            own.append(wrong_share(model, found, x))
        else:
            partial += [] if found is None else [share]
            told.append(f"    seed {seed}: {result.status.name}: {result.message}")
    worst = [f"{max(each):.2g}" if each else "-" for each in (cells, own, partial)]
    print(
        f"| {kind} {data}, {given} | {recovered} of {seeds} | {' | '.join(worst)} | "
        f"{np.median(asked):,.0f}, {max(asked):,} | {np.median(seconds):.1f}, {max(seconds):.1f} | "
        f"{', '.join(sizes)} |",
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
    print(
        "| model, given | recovered | wrong cells | wrong data | wrong cells of partial ones "
        "| rows asked | CPU s | thresholds found |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for row in options.rows.split(","):
        measure(row, options.first, options.seeds, options.deadline)


if __name__ == "__main__":
    main()
