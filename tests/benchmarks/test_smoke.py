"""Every benchmark runs at its smallest setting and returns rows of the agreed shape."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import unweave

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NETWORKS = (
    "shallow_table",
    "dissertation_grid",
    "large",
    "generic",
    "near_limit",
    "few_neurons",
    "scaled_inputs",
    "baseline",
    "deep_published",
)
SUBSPACES = ("restarts", "rank_one", "gauss_newton")
SMALLER = {
    "shallow_table": {"SETTINGS": ((10, 25),)},
    "generic": {"INPUTS": 8, "WIDTH": 6},
    "scaled_inputs": {"INPUTS": 8, "WIDTH": 6},
    "few_neurons": {"SETTINGS": ((30, 4, 1),)},
    "large": {"QUICK": (10, 25), "FRESH_POINTS": 20_001},
    "near_limit": {"INPUTS": 10, "QUICK": (25,)},
    "baseline": {"QUICK": (5, 6), "RATES": {"SGD": (1e-3, 1e-2), "Adam": (1e-3, 1e-2)}},
    "rank_one": {"QUICK": (15, 60)},
}
"""What is made smaller than --quick makes it: the code is the figure's own, the sizes are a test's."""


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def harness(load) -> ModuleType:
    return load("harness")


def test_every_script_is_tested_and_listed():
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - {"harness", "planted"}
    assert scripts == {*NETWORKS, *SUBSPACES}
    readme = (BENCHMARKS / "README.md").read_text()
    assert all(f"benchmarks/{name}.py" in readme for name in scripts)


@pytest.mark.parametrize("name", [*NETWORKS, *SUBSPACES])
def test_smallest_setting(name, load, harness, tmp_path, capsys, monkeypatch):
    script = load(name)
    for constant, value in SMALLER.get(name, {}).items():
        monkeypatch.setattr(script, constant, value)
    file = tmp_path / "rows.json"
    # Seed 1000: development stays away from the seeds of the figures.
    rows = script.main(["--quick", "--seeds", "1000:1001", "--json", str(file)])

    for row in rows:
        assert harness.COMMON.keys() <= row.keys()
        assert row["seeds"] == 1
        assert row["recovered"] in (0, 1)
        assert row["seconds"] > 0
        assert row["peak_rss_mb"] > 1
    ours = rows[0]
    assert (ours["recovered"], ours["wrong"]) == (1, 0)
    assert ours["worst_parameter_error"] <= 1e-8
    if name in NETWORKS:
        assert ours["worst_fresh_error"] <= 1e-9
        assert ours["queries"] > ours["queries_per_parameter"] > 0
        assert sum(ours["stage_seconds"].values()) <= ours["seconds"]

    written = json.loads(file.read_text())
    assert sorted(row["setting"] for row in written) == sorted(row["setting"] for row in rows)
    out = capsys.readouterr().out
    assert all(f"| {row['setting']} |" in out for row in rows)


def test_grid_skips_what_is_done(load, tmp_path, monkeypatch):
    grid = load("dissertation_grid")
    monkeypatch.setattr(grid, "BETAS", (0.5, 0.75))
    file = tmp_path / "grid.json"
    arguments = ["--quick", "--seeds", "1000:1001", "--json", str(file)]
    first = grid.main(arguments)
    kept = json.loads(file.read_text())
    file.write_text(json.dumps(kept[:1]))
    measured = []
    measure = grid.measure
    monkeypatch.setattr(grid, "measure", lambda *cell: measured.append(cell[:2]) or measure(*cell))
    second = grid.main(arguments)
    assert measured == [(20, 0.75)]
    assert [row["setting"] for row in second] == [row["setting"] for row in first]


def test_grid_widths(load):
    grid = load("dissertation_grid")
    assert [grid.width_of(20, beta) for beta in grid.BETAS] == [2, 4, 8, 17, 36, 76, 111, 133, 160]
    assert grid.width_of(50, 2.0) == 1000
    assert all(len(seconds) == len(grid.BETAS) for seconds in grid.PUBLISHED_SECONDS.values())


def test_search_never_starts_at_the_answer(load, harness):
    planted = load("planted")
    directions = planted.planted_directions(20, 160, 1000)
    starts = importlib.import_module("unweave.subspace.power_method").uniform_starts(
        160, 20, np.random.default_rng(harness.search_seed(1000))
    )
    # Independent unit vectors in R^20 overlap by 1/sqrt(20) typically; 25 600 pairs stay clear of one.
    assert np.abs(directions @ starts.T).max() < 0.99


def test_failed_run_counts_as_not_recovered(harness):
    truth = unweave.random_network([3, 2, 1], seed=1000)
    run = harness.run_recovery(truth, 1000, hidden=[-1])  # refused by the library
    row = harness.summarise("refused", [run])
    assert (row["recovered"], row["wrong"], row["not_recovered"]) == (0, 0, [1000])
    assert row["worst_parameter_error"] is None
    assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_wrong_certificate_is_counted(harness):
    row = harness.summarise("wrong", [harness.Run(0, True, 0.1, same=False), harness.Run(1, True, 1e-14)])
    assert (row["recovered"], row["wrong"], row["worst_parameter_error"]) == (2, 1, 0.1)


def test_fresh_error_sees_a_moved_weight(harness):
    truth = unweave.random_network([3, 2, 1], seed=1000)
    moved = unweave.Network(truth.weights, [truth.biases[0], truth.biases[1] + 1e-3], truth.activations)
    assert harness.fresh_error(truth, truth, 0, 100) == 0
    largest = np.abs(truth(np.random.default_rng(0).standard_normal((100_000, 3)))).max()
    assert harness.fresh_error(truth, moved, 0, 20_001) == pytest.approx(1e-3 / largest, rel=0.2)


@pytest.mark.parametrize("text", ["3", "3:3", "5:2", "-1:2", "a:b", ""])
def test_bad_seeds_are_refused(text, harness):
    with pytest.raises(argparse.ArgumentTypeError, match="must be A:B"):
        harness.seed_range(text)


def test_scaling_is_undone(load):
    scaled = load("scaled_inputs")
    rng = np.random.default_rng(1000)
    truth = unweave.random_network([20, 5, 1], seed=1000, outer="signed")
    scaling = scaled.Scaling.random(rng)
    first = truth.weights[0] / scaling.scale[:, None]
    seen = unweave.Network(
        [first, truth.weights[1]],
        [truth.biases[0] - scaling.shift @ first, truth.biases[1]],
        truth.activations,
        skip=rng.standard_normal((20, 1)) / scaling.scale[:, None],
    )
    x = rng.standard_normal((50, 20))
    inside = scaling.undo(seen)
    np.testing.assert_allclose(inside(x), seen(scaling.shift + scaling.scale * x), rtol=0, atol=1e-11)
    assert unweave.compare(
        truth, scaling.undo(unweave.Network(seen.weights, seen.biases, seen.activations))
    ).is_same


def test_environment_names_the_version(harness):
    assert unweave.__version__ in harness.environment()
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in harness.environment()
