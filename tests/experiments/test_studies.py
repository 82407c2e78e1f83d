"""Studies: cells that can be stored and measured anywhere, resumed runs, pages."""

from __future__ import annotations

import importlib.util
import json
import re
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from unweave.experiments import EXPERIMENTS
from unweave.experiments.drawing import heat_map
from unweave.experiments.pages import PAGES, page_html, write_pages
from unweave.experiments.stored import ResultFile, cell_key, figures_of, measure_cell, tasks
from unweave.experiments.studies import autoencoders, entangled, pac_bayes, transition
from unweave.experiments.study import Record, grouped
from unweave.experiments.summary import by_source, summaries

ROOT = Path(__file__).parents[2]
STUDIES = {name: item for name, item in EXPERIMENTS.items() if item.study is not None}


@pytest.mark.parametrize("name", STUDIES)
def test_cells_are_plain_distinct_and_seeded(name):
    study = STUDIES[name].study()
    for size in ("quick", "published"):
        cells = list(study.cells(size, range(3)))
        assert len({cell_key(cell) for cell in cells}) == len(cells)
        assert {cell["seed"] for cell in cells} == {0, 1, 2}
        assert [json.loads(json.dumps(cell)) for cell in cells] == cells
    assert len(list(study.cells("published", range(1)))) > len(list(study.cells("quick", range(1)))) - 1


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_rows_name_lines_of_the_source(name):
    assert re.fullmatch(r"L\d+(-\d+)?(, L\d+(-\d+)?)*", EXPERIMENTS[name].origin)


@pytest.fixture(scope="module")
def quick():
    """Records of three cheap studies and a claim, as a store gives them back."""
    names = ("transition", "gradient-table", "pac-bayes-digits", "sign-ambiguity")
    return {
        name: [
            Record(r.cell, json.loads(json.dumps(r.values, default=float)), r.seconds)
            for r in (
                measure_cell(EXPERIMENTS[name], cell)
                for _, cell in tasks([EXPERIMENTS[name]], "quick", range(1))
            )
        ]
        for name in names
    }


def test_every_page_is_written_and_misses_come_first(quick, tmp_path):
    held = {name: list(records) for name, records in quick.items()}
    for record in held["gradient-table"]:
        record.values["gradient"] = record.cell["h"]  # rises with h: the claim fails
    paths = write_pages(tmp_path / "pages", held)
    assert sorted(path.stem for path in paths) == sorted(PAGES.values())
    text = (tmp_path / "pages" / "mathematics.html").read_text()
    assert (
        text.index("What does not agree")
        < text.index("gradient at h = 512")
        < text.index("What was corrected")
    )
    assert "<svg" in text
    assert "src=" not in text
    assert "Every figure that was measured agrees." in (tmp_path / "pages" / "relu.html").read_text()


def test_pages_are_the_same_for_the_same_results(quick):
    (source, items), *_ = by_source(summaries(quick))
    assert page_html(source, items) == page_html(source, items)


def test_missing_cells_are_left_out_not_invented(quick):
    records = quick["transition"]
    kept = [r for r in records if r.cell["outputs"] == 2]
    names = {figure.quantity for figure in figures_of(EXPERIMENTS["transition"], kept)}
    assert names
    assert all("m_L = 2" in name for name in names)


def test_a_store_gives_back_what_was_measured(tmp_path):
    file = ResultFile(tmp_path / "results.jsonl")
    cells = [cell for _, cell in tasks([EXPERIMENTS["transition"]], "quick", range(2))]
    for cell in cells[:3]:
        file.append("transition", Record(cell, {"span": 0.123456789, "worst": float("inf")}, 1.0))
    wanted = [("transition", cell) for cell in cells]
    assert file.missing(wanted) == wanted[3:]
    first = file.of(wanted)["transition"][0]
    assert first.values == {"span": 0.12346, "worst": None}
    assert first.cell == cells[0]


def test_groups_keep_their_order():
    records = [Record({"a": a, "seed": s}, {}) for s in (0, 1) for a in (3, 1)]
    assert [key for key, _ in grouped(records, "a").items()] == [(3,), (1,)]


def test_the_page_of_the_documentation_is_that_of_the_stored_results():
    spec = importlib.util.spec_from_file_location("results", ROOT / "docs" / "results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.page() == (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")


def test_an_oracle_fills_every_layer_where_a_direction_is_no_unit_s():
    truth = entangled.deep_network(np.random.default_rng(0), 12, [12, 5, 4, 3], "tanh", 0.05)
    inner = np.concatenate(entangled.true_directions(truth)[1:-1])
    inner[2] = inner[7]  # a unit of the second layer is missing, one of the third was found twice
    labels = entangled._oracle(truth)(inner)
    assert sorted(labels) == [2] * 5 + [3] * 4
    assert labels[[0, 1, 3, 4]].tolist() == [2, 2, 2, 2]


def test_pages_hold_no_formula_that_nobody_sets():
    results = ResultFile(ROOT / "docs" / "results.jsonl").results()
    kept = {name: results[name] for name in ("completion-curves", "transition", "shift-bounds")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # panels too narrow for their numbers
        pages = [page_html(source, items) for source, items in by_source(summaries(kept))]
    assert not any("mathdefault" in page for page in pages)
    assert any("<svg" in page for page in pages)


@pytest.mark.parametrize("contraction", [0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("layers", [3, 4])
def test_hidden_layers_never_widen(layers, contraction):
    for units in range(100, 400, 7):
        widths = transition.widths_of(units, 5, layers, contraction)
        assert sum(widths) == units
        assert widths[:-1] == sorted(widths[:-1], reverse=True)


def test_single_precision_gives_the_entangled_weights_of_double(monkeypatch):
    cell = {"D": 16, "outputs": 4, "m": 30, "L": 3, "c": 0.5, "R": 0.01, "starts": 240, "seed": 1000}
    single = transition.measure_entangled(cell)
    options = transition.PublishedDeepOptions
    monkeypatch.setattr(
        transition, "PublishedDeepOptions", lambda **given: options(**{**given, "single_precision": False})
    )
    assert single == transition.measure_entangled(cell)


def test_networks_without_biases_cannot_tell_centers_on_one_ray_but_by_angle():
    accuracy = {}
    for constant in (0.0, 5.0):
        cell = {"data": "synthetic", "n": 20, "a": 2, "depth": 2, "width": 100, "cluster": 0, "seed": 1000}
        accuracy[constant] = pac_bayes.measure_trained({**cell, "constant": constant, "rate": 3e-3})[
            "accuracy"
        ]
    assert accuracy[5.0] == 1.0
    assert accuracy[0.0] < 0.99


def test_trainings_of_one_stack_are_those_made_alone():
    cell = {
        "method": "ADAM 0.9",
        "width": 8,
        "steps": 60,
        "matrices": 2,
        "pixels": 5,
        "batch": 50,
        "seed": 1000,
    }
    together = autoencoders.train(cell, [1e-3, 1e-2])
    alone = [autoencoders.train(cell, [step])[0] for step in (1e-3, 1e-2)]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one["train"], other["train"], rtol=1e-4)


def test_a_step_that_is_too_long_loses_against_any_other():
    cell = {"method": "NAG 0.99", "width": 8, "steps": 100, "seed": 1000}
    assert autoencoders.train(cell, [1e3])[0]["train"][-1] == np.inf


def test_long_labels_of_a_heat_map_do_not_touch():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3, 2), dpi=100, layout="constrained")
    axes = figure.subplots()
    heat_map(axes, {(x, 1): 1.0 for x in (0.5, 0.75, 1, 1.25, 1.5, 1.75, 1.875, 1.9375, 2)}, "", "", "")
    figure.draw_without_rendering()
    boxes = [label.get_tightbbox() for label in axes.get_xticklabels()]
    turned = {label.get_rotation() for label in axes.get_xticklabels()}
    assert turned == {45.0}
    assert all(left.x0 < right.x0 for left, right in pairwise(boxes))
