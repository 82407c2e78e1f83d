"""What strangers, copied folders, hostile files and slow clients can do to the page: nothing."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator, MutableMapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import onnx
import pytest
import uvicorn
from onnx import TensorProto, helper
from served_page import PATIENCE, TEACHER, Page, poll, saved

from unweave.errors import InvalidInput
from unweave.web.app import PageOptions, create_app
from unweave.web.guards import Access, Guard
from unweave.web.hidden_keys import Hide, HidingStream
from unweave.web.limits import Limits
from unweave.web.run_folder import ENDED, RunStatus
from unweave.web.run_queue import Runs
from unweave.web.run_request import RunRequest
from unweave.web.slow_clients import ImpatientProtocol

SECRET = "model-key-0123456789"
MEMORY_MB = 1500


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page on another address of this machine, in a folder that everybody could read."""
    folder = tmp_path_factory.mktemp("careful")
    folder.chmod(0o755)
    options = ("--host", "127.0.0.2", "--allow-env", "MODEL_KEY", "--max-memory-mb", MEMORY_MB)
    with Page(folder, *options, MODEL_KEY=SECRET, OTHER_KEY=SECRET) as served:
        yield served


def test_without_the_printed_key_nobody_on_this_machine_is_answered(careful: Page) -> None:
    assert "?token=" in careful.entrance
    with httpx.Client(base_url=careful.url, trust_env=False, headers={"Origin": careful.url}) as stranger:
        assert stranger.get("/api/runs").status_code == 401
        assert stranger.get("/?token=wrong").headers["location"] == "/login"
        assert stranger.get("/api/runs?token=" + careful.entrance.split("=")[1]).status_code == 401
        assert stranger.post("/api/runs", files=[("kind", (None, "file"))]).status_code == 401
        entered = stranger.get(careful.entrance)
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        assert "HttpOnly" in entered.headers["set-cookie"]
        assert stranger.get("/api/runs").status_code == 200


@pytest.mark.slow  # a server of its own
def test_the_key_can_be_left_out_on_this_machine(tmp_path: Path) -> None:
    with Page(tmp_path, "--no-token") as open_page:
        assert open_page.entrance == f"{open_page.url}/"
        assert httpx.get(f"{open_page.url}/api/runs", trust_env=False).status_code == 200


def test_the_folder_of_the_runs_is_its_owners_alone(careful: Page, tmp_path: Path) -> None:
    run_id = careful.begin("teacher.npz", saved(TEACHER, tmp_path), max_queries="5")
    careful.wait_end(run_id)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (careful.folder, *careful.folder.rglob("*"))}
    assert len(modes) > 5
    assert [path for path, mode in modes.items() if mode & 0o077] == []


@pytest.mark.parametrize("name", ["OTHER_KEY", "PATH", "HOME"])
def test_only_variables_that_were_allowed_are_sent(careful: Page, name: str) -> None:
    refused = careful.send(kind="endpoint", url="http://127.0.0.1:9/", token_env=name)
    assert (refused.status_code, refused.json()["field"]) == (422, "token_env")
    assert f"--allow-env {name}" in refused.json()["error"]


def test_a_copied_run_cannot_send_other_variables(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "runs")
    try:
        request = RunRequest("endpoint", "x", url="http://127.0.0.1:9/", token_env="HOME")
        state = runs.add(runs.new_folder(), request, {})
        assert state.status is RunStatus.FAILED
        assert "--allow-env HOME" in state.message
    finally:
        runs.close()


def test_the_key_of_the_page_is_never_allowed(tmp_path: Path) -> None:
    options = PageOptions(tmp_path, key="k" * 20, key_variable="PAGE_KEY", allow_env=("PAGE_KEY",))
    with pytest.raises(InvalidInput, match="PAGE_KEY"):
        create_app(options)


class Echo(BaseHTTPRequestHandler):
    """Answers every request with its key, in several spellings."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Authorization"].removeprefix("Bearer ")
        body = json.dumps({key: [key, f"<{key}>"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_a_key_that_the_endpoint_echoes_is_in_no_file_of_the_run(careful: Page) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        run_id = careful.begin(kind="endpoint", url=url, token_env="MODEL_KEY", inputs="3")
        run = careful.wait_end(run_id)
    finally:
        server.shutdown()
        server.server_close()
    log = careful.get(f"/api/runs/{run_id}/files/log.txt").text
    assert "***" in log
    assert "Traceback" in log
    assert SECRET not in log + json.dumps(run)
    written = [path for path in (careful.folder / run_id).rglob("*") if path.is_file()]
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


def test_everything_that_is_written_to_the_log_passes_the_same_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = 'a"b\\c/d e'
    monkeypatch.setenv("MODEL_KEY", key)
    with (tmp_path / "log").open("w") as file:
        stream = HidingStream(file, Hide(RunRequest("endpoint", "x", token_env="MODEL_KEY")))
        for text in (
            f"one {key[:3]}",
            f"{key[3:]} two\n",
            f"{key!r}\n{json.dumps(key)}\n",
            "a%22b%5Cc/d%20e",
        ):
            stream.write(text)
            stream.flush()
        stream.finish()
    assert (tmp_path / "log").read_text() == "one *** two\n'***'\n\"***\"\n***"


def test_a_copied_folder_is_called_by_its_own_name(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    runs = Runs(folder, at_once=0)  # nothing is started
    run_id = runs.add(runs.new_folder(), RunRequest("file", "net.npz", ".npz"), {}).id
    runs.cancel(run_id)
    runs.close()
    place = folder / run_id / "state.json"
    content = json.loads(place.read_text())
    elsewhere = content["request"] | {"ending": "/../x"}
    for change in ({"id": "../escape"}, {"attempt": "../../x"}, {"request": elsewhere}):
        (tmp_path / "escape").mkdir(exist_ok=True)
        place.write_text(json.dumps(content | change))
        again = Runs(folder, at_once=0)
        again.start()
        assert [state.id for state in again.all()] == ([run_id] if "id" in change else [])
        for state in again.all():
            again.resume(state.id)
            assert json.loads(place.read_text())["status"] == "QUEUED"
        again.close()
        assert list((tmp_path / "escape").iterdir()) == []


def graph(nodes: list[onnx.NodeProto], initial: list[onnx.TensorProto]) -> bytes:
    """A model from x (n, 3) to y."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "y")]
    ends[0] = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    made = helper.make_graph(nodes, "g", ends[:1], ends[1:], initial)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(made, opset_imports=opset, ir_version=8).SerializeToString()


def bomb() -> bytes:
    """Four hundred bytes that become six gigabytes."""
    nodes = [
        helper.make_node("ConstantOfShape", ["size"], ["zeros"]),
        helper.make_node("ReduceMax", ["zeros"], ["top"], keepdims=0),
        helper.make_node("ReduceSum", ["x", "one"], ["sum"], keepdims=1),
        helper.make_node("Add", ["sum", "top"], ["y"]),
    ]
    sizes = helper.make_tensor("size", TensorProto.INT64, [1], [1_600_000_000])
    return graph(nodes, [sizes, helper.make_tensor("one", TensorProto.INT64, [1], [1])])


def endless() -> bytes:
    """A loop without end."""
    values = [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", 7), ("c", 9), ("s", 1))]
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["c2"]),
            helper.make_node("Add", ["s", "s"], ["s2"]),
        ],
        "body",
        values,
        [helper.make_tensor_value_info("c2", 9, []), helper.make_tensor_value_info("s2", 1, [])],
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["start"], keepdims=0),
        helper.make_node("Loop", ["", "go", "start"], ["end"], body=body),
        helper.make_node("ReduceSum", ["x", "one"], ["sum"], keepdims=1),
        helper.make_node("Add", ["sum", "end"], ["y"]),
    ]
    go = helper.make_tensor("go", TensorProto.BOOL, [], [True])
    return graph(nodes, [go, helper.make_tensor("one", TensorProto.INT64, [1], [1])])


def test_a_small_file_that_takes_gigabytes_ends_in_a_clear_message(careful: Page) -> None:
    content = bomb()
    assert len(content) < 500
    answer = careful.send("model.onnx", content)
    if answer.status_code == 201:  # it is only needed when the model is asked
        run = careful.wait_end(answer.json()["id"])
        told = run["message"]
        assert run["status"] in ("FAILED", "INTERRUPTED")
    else:
        told = answer.json()["error"]
    assert "memory" in told.lower() or "alloc" in told.lower(), told
    assert careful.send("net.npz", saved(TEACHER, careful.folder), max_queries="5").status_code == 201


def test_a_target_that_never_answers_does_not_hold_its_place(tmp_path: Path) -> None:
    limits = Limits(run_seconds=600.0, overtime_seconds=0.5, grace_seconds=0.5)
    runs = Runs(tmp_path / "runs", at_once=1, limits=limits)
    runs.start()
    try:
        upload = runs.new_folder()
        request = RunRequest("file", "model.onnx", ".onnx", deadline=4.0)
        upload.target(request).write_bytes(endless())
        stuck = runs.add(upload, request, {}).id
        upload = runs.new_folder()
        request = RunRequest("file", "net.npz", ".npz", max_queries=5)
        upload.target(request).write_bytes(saved(TEACHER, tmp_path))
        waiting = runs.add(upload, request, {}).id
        poll(lambda: runs.get(stuck).status in ENDED)
        assert "did not end within 4 s" in runs.get(stuck).message
        poll(lambda: runs.get(waiting).status is RunStatus.FINISHED)
    finally:
        runs.close()


@pytest.fixture
def impatient() -> Iterator[tuple[str, int]]:
    """A server with the page's guard and protocol, whose patience is short."""

    class Quick(ImpatientProtocol):
        head_seconds = 0.3

    async def app(scope, receive, send) -> None:
        while (message := await receive())["type"] == "http.request" and message["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    guarded = Guard(app, Access("127.0.0.1"), "cookie", pause_seconds=0.3, body_seconds=2.0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(guarded, http=Quick, lifespan="off", log_level="critical", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield listener.getsockname()
        server.should_exit = True
        thread.join(PATIENCE)


def test_a_short_body_is_read_before_it_is_refused() -> None:
    """A client that still sends when the connection closes may see a reset instead of the answer."""
    events: list[str] = []
    parts = [b"a" * 10, b"b" * 10]

    async def receive() -> dict[str, object]:
        events.append("part")
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: MutableMapping[str, Any]) -> None:
        events.append(str(message.get("status", "body")))

    async def app(scope, receive, send) -> None:
        raise AssertionError("a stranger was let through")

    guarded = Guard(app, Access("127.0.0.1", "k" * 20), "cookie")
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    scope = {"type": "http", "method": "POST", "path": "/api/runs", "query_string": b"", "headers": headers}
    asyncio.run(guarded(scope, receive, send))
    assert events == ["part", "part", "401", "body"]


HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 100000\r\n"


@pytest.mark.parametrize("start", [b"", b"GET / HT", HEAD, HEAD + b"\r\n", HEAD + b"\r\nabc"])
@pytest.mark.parametrize("drips", [False, True])
def test_slow_clients_are_sent_away(impatient: tuple[str, int], start: bytes, drips: bool) -> None:
    connections = [socket.create_connection(impatient, timeout=PATIENCE) for _ in range(30)]
    for connection in connections:
        connection.sendall(start)
    last = time.monotonic() + PATIENCE
    waiting = set(connections)
    while waiting:
        assert time.monotonic() < last
        for connection in list(waiting):
            connection.settimeout(0.001)
            try:
                if drips:
                    connection.sendall(b"a")
                closed = connection.recv(65536) == b""
            except TimeoutError:
                closed = False
            except OSError:
                closed = True
            if closed:
                waiting.discard(connection)
                connection.close()
        time.sleep(0.02)


def test_an_ordinary_request_is_still_answered(impatient: tuple[str, int]) -> None:
    url = f"http://127.0.0.1:{impatient[1]}/"
    with httpx.Client(trust_env=False, headers={"Origin": url.rstrip("/")}) as client:
        for _ in range(3):
            assert client.post(url, content=os.urandom(200_000)).status_code == 200
            time.sleep(0.1)
