"""scikit-learn's ``MLPClassifier()`` and ``MLPRegressor()`` as they are, through their answers alone.

100 ReLU units, trained on the data that scikit-learn brings along, nothing scaled; asked through
``predict_proba`` or ``predict`` in float64, nothing told. "examples": the training rows are given as typical
inputs. "torch" and "onnx": the same weights in single precision, asked through torch and onnxruntime; "4dp":
float64 answers with 4 decimals; a number: so many units. The seed is the model's ``random_state``. Trained
units that are dead wherever they are asked, or that weight decay has all but removed, do not come back, so
that the function is compared: "error on the data" is the largest difference of an answer on the training
rows. ``--rows`` and ``--json`` as in deep_table.py. Needs scikit-learn, torch and onnxruntime.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import unweave
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell
from many_inputs import TARGETS
from named_rows import measure_all, read_rows
from unweave.arrays import Array

LINKS = {"logistic": "sigmoid", "softmax": "softmax", "identity": "identity"}


@dataclass(frozen=True)
class Setting:
    """A data set, and what is given."""

    data: str
    examples: bool = False
    runtime: str = "float64"
    units: int = 100

    @property
    def name(self) -> str:
        """What --rows calls it, such as iris:examples or iris:torch:256."""
        given = ["examples"] * self.examples
        runtime = [self.runtime] * (self.runtime != "float64")
        width = [str(self.units)] * (self.units != 100)
        return ":".join([self.data, *given, *runtime, *width])


DATA = ("iris", "wine", "breast_cancer", "digits", "diabetes")
SETTINGS = (
    *(Setting(data, examples) for examples in (False, True) for data in DATA),
    *(
        Setting(data, runtime=runtime, units=units)
        for units in (100, 256)
        for runtime in ("torch", "onnx")
        for data in DATA
    ),
    *(Setting(data, runtime="4dp") for data in DATA),
)


def trained(data: str, units: int, seed: int) -> tuple[Any, Array]:
    """The fitted estimator, and the rows it was trained on."""
    from sklearn import datasets, neural_network

    x, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    kind = neural_network.MLPRegressor if data == "diabetes" else neural_network.MLPClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever weights it has are the truth
        return kind(hidden_layer_sizes=(units,), random_state=seed).fit(x, y), x


def asked(model: Any, runtime: str) -> tuple[unweave.Network, Callable[[Array], Array]]:
    """The model's parameters as they are computed with, and what answers."""
    link = LINKS[model.out_activation_]
    truth = unweave.Network(model.coefs_, model.intercepts_, ["relu", link])
    answer = model.predict if link == "identity" else model.predict_proba
    if runtime == "float64":
        return truth, answer
    if runtime == "4dp":
        return truth, lambda x: np.asarray(np.round(answer(x), 4))
    single = [[part.astype(np.float32) for part in parts] for parts in (model.coefs_, model.intercepts_)]
    truth = unweave.Network(*single, ["relu", link])
    return truth, TARGETS[runtime](truth)


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one data set."""
    say(f"default_models: {setting.name}")
    runs = []
    for seed in seeds:
        model, rows = trained(setting.data, setting.units, seed)
        truth, target = asked(model, setting.runtime)

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
