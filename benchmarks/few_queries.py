"""How few queries: one smooth hidden layer in float64, with and without being told width and activation.

    random     (D, m) = (20, 40), (20, 60), (50, 100), one output: unit weights, biases in [-1/2, 1/2], outer
               weights of random sign and size 1/2 to 2 ("spec"), or norms 0.6 to 1.6, biases N(0, 1/4), outer
               weights normal ("generic": some neurons are hundreds of times weaker than others); 10 seeds
    wide       784-32-10 and 784-128-10, generic, nothing told; 3 seeds
    digits     the same sizes, trained by scikit-learn on digits scaled up to 28 x 28 pixels, through predict
               and told some of the pictures, nothing else; 3 seeds

"predicted" is the estimate of `unweave.plan`, made before the run, over what was spent.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import unweave
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell
from planted import LAWS, planted_network
from unweave.arrays import Array

PIXELS, PICTURE = 28, 8
ITERATIONS = 60


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    law: str
    inputs: int
    width: int
    outputs: int
    told: bool
    seeds: int

    @property
    def name(self) -> str:
        """As it stands in the table."""
        told = "told" if self.told else "not told"
        return f"{self.law}, {self.inputs}-{self.width}-{self.outputs}, {told}"


SETTINGS = (
    *(
        Setting(law, inputs, width, 1, told, 10)
        for inputs, width in ((20, 40), (20, 60), (50, 100))
        for law in ("spec", "generic")
        for told in (False, True)
    ),
    *(Setting(law, PIXELS**2, width, 10, False, 3) for law in ("generic", "digits") for width in (32, 128)),
)
QUICK = (Setting("spec", 12, 16, 1, True, 1),)


def planted(setting: Setting, seed: int) -> unweave.Network:
    """A network drawn by the setting's law."""
    if setting.law == "spec":
        layers = [setting.inputs, setting.width, setting.outputs]
        return unweave.random_network(layers, seed=seed, outer="signed", norms=(1, 1), bias=0.5)
    widths = (setting.width, setting.outputs)
    return planted_network(setting.inputs, widths, LAWS[setting.law], seed, "tanh", "identity")


@lru_cache(maxsize=1)
def pictures() -> tuple[Array, Array]:
    """Digits of 28 x 28 pixels in [0, 1], and their classes as unit vectors."""
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = [zoom(image / 16.0, PIXELS / PICTURE, order=1) for image in digits.images]
    return np.stack(images).reshape(len(images), -1), np.eye(10)[digits.target]


def trained(width: int, seed: int) -> tuple[unweave.Network, Callable[[Array], Array]]:
    """A network trained on the pictures, and its predict."""
    from sklearn.neural_network import MLPRegressor

    model = MLPRegressor(
        hidden_layer_sizes=(width,), activation="tanh", random_state=seed, max_iter=ITERATIONS
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it could go on
        model.fit(*pictures())
    return unweave.Network(model.coefs_, model.intercepts_, ["tanh", "identity"]), model.predict


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one setting."""
    say(f"few_queries: {setting.name}")
    told: dict[str, Any] = {"hidden": [setting.width], "activation": "tanh"} if setting.told else {}
    runs, predictions = [], []
    for seed in seeds:
        target: Callable[[Array], Array] | None = None
        where: dict[str, Any] = {}
        if setting.law == "digits":
            truth, target = trained(setting.width, seed)
            where = {"input_dim": setting.inputs, "examples": pictures()[0]}
        else:
            truth = planted(setting, seed)
        run = run_recovery(truth, seed, target=target, **told, **where)
        runs.append(run)
        predictions.append(predicted(setting) / (run.queries_per_parameter * truth.n_parameters))
    return summarise(
        setting.name,
        runs,
        law=setting.law,
        inputs=setting.inputs,
        width=setting.width,
        worst_queries_per_parameter=max(run.queries_per_parameter for run in runs),
        predicted=float(np.median(predictions)),
    )


def predicted(setting: Setting) -> int:
    """Rows that a method without look and verification is expected to take."""
    from unweave.recovery.choose import method_named
    from unweave.search import Question

    question = Question(
        setting.inputs, setting.outputs, (setting.width,), setting.told, one_activation=setting.told
    )
    return method_named("smooth").cost(question).rows


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    options = parser(__doc__, "0:10, and 0:3 for 784 inputs", "12-16-1 only, 1 seed")
    options.add_argument("--only", default="", metavar="WORD", help="rows whose name contains this")
    arguments = options.parse_args(argv)
    settings = QUICK if arguments.quick else SETTINGS
    rows = []
    for setting in settings:
        if arguments.only in setting.name:
            rows.append(measure(setting, seeds_of(arguments, setting.seeds, setting.seeds)))
    columns = {
        **COMMON,
        "worst_queries_per_parameter": "most queries per parameter",
        "predicted": "predicted / spent",
    }
    tell(rows, columns, arguments.json)
    return rows


if __name__ == "__main__":
    main()
