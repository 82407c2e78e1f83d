"""Runs through the page: results, queue, cancelling, resuming, and a server that is killed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import numpy as np
import pytest
from served_page import TEACHER, Page, asked, poll, saved

import unweave
from unweave.errors import InvalidInput
from unweave.search.journal import Progress
from unweave.serving import ReferenceServer
from unweave.web.progress_file import ProgressFile
from unweave.web.run_folder import RunFolder, RunState, RunStatus, read_json
from unweave.web.run_queue import Runs
from unweave.web.run_request import RunRequest

SAME = 1e-9
"""Parameter error of an exact recovery from float64 answers, with room."""


def same_bits(a: unweave.Network, b: unweave.Network) -> bool:
    pairs = zip((*a.weights, *a.biases), (*b.weights, *b.biases), strict=True)
    return all(np.array_equal(p, q) for p, q in pairs)


def downloaded(page: Page, run_id: str, name: str, folder: Path) -> Path:
    response = page.get(f"/api/runs/{run_id}/files/{name}")
    assert response.status_code == 200
    assert response.headers["content-disposition"] == f'attachment; filename="{name}"'
    path = folder / name
    path.write_bytes(response.content)
    return path


def workers_of(folder: Path) -> list[str]:
    """Processes that work on runs in this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it has ended
        if "unweave.web.worker" in command and any(str(folder) in part for part in command):
            found.append(entry.parent.name)
    return found


def test_an_uploaded_model_comes_back_in_every_format(page: Page, tmp_path: Path) -> None:
    run_id = page.begin(
        "my <b>teacher<b>.npz", saved(TEACHER, tmp_path), hidden="4", activation="tanh", seed="3"
    )
    run = page.wait_end(run_id)
    assert (run["status"], run["verdict"], run["name"]) == ("FINISHED", "RECOVERED", "my <b>teacher<b>.npz")
    assert run["problems"] == []
    assert run["recovery"]["queries"] > 100
    for ending in (".npz", ".json", ".onnx", ".safetensors"):
        network = unweave.load(downloaded(page, run_id, f"network{ending}", tmp_path))
        assert unweave.compare(TEACHER, network).parameter_error < SAME
    result = unweave.Recovery.load(downloaded(page, run_id, "result.npz", tmp_path))
    told = read_json(downloaded(page, run_id, "result.json", tmp_path))
    assert told is not None
    assert told["error"] == result.error
    assert told["settings"]["target"] == {"kind": "file", "name": "my <b>teacher<b>.npz"}
    assert str(page.folder) not in str(told)
    report = page.get(f"/runs/{run_id}/report")
    assert "sandbox" in report.headers["content-security-policy"]
    assert "default-src 'none'" in report.headers["content-security-policy"]
    assert "<b>teacher<b>" not in report.text
    assert "look" in page.get(f"/api/runs/{run_id}/files/log.txt").text


def test_the_sample_is_recovered_and_shown_in_pictures(page: Page, locked: Page) -> None:
    run_id = page.begin(kind="sample")
    run = page.wait_end(run_id)
    assert (run["status"], run["verdict"], run["tone"]) == ("FINISHED", "RECOVERED", "good")
    assert (run["name"], run["problems"]) == ("sample-network.npz", [])
    assert {"weights", "stages"} <= {picture["name"] for picture in run["pictures"]}
    for picture in run["pictures"]:
        drawn = page.get(f"/runs/{run_id}/pictures/{picture['name']}")
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert "sandbox" in drawn.headers["content-security-policy"]
        assert "prefers-color-scheme: dark" in drawn.text
        assert "<" not in picture["caption"]
        ElementTree.fromstring(drawn.text)
    for name in ("nothing", "..%2f..%2fstate.json", "Weights", "weights.svg", "picture-weights"):
        assert page.get(f"/runs/{run_id}/pictures/{name}").status_code == 404
    stranger = httpx.get(f"{locked.url}/runs/{run_id}/pictures/weights", trust_env=False)
    assert stranger.headers["location"] == "/login"


def test_an_audit_a_plan_and_a_comparison(page: Page, tmp_path: Path) -> None:
    content = saved(TEACHER, tmp_path)
    audit = page.begin("t.npz", content, task="audit", decimals="3", budgets="300", activation="tanh")
    plan = page.begin(kind="sample", task="plan")
    other = saved(unweave.random_network([6, 4, 1], seed=1001), tmp_path)
    pairs = [
        page.post("/api/runs", files=[("task", (None, "compare")), ("file", ("a.npz", content)),
                                      ("other", ("b.npz", second))]).json()["id"]
        for second in (content, other)
    ]  # fmt: skip
    run = page.wait_end(audit)
    assert (run["status"], run["tone"], run["problems"]) == ("FINISHED", "bad", [])
    assert run["words"] == run["audit"]["headline"]
    assert run["words"].startswith("LEAKS as it is")
    assert run["audit"]["settings"]["target"] == {"kind": "file", "name": "t.npz"}
    assert {file["name"] for file in run["files"]} == {"audit.html", "trace.jsonl", "result.json", "log.txt"}
    assert "Findings by control" in page.get(f"/runs/{audit}/report").text
    trace = page.get(f"/api/runs/{audit}/files/trace.jsonl").text
    assert len(trace.splitlines()) == run["audit"]["target_queries"]
    run = page.wait_end(plan)
    assert (run["words"], run["plan"]["inputs"]) == ("planned", 10)
    assert any(entry["tried"] for entry in run["plan"]["methods"])
    for run_id, words in zip(pairs, ("the same network", "different networks"), strict=True):
        run = page.wait_end(run_id)
        assert (run["words"], run["comparison"]["is_same"]) == (words, words == "the same network")


def test_a_table_is_fitted(page: Page) -> None:
    rng = np.random.default_rng(1000)
    truth = unweave.random_network([3, 4, 2], activation="relu", seed=1001, outer="normal")
    x = rng.normal(size=(400, 3))
    lines = "\n".join(",".join(map(repr, row)) for row in np.hstack([x, truth(x)]).tolist())
    run_id = page.begin("samples.csv", lines.encode(), kind="table", outputs="2", activation="relu")
    run = page.wait_end(run_id)
    assert (run["status"], run["verdict"]) == ("FINISHED", "RECOVERED")
    assert run["found"] == {"inputs": 3, "outputs": 2, "rows": 400}


def test_an_endpoint_that_is_not_there_is_told(page: Page) -> None:
    run_id = page.begin(kind="endpoint", url="http://127.0.0.1:1/predict", inputs="3")
    run = page.wait_end(run_id)
    assert run["status"] == "FAILED"
    assert "http://127.0.0.1:1/predict must be up" in run["message"]
    assert [file["name"] for file in run["files"]] == ["log.txt"]
    assert page.post(f"/api/runs/{run_id}/cancel").status_code == 409
    assert page.post(f"/api/runs/{run_id}/delete").status_code == 200
    assert page.get(f"/api/runs/{run_id}").status_code == 404
    assert not (page.folder / run_id).exists()


def test_nothing_is_lost_when_the_server_is_killed(slow_target: ReferenceServer, tmp_path: Path) -> None:
    """Two go, others wait or are cancelled; SIGKILL; all are listed as they were, and go on from there."""
    folder = tmp_path / "runs"
    endpoint = {"kind": "endpoint", "url": slow_target.url}
    with Page(folder) as page:
        first, second, third, fourth = (page.begin(**endpoint, seed=str(seed)) for seed in range(4))
        assert page.runs() == {first: "RUNNING", second: "RUNNING", third: "QUEUED", fourth: "QUEUED"}
        assert page.run(fourth)["waiting_before"] == 1
        assert page.post(f"/api/runs/{first}/delete").status_code == 409
        assert page.post(f"/api/runs/{first}/resume").status_code == 409
        page.wait(second, lambda run: asked(run) > 0)
        assert page.post(f"/api/runs/{second}/cancel").status_code == 200
        cancelled = page.wait_end(second)
        assert cancelled["status"] == "CANCELLED"
        assert cancelled["message"].startswith("Cancelled")
        page.wait(third, lambda run: run["status"] == "RUNNING")
        assert page.post(f"/api/runs/{fourth}/cancel").json()["status"] == "CANCELLED"
        page.wait(first, lambda run: asked(run) > 0)
        page.wait(third, lambda run: asked(run) > 0)
        page.kill()
    poll(lambda: not workers_of(folder))  # they notice, and do not go on asking by themselves
    with Page(folder) as page:
        assert page.runs() == {
            first: "INTERRUPTED",
            second: "CANCELLED",
            third: "INTERRUPTED",
            fourth: "CANCELLED",
        }
        assert page.run(first)["options"] == [
            ["Task", "recover"],
            ["Target", slow_target.url],
            ["Hidden widths", "find out"],
            ["Activation", "find out"],
            ["Seed", "0"],
        ]
        assert "server stopped" in page.run(first)["message"]
        assert page.post(f"/api/runs/{first}/resume").json()["attempt"] == 2
        run = page.wait_end(first)
        assert (run["status"], run["verdict"]) == ("FINISHED", "RECOVERED")
        assert any(note.startswith("resumed:") for note in run["recovery"]["notes"])
        network = unweave.load(downloaded(page, first, "network.npz", tmp_path))
        # Ctrl-C: what runs is stopped, and can be resumed again.
        page.post(f"/api/runs/{third}/resume")
        page.process.send_signal(signal.SIGINT)
        assert page.close() == 0
    assert not workers_of(folder)
    assert RunFolder(folder / third).read_state().status is RunStatus.INTERRUPTED
    assert same_bits(network, unweave.recover(TEACHER).network)  # as if nothing had happened


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    with pytest.raises(InvalidInput, match="no other server uses"):
        Runs(tmp_path)
    runs.close()
    Runs(tmp_path).close()


def left_behind(folder: Path, run_id: str, status: RunStatus, **changes: Any) -> RunState:
    """A run as a dead server left it."""
    path = folder / run_id
    path.mkdir(parents=True)
    state = RunState(run_id, RunRequest("file", "a.npz", ".npz"), status, 1.0, 1.0, **changes)
    RunFolder(path).write_state(state)
    return state


def test_what_a_dead_server_left_is_taken_up(tmp_path: Path) -> None:
    going = left_behind(tmp_path, "20260131-120000-00000001", RunStatus.RUNNING, attempt=1)
    done = left_behind(tmp_path, "20260131-120000-00000002", RunStatus.RUNNING, attempt=2)
    place = RunFolder(tmp_path / done.id).attempt(2)
    place.mkdir()
    outcome = (
        '{"status": "FINISHED", "message": "", "recovery": {"status": "RECOVERED", "architecture": "2-1"}}'
    )
    (place / "outcome.json").write_text(outcome)
    (tmp_path / ".new-20260131-120000-00000003").mkdir()
    (tmp_path / "20260131-120000-00000004").mkdir()
    (tmp_path / "20260131-120000-00000004" / "state.json").write_text("{")
    (tmp_path / "notes.txt").write_text("mine")
    runs = Runs(tmp_path)
    runs.start()
    try:
        assert {state.id: state.status for state in runs.all()} == {
            going.id: RunStatus.INTERRUPTED,
            done.id: RunStatus.FINISHED,
        }
        assert (runs.get(done.id).verdict, runs.get(done.id).summary) == ("RECOVERED", "2-1")
        assert not (tmp_path / ".new-20260131-120000-00000003").exists()
        assert (
            tmp_path / "20260131-120000-00000004" / "state.json"
        ).exists()  # unreadable, but not thrown away
        assert (tmp_path / "notes.txt").exists()
        assert RunFolder(tmp_path / going.id).read_state() == runs.get(going.id)
    finally:
        runs.close()


def test_progress_is_written_when_it_is_news(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "progress.json"
    progress = ProgressFile(path, clock=lambda: now)

    def told() -> dict[str, Any]:
        found = read_json(path)
        assert found is not None
        return found

    progress.asked(5)
    assert not path.exists()
    progress(Progress("look", 0, None, "", 5, 1.0))
    now = 0.1
    progress.asked(7)
    assert told()["queries"] == 5  # too soon
    now = 0.3
    progress.asked(8)
    assert (told()["queries"], told()["seconds"]) == (20, pytest.approx(1.3))
    progress(Progress("polish", 3, 10, "steps", 20, 1.4))
    assert (told()["stage"], told()["stage_seconds"]) == ("polish", 0.0)
    assert [stage["name"] for stage in told()["stages"]] == ["look", "polish"]
