"""A disk that is really full: a clear error, and nothing that was paid for is lost."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import unweave
from unweave.errors import CheckpointError, InvalidInput

DISK_BYTES = 512 * 1024


@pytest.fixture
def disk(tmp_path):
    """A file system of half a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(place)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place):
    """Leave no room."""
    with (place / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


@pytest.mark.parametrize("name", ["run.sqlite", "run"])
def test_a_run_whose_checkpoint_does_not_fit_loses_no_answer(name, disk):
    net = unweave.random_network([60, 5, 1], "relu", seed=0, outer="normal")
    asked, wanted = [], []

    def target(x):
        asked.extend(row.tobytes() for row in x)
        return net(x)

    def without_checkpoint(x):
        wanted.extend(row.tobytes() for row in x)
        return net(x)

    with pytest.raises(CheckpointError, match=f"{name}.*(full|No space left)") as caught:
        unweave.recover(target, input_dim=60, checkpoint=disk / name)
    ledger = caught.value.ledger
    assert ledger.sent == len(asked)
    assert unweave.recover(ledger).status.name == "RECOVERED"
    unweave.recover(without_checkpoint, input_dim=60)
    assert set(asked) == set(wanted)
    assert len(asked) - len(wanted) < 50  # again only rows that are asked twice on purpose: is it repeatable?


@pytest.mark.parametrize("save", [lambda r, p: r.save(p), lambda r, p: r.network.save(p)])
def test_what_was_saved_before_stays_if_there_is_no_room_for_more(save, disk):
    result = unweave.recover(lambda x: np.maximum(x @ [1.0, -2.0], 0.0), input_dim=2)
    save(result, disk / "run.npz")
    before = (disk / "run.npz").read_bytes()
    fill(disk)
    with pytest.raises(InvalidInput, match="No space left"):
        save(result, disk / "run.npz")
    assert (disk / "run.npz").read_bytes() == before
    assert sorted(file.name for file in disk.iterdir()) == ["filler", "run.npz"]
