"""A recovery may be killed at any moment: resumed, it asks nothing twice and ends with the same network."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import unweave
from unweave.errors import CheckpointError, InvalidInput
from unweave.execution import Checkpoint
from unweave.execution import npz_store as npz_store_module

ATTEMPTS = Path(__file__).parents[1] / "killed_runs.py"
INPUTS = 12


def run(folder: Path, kills: list[str], checkpoint: str | None) -> None:
    folder.mkdir(exist_ok=True)
    where = "" if checkpoint is None else str(folder / checkpoint)
    subprocess.run(
        [sys.executable, str(ATTEMPTS), str(folder), where, ",".join([*kills, ""])],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


def asked(folder: Path) -> np.ndarray:
    """All rows that the target was asked, sorted."""
    rows = np.fromfile(folder / "asked").reshape(-1, INPUTS)
    return rows[np.lexsort(rows.T)]


def parameters(folder: Path) -> bytes:
    network = unweave.Recovery.load(folder / "result.npz").network
    return b"".join(array.tobytes() for array in (*network.weights, *network.biases))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbs, without a checkpoint."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    run(folder, [], None)
    return folder


def counts(whole: Path) -> tuple[int, int, int]:
    """Stages, calls of the progress callback and calls of the target of the undisturbed run."""
    stages, progress, target, *_ = (whole / "stages").read_text().split()
    return int(stages), int(progress), int(target)


@pytest.mark.parametrize(("checkpoint", "every"), [("run.sqlite", 1), ("run.ckpt", 3)])
def test_killed_at_the_start_of_every_stage(checkpoint, every, whole, tmp_path):
    stages, _, _ = counts(whole)
    run(tmp_path / "run", [f"stage:{number}" for number in range(1, stages + 1, every)], checkpoint)
    assert parameters(tmp_path / "run") == parameters(whole)
    np.testing.assert_array_equal(asked(tmp_path / "run"), asked(whole))  # repeats on purpose included
    result = unweave.Recovery.load(tmp_path / "run" / "result.npz")
    assert result.status is unweave.Status.RECOVERED
    assert result.notes[-1].startswith("resumed: ")


def test_killed_inside_the_target_asks_again_only_what_was_in_flight(whole, tmp_path):
    *_, calls = counts(whole)
    kills = [f"target:{1 + calls // 2}", "target:1"]
    run(tmp_path / "run", kills, "run.sqlite")
    assert parameters(tmp_path / "run") == parameters(whole)
    more = len(asked(tmp_path / "run")) - len(asked(whole))
    rows, times = np.unique(asked(tmp_path / "run"), axis=0, return_counts=True)
    expected = np.unique(asked(whole), axis=0, return_counts=True)
    np.testing.assert_array_equal(rows, expected[0])
    assert 0 < more == (times - expected[1]).sum()
    assert (times - expected[1]).max() <= len(kills)  # each kill costs the rows of one call


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["run.sqlite", "run.ckpt"])
@pytest.mark.parametrize("repetition", range(10))
def test_killed_ten_times_anywhere(repetition, checkpoint, whole, tmp_path):
    stages, progress, _ = counts(whole)
    rng = np.random.default_rng(1000 + repetition)
    kills = [f"stage:{number}" for number in rng.permutation(np.arange(1, stages + 1))]
    kills += [f"progress:{number}" for number in rng.integers(1, progress + 1, size=max(0, 10 - stages))]
    run(tmp_path / "run", kills, checkpoint)
    assert len(kills) >= 10
    assert parameters(tmp_path / "run") == parameters(whole)
    np.testing.assert_array_equal(asked(tmp_path / "run"), asked(whole))


TRUTH = unweave.random_network([6, 9, 2], seed=1002, outer="normal")


@pytest.mark.parametrize("name", ["run.sqlite", "run"])
@pytest.mark.parametrize("truth", [TRUTH, unweave.random_network([6, 5, 1], activation="relu", seed=1003)])
def test_a_finished_run_costs_nothing_the_second_time(name, truth, tmp_path, recorder):
    plain = unweave.recover(truth, seed=1004)
    first = unweave.recover(truth, seed=1004, checkpoint=tmp_path / name)
    target = recorder(truth)
    second = unweave.recover(target, input_dim=6, seed=1004, checkpoint=str(tmp_path / name))
    assert plain.network == first.network == second.network
    assert (first.queries, second.queries, len(target.rows)) == (plain.queries, 0, 0)
    assert plain.notes == first.notes == second.notes[:-1]
    assert f"resumed: {plain.queries} rows" in second.notes[-1]


def test_an_interrupted_run_goes_on(tmp_path, recorder):
    target = recorder(TRUTH)

    def stop_at_the_end(progress: unweave.Progress) -> None:
        if progress.stage == "verification":
            raise KeyboardInterrupt

    with pytest.raises(unweave.Interrupted):
        unweave.recover(
            target, input_dim=6, seed=1004, checkpoint=tmp_path / "run.db", progress=stop_at_the_end
        )
    result = unweave.recover(target, input_dim=6, seed=1004, checkpoint=tmp_path / "run.db")
    plain = unweave.recover(TRUTH, seed=1004)
    assert result.network == plain.network
    assert len(target.rows) == plain.queries
    assert result.queries == plain.verification_queries


def test_a_budget_is_that_of_the_run_not_of_the_log(tmp_path):
    plain = unweave.recover(TRUTH, seed=1004)
    short = unweave.recover(TRUTH, seed=1004, checkpoint=tmp_path / "run", max_queries=plain.queries // 2)
    assert short.status is not unweave.Status.RECOVERED
    assert short.queries <= plain.queries // 2
    # Rows sent in vain when the budget was short aside, the second half is what it takes.
    result = unweave.recover(TRUTH, seed=1004, checkpoint=tmp_path / "run", max_queries=plain.queries - 200)
    assert result.network == plain.network
    assert plain.queries // 2 <= result.queries <= plain.queries - 200


def test_another_target_is_noticed_if_one_row_may_be_asked(tmp_path):
    path = tmp_path / "run.sqlite"
    unweave.recover(TRUTH, checkpoint=path)
    again = unweave.recover(TRUTH, checkpoint=Checkpoint(path, check=True))
    assert again.queries == 1
    other = unweave.random_network([6, 9, 2], seed=1005, outer="normal")
    with pytest.raises(InvalidInput, match="another answer"):
        unweave.recover(other, checkpoint=Checkpoint(path, check=True))
    with pytest.raises(InvalidInput, match="6"):
        unweave.recover(unweave.random_network([5, 3, 2], seed=1005), checkpoint=path)


def test_a_disk_that_fills_up_loses_nothing(tmp_path, monkeypatch, recorder):
    target, plain = recorder(TRUTH), unweave.recover(TRUTH, seed=1004)
    save, room = np.savez, 6

    def fills_up(stream, **arrays):
        nonlocal room
        room -= 1
        if room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(stream, **arrays)

    monkeypatch.setattr(npz_store_module.np, "savez", fills_up)
    with pytest.raises(CheckpointError, match=r"run.*No space left") as caught:
        unweave.recover(target, input_dim=6, seed=1004, checkpoint=tmp_path / "run")
    monkeypatch.undo()
    paid = len(target.rows)
    assert 0 < paid < plain.queries
    result = unweave.recover(caught.value.ledger, seed=1004, checkpoint=tmp_path / "run")
    assert result.network == plain.network
    rows, times = np.unique(target.rows, axis=0, return_counts=True)
    assert result.queries == len(target.rows) - paid
    # What did not fit on the disk was kept in memory and written later: a third run needs no target.
    third = unweave.recover(TRUTH, seed=1004, checkpoint=tmp_path / "run")
    assert (third.network == plain.network, third.queries) == (True, 0)
    assert len(rows) + (times - 1).sum() == plain.queries


def test_samples_have_nothing_to_resume(tmp_path):
    samples = unweave.Samples(np.ones((4, 2)), np.ones(4))
    with pytest.raises(InvalidInput, match="checkpoint must be None"):
        unweave.recover(samples, hidden=[1], checkpoint=tmp_path / "run")
