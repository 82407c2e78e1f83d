"""ADAM, RMSProp and NAG on autoencoders: [mathematics] secs. 5.6, 5.E and 5.F.

The source trains weight-tied ReLU autoencoders on MNIST, which this library does not carry: here it is
the digits that scikit-learn bundles, 8 x 8 pixels. Steps are tuned as the source does it, on a logarithmic
grid that grows where the best is at its edge, by the training loss at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.experiments.drawing import curves
from unweave.experiments.experiment import Figure, at_least, at_most, shown
from unweave.experiments.study import Cell, Picture, Records, Size, Study, Values, grouped
from unweave.optimize import (
    Adam,
    MiniBatches,
    NesterovGradient,
    RMSProp,
    TiedAutoencoder,
    corrected,
    curvature_range,
)
from unweave.optimize.first_order import FirstOrderMethod, State, Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_TRAIN = 300
_SHORT = 250  # steps after which gradients are asked to have fallen
_LONG = 100_000  # steps after which claims about the end of training are decided
_METHODS: dict[str, Callable[[Step, float], FirstOrderMethod]] = {
    "ADAM 0.9": lambda step, shift: Adam(corrected(step, 0.9, 0.999), 0.9, 0.999, shift),
    "ADAM 0.99": lambda step, shift: Adam(corrected(step, 0.99, 0.999), 0.99, 0.999, shift),
    "RMSProp": lambda step, shift: RMSProp(step, 0.9, shift),
    "NAG 0.9": lambda step, shift: NesterovGradient(step, 0.9),
    "NAG 0.99": lambda step, shift: NesterovGradient(step, 0.99),
}
_STEPS = {"ADAM": (1e-4, 3e-4, 1e-3), "RMSProp": (3e-5, 1e-4, 3e-4), "NAG": (1e-3, 3e-3, 1e-2)}
_SHIFTS = {"ADAM": 1e-8, "RMSProp": 1e-10, "NAG": 0.0}


def digits(pixels: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Images to learn and to test, ``pixels`` to a side, values 0 to 1."""
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    images = load_digits().images / 16
    if pixels != images.shape[1]:
        images = np.array([zoom(image, pixels / images.shape[1], order=1) for image in images])
    rows = images.reshape(len(images), -1)[rng.permutation(len(images))]
    return rows[:_TRAIN], rows[_TRAIN : 3 * _TRAIN]


def train(cell: Cell, steps: Sequence[float], curvature: bool = False) -> list[dict[str, list[float]]]:
    """Trainings with several steps at once: losses on images to learn and to test and the gradient's norm.

    They go on as one stack in single precision, which is what the source's tool computes in; records are
    taken in double precision.
    """
    rng = np.random.default_rng([int(cell["seed"]), 1])
    images, tests = digits(int(cell.get("pixels", 8)), rng)
    model = TiedAutoencoder(images, int(cell["width"]), int(cell.get("matrices", 1)))
    start = _single(np.tile(model.start(rng), (len(steps), 1)))
    name, count = str(cell["method"]), int(cell["steps"])
    shift = float(cell.get("shift", _SHIFTS[name.split()[0]]))
    times = {round(float(time)) for time in np.geomspace(10, count, 10)} - {count} | {count - 1}
    names = ("steps", "train", "test", "gradient", "lowest")
    records: list[dict[str, list[float]]] = [{key: [] for key in names} for _ in steps]
    rows, batch = _single(images), int(cell.get("batch", 0))

    def gradient(x: Array, chosen: IntArray | None = None) -> Array:
        return model.gradient(x, rows if chosen is None else rows[chosen])

    slope = MiniBatches(gradient, len(rows), batch, int(cell["seed"])) if batch else gradient
    method = _METHODS[name](_single(steps)[:, None], shift)
    state = method.begin(start)
    with np.errstate(over="ignore", invalid="ignore"):  # a step that is too long ends at infinity
        for _ in range(count):
            if state.time in times:
                _record(model, tests, state, records, curvature)
            state = method.step(state, slope(state.x))
    return records


def _single(values: Array | Sequence[float]) -> Array:
    """As float32, which arithmetic then keeps."""
    return cast(Array, np.asarray(values, dtype=np.float32))


def _record(
    model: TiedAutoencoder, tests: Array, state: State, records: list[dict[str, list[float]]], curved: bool
) -> None:
    x = state.x.astype(np.float64)
    losses, on_tests = model.losses(x), model.losses(x, tests)
    norms = np.linalg.norm(model.gradient(x), axis=1)
    for index, record in enumerate(records):
        record["steps"].append(state.time)
        record["train"].append(float(np.nan_to_num(losses[index], nan=np.inf)))
        record["test"].append(float(on_tests[index]))
        record["gradient"].append(float(norms[index]))
        if curved:
            look = np.random.default_rng(0)
            record["lowest"].append(curvature_range(model.hessian_product, x[index], look, 60)[0])


def tuned(cell: Cell, curvature: bool = False) -> Values:
    """The training with the step of least training loss at the end, the grid moved while it is at an edge."""
    kind = str(cell["method"]).split()[0]
    longer = 10 if int(cell["steps"]) < _LONG and kind != "NAG" else 1  # few steps must reach as far
    grid = [longer * step for step in _STEPS[kind]]
    held = dict(zip(grid, train(cell, grid), strict=True))
    for _ in range(4):
        best = min(held, key=lambda step: held[step]["train"][-1])
        if best not in (min(held), max(held)):
            break
        further = best * 3 if best == max(held) else best / 3
        held[further] = train(cell, [further])[0]
    best = min(held, key=lambda step: held[step]["train"][-1])
    records = train(cell, [best], curvature)[0] if curvature else held[best]
    return {"step": best, **{name: values for name, values in records.items() if values}}


def last(records: Records, name: str) -> float:
    """Mean over records of the last value of a series."""
    return float(np.mean([record.values[name][-1] for record in records]))


# Figs. 5.6.1 and 5.E.1
def _shift_cells(size: Size, seeds: range) -> Iterator[Cell]:
    methods, shifts, width, steps = ["ADAM 0.9", "RMSProp"], [1e-8, 1e-4, 1e-2, 1.0], 50, 600
    if size == "quick":
        methods, shifts, width, steps = ["ADAM 0.9"], [1e-8, 1e-2], 20, 150
    for seed in seeds:
        for method in methods:
            for shift in shifts:
                yield {"method": method, "shift": shift, "width": width, "steps": steps, "seed": seed}


def _shift_figures(records: Records) -> Iterator[Figure]:
    for (method,), group in grouped(records, "method").items():
        by = {float(shift): held for (shift,), held in grouped(group, "shift").items()}
        least = min(by)
        ends = {
            name: {shift: last(held, name) for shift, held in by.items()}
            for name in ("gradient", "test", "train")
        }
        larger = [shift for shift in by if shift > least]
        if not larger:
            continue
        if method.startswith("ADAM"):
            yield at_most(
                f"{method}: least gradient with a larger shift over that with {least:g}",
                0.99,
                min(ends["gradient"][shift] for shift in larger) / ends["gradient"][least],
                "a larger shift helps to a smaller gradient: by a hundredth at least",
                origin="stated, L2688",
            )
        for name, words in (("test", "lower test losses"), ("train", "can hurt training losses")):
            ratio = min(ends[name][shift] for shift in larger) / ends[name][least]
            yield shown(f"{method}: {name} loss, the same ratio", words, ratio, origin="stated, L2688")


def _others(records: Records, key: str) -> list[str]:
    """Parts of the cells, besides ``key``, that make a row of panels each."""
    known = ("method", "matrices", "pixels", "batch")
    return [name for name in known if name != key and name in records[0].cell]


def _in_words(parts: Cell) -> str:
    """Method and shape of a training, as far as they are told."""
    words = [str(parts["method"])] if "method" in parts else []
    if "matrices" in parts:
        words.append(f"{2 * int(parts['matrices']) - 1} hidden layers")
    if "pixels" in parts:
        words.append(f"{parts['pixels']} x {parts['pixels']} pixels")
    if "batch" in parts:
        words.append("mini-batches" if parts["batch"] else "full batch")
    return ", ".join(words)


def _panels(records: Records, key: str) -> int:
    return len(grouped(records, *_others(records, key)))


def _paint_training(drawing: Drawing, records: Records, key: str) -> None:
    curved = "lowest" in records[0].values
    panels = ["lowest", "gradient"] if curved else ["train", "test", "gradient"]
    titles = {
        "train": "training loss",
        "test": "test loss",
        "gradient": "|gradient|",
        "lowest": "lowest eigenvalue",
    }
    others = _others(records, key)
    groups = grouped(records, *others)
    axes = drawing.subplots(len(groups), len(panels), squeeze=False)
    for row, (values, group) in enumerate(groups.items()):
        heading = _in_words(dict(zip(others, values, strict=True)))
        for column, name in enumerate(panels):
            lines = {}
            for (value,), held in grouped(group, key).items():
                length = min(len(r.values[name]) for r in held)
                lines[f"{value}"] = (
                    held[0].values["steps"][:length],
                    np.array([r.values[name][:length] for r in held]).T,
                )
            title = f"{heading}\n{titles[name]}" if column == 0 else titles[name]
            curves(
                axes[row, column],
                lines,
                "steps" if row == len(groups) - 1 else "",
                title,
                log=name != "lowest",
                log_x=True,
                legend=column == row == 0,
            )


ADAPTIVE_SHIFT = Study(
    _shift_cells,
    tuned,
    _shift_figures,
    (
        Picture(
            "Losses and gradient by the shift",
            "In place of Figures 5.6.1 and 5.E.1 (MNIST). The step is tuned for every shift.",
            lambda drawing, records: _paint_training(drawing, records, "shift"),
            rows=lambda records: _panels(records, "shift"),
        ),
    ),
)


# Fig. 5.6.2
def _hessian_cells(size: Size, seeds: range) -> Iterator[Cell]:
    methods, width, steps = ["ADAM 0.9", "RMSProp", "NAG 0.9"], 30, 400
    if size == "quick":
        methods, width, steps = ["NAG 0.9", "ADAM 0.9"], 8, 120
    for seed in seeds:
        for method in methods:
            yield {"method": method, "width": width, "steps": steps, "seed": seed}


def _hessian_figures(records: Records) -> Iterator[Figure]:
    for (method,), group in grouped(records, "method").items():
        series = np.mean([r.values["lowest"] for r in group], axis=0)
        if method.startswith("NAG"):
            yield at_least(
                f"{method}: lowest eigenvalue at the end less that at the first record",
                0.0,
                float(series[-1] - series[0]),
                "it rises along training",
                origin="stated, L2699",
            )
        yield shown(f"{method}: lowest eigenvalue at the end", "-", float(series[-1]))
        norms = np.mean([r.values["gradient"] for r in group], axis=0)
        ratio = float(norms[-1] / norms[0])
        yield Figure(
            f"{method}: gradient at the end over that at the first record",
            1.0,
            ratio,
            bool(ratio <= 1.0) if int(group[0].cell["steps"]) >= _SHORT else None,
            "it falls along training",
            "<=",
            origin="stated, L2699",
        )


HESSIAN_ALONG = Study(
    _hessian_cells,
    lambda cell: tuned(cell, curvature=True),
    _hessian_figures,
    (
        Picture(
            "Lowest eigenvalue of the Hessian and gradient along training",
            "In place of Figure 5.6.2 (MNIST).",
            lambda drawing, records: _paint_training(drawing, records, "method"),
            rows=lambda records: _panels(records, "method"),
        ),
    ),
)


# Figs. 5.6.3, 5.6.4 and 5.F.1 to 5.F.6
def _training_cells(size: Size, seeds: range) -> Iterator[Cell]:
    # Matrices l (2 l - 1 hidden layers), pixels to a side, mini-batch (0: all images).
    shapes, width, steps = [(1, 8, 0), (2, 8, 0), (2, 5, 0), (1, 8, 100), (3, 8, 100)], 50, 100_000
    methods = list(_METHODS)
    if size == "quick":
        shapes, width, steps, methods = [(2, 5, 0)], 20, 200, ["ADAM 0.9", "ADAM 0.99"]
    for seed in seeds:
        for matrices, pixels, batch in shapes:
            for method in methods:
                yield {
                    "method": method,
                    "matrices": matrices,
                    "pixels": pixels,
                    "batch": batch,
                    "width": width,
                    "steps": steps,
                    "seed": seed,
                }


def _training_figures(records: Records) -> Iterator[Figure]:
    for (matrices, pixels, batch), group in grouped(records, "matrices", "pixels", "batch").items():
        by = {str(method): held for (method,), held in grouped(group, "method").items()}
        name = _in_words({"matrices": matrices, "pixels": pixels, "batch": batch})
        if {"ADAM 0.9", "ADAM 0.99"} <= set(by):
            ratio = last(by["ADAM 0.99"], "train") / last(by["ADAM 0.9"], "train")
            yield Figure(
                f"{name}: training loss of ADAM, beta_1 = 0.99 over 0.9",
                1.0,
                ratio,
                bool(ratio <= 1.0) if int(group[0].cell["steps"]) >= _LONG else None,
                "lower with beta_1 closer to one",
                "<=",
                "on digits",
                "stated, L2714",
            )
            yield shown(
                f"{name}: test loss, the same ratio",
                "below 1",
                last(by["ADAM 0.99"], "test") / last(by["ADAM 0.9"], "test"),
            )
        for method, held in by.items():
            fall = np.mean([r.values["train"][-1] / r.values["train"][0] for r in held])
            yield at_most(
                f"{name}, {method}: training loss at the end over that at the first record",
                0.9,
                float(fall),
                "it is learned",
                origin="derived",
            )


AUTOENCODER_TRAINING = Study(
    _training_cells,
    tuned,
    _training_figures,
    (
        Picture(
            "Losses and gradient of five methods",
            "In place of Figures 5.6.3, 5.6.4 and 5.F.1 to 5.F.6 (MNIST).",
            lambda drawing, records: _paint_training(drawing, records, "method"),
            rows=lambda records: _panels(records, "method"),
        ),
    ),
)
