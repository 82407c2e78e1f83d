"""scikit-learn's ``MLPClassifier()`` and ``MLPRegressor()`` as they are, through their answers alone.

100 ReLU units, trained on the data that scikit-learn brings along, nothing scaled; asked through
``predict_proba`` or ``predict`` in float64, nothing told. "examples": the training rows are given as typical
inputs. The seed is the model's ``random_state``. Trained units that are dead wherever they are asked, or that
weight decay has all but removed, do not come back, so that the function is compared: "error on the data" is
the largest difference of an answer on the training rows. ``--rows`` and ``--json`` as in deep_table.py. Needs
scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import unweave
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell
from named_rows import measure_all, read_rows
from unweave.arrays import Array

LINKS = {"logistic": "sigmoid", "softmax": "softmax", "identity": "identity"}


@dataclass(frozen=True)
class Setting:
    """A data set, and what is given."""

    data: str
    examples: bool = False

    @property
    def name(self) -> str:
        """What --rows calls it, such as iris:examples."""
        return f"{self.data}:examples" if self.examples else self.data


DATA = ("iris", "wine", "breast_cancer", "digits", "diabetes")
SETTINGS = tuple(Setting(data, examples) for examples in (False, True) for data in DATA)


def trained(data: str, seed: int) -> tuple[Any, Array]:
    """The fitted estimator, and the rows it was trained on."""
    from sklearn import datasets, neural_network

    x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    kind = neural_network.MLPRegressor if data == "diabetes" else neural_network.MLPClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever weights it has are the truth
        return kind(random_state=seed).fit(x, y), x


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one data set."""
    say(f"default_models: {setting.name}")
    runs = []
    for seed in seeds:
        model, rows = trained(setting.data, seed)
        link = LINKS[model.out_activation_]
        truth = unweave.Network(model.coefs_, model.intercepts_, ["relu", link])
        target = model.predict if setting.data == "diabetes" else model.predict_proba

        def figures(
            result: unweave.Recovery, truth: unweave.Network = truth, rows: Array = rows
        ) -> dict[str, Any]:
            found = result.network
            error = None if found is None else float(np.abs(found(rows) - truth(rows)).max())
            return {"error": error, "status": result.status.name, "units": found and found.hidden[0]}

        given = {"examples": rows} if setting.examples else {}
        run = run_recovery(truth, seed, target=target, input_dim=truth.n_inputs, extra=figures, **given)
        say(f"  {run.extra}")
        runs.append(run)
    status = [run.extra.get("status") for run in runs]
    units = [run.extra["units"] for run in runs if run.extra.get("units") is not None]
    return summarise(
        setting.name,
        runs,
        ambiguous=status.count("RECOVERED_UP_TO_AMBIGUITY"),
        units=f"{min(units)} to {max(units)}" if units else None,
        error=max((run.extra["error"] for run in runs if run.extra.get("error") is not None), default=None),
        failed=[
            run.seed
            for run in runs
            if run.extra.get("status") not in ("RECOVERED", "RECOVERED_UP_TO_AMBIGUITY")
        ],
    )


COLUMNS = {
    **{key: COMMON[key] for key in ("setting", "seeds", "recovered")},
    "ambiguous": "up to ambiguity",
    "units": "units",
    "error": "worst error on the data",
    "queries_per_parameter": COMMON["queries_per_parameter"],
    "cpu_seconds": COMMON["cpu_seconds"],
    "failed": "seeds not recovered",
}


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:5", "iris only, 1 seed")
    arguments, settings = read_rows(options, SETTINGS, [SETTINGS[0]], argv)
    rows = measure_all(settings, measure, seeds_of(arguments, 5, 1), arguments.json)
    tell(rows, COLUMNS)
    return rows


if __name__ == "__main__":
    main()
