"""Every benchmark runs at its smallest setting and returns rows of the agreed shape."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

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
    "few_inputs",
    "few_neurons",
    "few_queries",
    "scaled_inputs",
    "baseline",
    "deep_published",
    "deep_table",
    "deep_trained",
    "deep_unknown",
    "deep_relu",
    "relu_any_depth",
    "relu_queries",
    "scale_out",
    "coarse_answers",
    "coarse_kinks",
    "trained_models",
    "linear_models",
    "default_models",
    "not_told",
    "autodiff",
)
SUBSPACES = (
    "audit",
    "file_formats",
    "restarts",
    "rank_one",
    "gauss_newton",
    "relu_baseline",
    "smooth_samples",
    "relu_samples",
    "relu_samples_spectral",
    "quadratic",
    "exact_erm",
    "constructions",
    "certificates",
    "tensor_start",
    "http_throughput",
    "gates",
    "sparse_coding",
    "first_order",
)
TABLES = {
    "signs": ["--rows", "4-20-1:signed"],
    "many_inputs": ["--rows", "relu:300-2-3"],
    "many_outputs": ["--rows", "tanh:6-4-12"],
    "many_units": ["--rows", "tanh:6-20-1"],
    "kinds": ["--case", "hard_tanh:6-4-1"],
    "weak_units": ["--rows", "tanh:6-4-1:1e-3"],
    "tight_budgets": [],
    "mixed_columns": ["--rows", "logistic"],
    "polynomial_features": ["--rows", "softmax:iris", "--seeds", "1"],
    "trees": ["--rows", "tree:breast_cancer:examples"],
    "deep_any_width": ["--rows", "tanh:4-8-6-1"],
    "samples_no_network": ["--first", "1000"],
    "samples_kinds": ["--case", "exact:tanh:4-2-1:20"],
}
"""Scripts that only print a table, and what makes it small."""
SMALLER = {
    "audit": {"DATA": "diabetes", "WIDTH": 3, "BUDGETS": (500, 20_000), "ROWS": (8, 16)},
    "gates": {"STREAMS": 30, "MOMENT_ROWS": 20_000, "POISONED_ROWS": 600, "NOISY_STREAMS": 2},
    "first_order": {"IMAGES": 60, "WIDTH": 5, "STEPS": 40},
    "shallow_table": {"SETTINGS": ((10, 25),)},
    "generic": {"INPUTS": 8, "WIDTH": 6},
    "scaled_inputs": {"INPUTS": 8, "WIDTH": 6},
    "autodiff": {"SETTINGS": (((10, 14, 1), "tanh"),)},
    "few_neurons": {"SETTINGS": ((30, 4, 1),)},
    "large": {"QUICK": (10, 25), "FRESH_POINTS": 20_001},
    "near_limit": {"INPUTS": 10, "QUICK": (25,)},
    "baseline": {"QUICK": (5, 6), "RATES": {"SGD": (1e-3, 1e-2), "Adam": (1e-3, 1e-2)}},
    "rank_one": {"QUICK": (15, 60)},
    "smooth_samples": {"INPUTS": 5, "WIDTHS": (2,), "SAMPLES": 2000},
    "relu_baseline": {"SETTINGS": ((4, 3),), "RATES": (1e-2,)},
    "certificates": {"SAMPLES": 200, "FRESH": 100, "DRAWS": 5, "CLUSTER": 2},
    "scale_out": {"COMPUTING": (6, 8), "ASKING": (4, 5), "SECONDS_PER_ROW": 1e-4},
    "deep_table": {"QUICK": (6, (5, 3, 1))},
    "deep_unknown": {"QUICK": (5, (4, 2, 1))},
    "http_throughput": {"QUICK": ((4, 3, 1), 200)},
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
    shared = {"harness", "named_rows", "planted", "recoveries"}
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - shared
    apart = {"before_after", "suite", "compare", "growth", "interrupts", "overshoot", "tables"}
    assert scripts == {*NETWORKS, *SUBSPACES, *TABLES, *apart}
    readme = (BENCHMARKS / "README.md").read_text()
    assert all(f"benchmarks/{name}.py" in readme for name in scripts)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_printed(name, load, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name, "--seeds", "1", *TABLES[name]])
    load(name).main()
    assert "| 1 of 1 |" in capsys.readouterr().out


def test_a_route_is_interrupted(load, capsys, monkeypatch):
    script = load("interrupts")
    monkeypatch.setattr(script, "ROUTES", {"small": lambda: script.asked(6, 8, 1)})
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGPROF)
    try:
        script.route("small", 2)
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGPROF, before[1])
    whole, *rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert all(row["ended"] or (row["stopped"] and row["kept"]) for row in rows)
    assert script.line("small", whole["whole"], rows).count("|") == 7


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


def test_a_public_peer_runs_beside_rank_one(load, tmp_path, capsys, monkeypatch):
    """It gets the tensor, and what it misses is counted: this one knows all components but one."""
    (tmp_path / "peer_numbers.py").write_text("SEED = 1000\n")
    peer = tmp_path / "knowing_peer.py"
    peer.write_text(
        "import numpy as np\n"
        "from peer_numbers import SEED\n"
        "from planted import planted_directions\n"
        "def subspace_power_method(T, d, n, r):\n"
        "    rows = planted_directions(d, r, SEED)\n"
        "    assert np.allclose(T, np.einsum('ri,rj,rk,rl->ijkl', rows, rows, rows, rows))\n"
        "    rows[0] = rows[1]\n"
        "    return rows.T, np.ones(r)\n"
    )
    script = load("rank_one")
    monkeypatch.setattr(script, "QUICK", (8, 16))
    (row,) = script.main(["--quick", "--seeds", "1000:1001", "--peer", str(peer)])
    assert (row["missed"], row["peer_missed"]) == (0, 1)
    assert row["peer_cpu_seconds"] >= 0
    assert "components the peer missed" in capsys.readouterr().out


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


def test_planted_network_follows_its_law(load):
    planted = load("planted")
    for law in planted.LAWS.values():
        net = planted.planted_network(60, (50, 40, 30), law, 1000, "sigmoid", "tanh")
        assert net.activations == ("sigmoid", "sigmoid", "tanh")
        assert (net.n_inputs, net.hidden, net.n_outputs) == (60, (50, 40), 30)
        norms = np.concatenate([np.linalg.norm(weights, axis=0) for weights in net.weights])
        low, high = law.norms
        slack = 1e-12  # rounding of a norm
        assert low - slack <= norms.min() <= norms.max() <= high + slack
        # The standard deviation of n normal numbers is good to 1 / sqrt(2 n): four of these with n = 120.
        deviation = np.concatenate(net.biases).std()
        assert deviation == pytest.approx(law.bias, rel=4 / np.sqrt(240))
    again = planted.planted_network(60, (50, 40, 30), law, 1000, "sigmoid", "tanh")
    assert again == net


def test_deep_rows_are_distinct_and_their_names_chosen(load):
    table, unknown, trained = load("deep_table"), load("deep_unknown"), load("deep_trained")
    for script in (table, unknown, trained):
        names = [setting.name for setting in script.SETTINGS]
        assert len(set(names)) == len(names)
    assert len({setting.label for setting in table.SETTINGS}) == len(table.SETTINGS)
    assert all(setting.plant(1000).n_parameters == setting.parameters for setting in table.SETTINGS)
    read = load("named_rows").chosen_from(["20:20-15-1", "20:10-5-1"])
    assert read("20:10-5-1") == ["20:10-5-1"]
    with pytest.raises(argparse.ArgumentTypeError, match="must be names of the table"):
        read("20:10-5-1,nothing")


def test_rows_that_are_done_are_kept(load, tmp_path):
    table = load("named_rows")
    file = tmp_path / "rows.json"
    measured = []

    def measure(setting, seeds):
        measured.append(setting)
        return {"setting": setting}

    settings = {"a": 1, "b": 2, "c": 3}
    table.measure_all({"b": 2}, measure, range(1000, 1002), file)
    table.measure_all({"c": 3}, measure, range(1000, 1001), file)  # fewer seeds: no use below
    rows = table.measure_all(settings, measure, range(1000, 1002), file, order=["c", "b", "a"])
    assert measured == [2, 3, 3, 1]
    assert [row["setting"] for row in rows] == [1, 2, 3]
    assert len(json.loads(file.read_text())) == 4


def test_stages_are_grouped_by_layer(load):
    table = load("deep_table")
    names = ["look", "Hessians", "polish", "verification"]
    names += ["layer 1 inputs", "layer 1 biases", "output layer", "layer 2", "output layer", "polish"]
    names += ["verification", "gradients", "verification"]
    stage = importlib.import_module("unweave.search.journal").Stage
    result = SimpleNamespace(stages=[stage(name, 2.0**-i, 10**i, {}) for i, name in enumerate(names)])
    seconds, queries = table.stage_groups(result)
    assert queries == {
        "look": 1,
        "one layer": 1_110 + 11 * 10**11,
        "layer 1": 110_000,
        "output": 101_000_000,
        "layer 2": 10_000_000,
        "polish": 10**9,
        "verification": 10**10,
    }
    assert sum(seconds.values()) == sum(entry.seconds for entry in result.stages)
    row = table.deep_row("one", [load("harness").Run(1000, True, extra={"group_queries": queries})])
    assert list(row["stage_queries"]) == [
        "look",
        "one layer",
        "layer 1",
        "layer 2",
        "output",
        "polish",
        "verification",
    ]


def test_deep_failures_are_told(load, harness):
    table = load("deep_table")
    refused = harness.run_recovery(
        unweave.random_network([3, 2, 2, 1], seed=1000), 1000, hidden=[-1], extra=table.deep_figures
    )
    retried = harness.Run(1001, True, 1e-14, seconds=2.0, extra={"attempts": 3})
    row = table.deep_row("some", [refused, retried])
    assert row["failures"] == {"1000": "raised an error"}
    assert row["failed_seeds"] == ["1000"]
    assert (row["most_attempts"], row["retried"], row["max_seconds"]) == (3, 1, 2.0)
    assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_wrong_widths_are_listed(load, harness, monkeypatch):
    script = load("deep_unknown")
    found = {1000: [4, 2], 1001: [4], 1002: None}
    monkeypatch.setattr(
        script,
        "run_recovery",
        lambda truth, seed, **_: harness.Run(seed, True, extra={"hidden": found[seed]}),
    )
    row = script.measure(script.Setting(5, (4, 2, 1)), range(1000, 1003))
    assert (row["widths_exact"], row["widths_wrong"]) == (1, ["1001: 4", "1002: none"])


@pytest.mark.parametrize("way", ["tanh", "logistic", "torch"])
def test_trained_target_is_the_truth(way, load, monkeypatch):
    script = load("deep_trained")
    monkeypatch.setattr(script, "ITERATIONS", 3)
    monkeypatch.setattr(script, "STEPS", 30)
    x, y = script.standardised("digits")
    assert (x.shape, y.shape) == ((1797, 61), (1797, 10))
    np.testing.assert_allclose(x.std(axis=0), 1, rtol=1e-12)
    setting = script.Setting("digits", (6, 4), way)
    truth, target = script.train(setting, 1000)
    # Sums of at most 61 products, in another order.
    np.testing.assert_allclose(target(x), truth(x), rtol=0, atol=1e-13)
    assert script.train(setting, 1000)[0] == truth
    assert script.score(truth, x, truth(x)) == 1


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


def test_two_trees_are_compared_run_by_run(load, capsys, monkeypatch):
    script = load("before_after")
    source = str(BENCHMARKS.parent / "src")
    arguments = ["before_after", "--before", source, "--after", source, "--rows", "small", "--runs", "1"]
    monkeypatch.setattr("sys.argv", arguments)
    script.main()
    name, *_, same = capsys.readouterr().out.splitlines()[1].split("  ")
    assert (name, same) == ("smooth small 6-9-1", "yes")


def test_the_suite_stores_its_runs_and_goes_on_where_it_stopped(load, tmp_path):
    suite = load("suite")
    arguments = ["--rows", "small", "--store", str(tmp_path)]
    file = suite.main(arguments)
    (line,) = suite.read_lines(file)
    assert line["case"] == "smooth small 6-9-1"
    assert line["status"] == "RECOVERED"
    assert line["commit"] == file.stem
    assert {"cpu_seconds", "rows", "error", "load", "peak_mb", "reference_seconds"} <= line.keys()
    suite.main(arguments)
    assert suite.read_lines(file) == [line]


def test_what_became_worse_is_told(load, tmp_path, capsys):
    compare = load("compare")
    line = {
        "case": "a",
        "cpu_seconds": 1.0,
        "reference_seconds": 0.1,
        "rows": 100,
        "error": 1e-13,
        "status": "RECOVERED",
    }
    for name, changes in {
        "same": {},
        "busy": {"cpu_seconds": 3.0, "reference_seconds": 0.3},
        "slower": {"cpu_seconds": 1.5},
        "more rows": {"rows": 150},
        "less exact": {"error": 1e-9},
        "now FAILED": {"status": "FAILED", "error": None},
    }.items():
        (row,) = compare.compare([line], [{**line, **changes}])
        assert row["worse"] == ("" if name in ("same", "busy") else name)
    slow, quick = {**line, "cpu_seconds": 9.0}, {**line, "cpu_seconds": 1.05}
    assert compare.compare([line], [slow, quick])[0]["worse"] == ""  # the quickest run counts
    for commit, seconds in (("abc", 1.0), ("abd", 2.0)):
        (tmp_path / f"{commit}.jsonl").write_text(json.dumps({**line, "cpu_seconds": seconds}) + "\n")
    assert compare.main(["abc", "abd", "--store", str(tmp_path)]) == 1
    assert "1 worse" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="abc, abd"):
        compare.main(["ab", "abd", "--store", str(tmp_path)])


def test_growth_is_fitted_and_drawn(load, tmp_path):
    growth = load("growth")
    sweep = growth.SWEEPS["width, ReLU"]
    small = replace(
        sweep,
        values=(3, 6),
        network=lambda v: f"net([8, {v}, 1], 'relu', outer='signed')",
        small=lambda v: "net([8, 2, 1], 'relu', outer='signed')",
        runs=1,
    )
    growth.main(["--out", str(tmp_path)], sweeps={"width, ReLU": small})
    page = (tmp_path / "growth.md").read_text()
    assert "width, ReLU" in page
    assert (tmp_path / "growth.png").stat().st_size > 1000
    assert growth.exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)


def test_overshoot_tells_time_and_memory(load):
    row = load("overshoot").run("steps", 30.0, trace=False, options={})
    assert row["over"] == row["cpu_over"] == 0.0 < row["seconds"]
    assert row["peak_mb"] > 1
    assert row["said"].startswith("RECOVERED")  # steps are those of a tree


def test_estimators_are_compared_on_a_table(load, capsys):
    script = load("tables")
    setting = script.Setting("iris", "regression")
    row = script.measure(setting, range(1000, 1001), folds=2)
    assert row["wins"] == (row["ours"] > max(row["linear"], row["mlp"]))
    assert row["within"] == (row["ours"] >= max(row["linear"], row["mlp"]) - row["error"])
    assert 0.8 < row["linear"] < 1
    # Constant columns, text labels and the like are the estimators' business: tables come as they are.
    assert {script.table(each)[0].dtype for each in script.SETTINGS} == {np.dtype(np.float64)}
