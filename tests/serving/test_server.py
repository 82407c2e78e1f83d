"""The reference server: its protocol, its counts, and the faults it makes."""

from __future__ import annotations

import json
import socket
import time

import httpx
import numpy as np
import pytest

import unweave
from unweave.errors import InvalidInput
from unweave.serving import Faults, ReferenceServer, ServedModel, load_model
from unweave.serving.faults import CORRUPTIONS, Dice, Fault
from unweave.serving.model import answer_body

NET = unweave.random_network([3, 4, 2], activation="tanh", seed=1000, outer="normal")
MODEL = ServedModel(NET, 3, 2)
ROWS = np.random.default_rng(1000).standard_normal((10, 3))


def post(server: ReferenceServer, content, **options) -> httpx.Response:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    with httpx.Client(trust_env=False) as client:
        return client.post(server.url, content=body, **options)


def get(server: ReferenceServer, name: str, **options) -> httpx.Response:
    with httpx.Client(trust_env=False) as client:
        return client.get(server.url.replace("predict", name), **options)


def drip(client: socket.socket) -> None:
    while True:
        client.sendall(b"x")
        time.sleep(0.01)


def test_protocol():
    with ReferenceServer(MODEL) as server:
        assert server.url.startswith("http://127.0.0.1:")
        for name in ("instances", "inputs"):
            answers = post(server, {name: ROWS.tolist()}).json()["predictions"]
            np.testing.assert_array_equal(answers, NET(ROWS))
        assert get(server, "metadata").json() == {"n_inputs": 3, "n_outputs": 2}
        assert get(server, "health").json() == {"status": "ok"}
        assert get(server, "count").json() == server.counts
        assert server.counts["rows_answered"] == 20
        assert server.counts["requests"] == 2
        assert get(server, "nothing").status_code == 404
        with httpx.Client(trust_env=False) as client:
            root = server.url.removesuffix("predict")
            assert client.post(root, json={"instances": ROWS.tolist()}).status_code == 200
            assert client.post(root + "other", json={}).status_code == 404


@pytest.mark.parametrize("start", [b"", b"POST /predict HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"])
def test_a_request_that_drips_byte_by_byte_is_cut_off(start, monkeypatch):
    monkeypatch.setattr("unweave.serving.server._ARRIVAL_SECONDS", 0.2)
    with (
        ReferenceServer(MODEL) as server,
        socket.create_connection(("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))) as client,
    ):
        client.sendall(start)
        with pytest.raises(OSError, match=r"reset|[Bb]roken"):
            drip(client)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "without that name"),
        (b'{"rows": []}', "without that name"),
        (b'{"instances": [[1, 2, 3], [1]]}', "different lengths"),
        (b'{"instances": [["a", "b", "c"]]}', "no numbers"),
        (b'{"instances": [[1, 2]]}', "shape"),
        (b'{"instances": []}', "shape"),
        (b'{"instances": [[NaN, 0, 0]]}', "not finite"),
    ],
)
def test_bad_requests_are_refused_and_cost_nothing(body, message):
    with ReferenceServer(MODEL) as server:
        response = post(server, body)
        assert response.status_code == 400
        assert message in response.json()["error"]
        assert server.counts["rows_answered"] == 0


def test_length_must_be_told():
    with ReferenceServer(MODEL) as server:
        response = post(server, b"", headers={"transfer-encoding": "chunked"})
        assert response.status_code == 411
        host, port = server.url.split("/")[2].split(":")
        with socket.create_connection((host, int(port)), timeout=5) as line:
            line.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
            assert line.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost"}, 200),
    ],
)
def test_pages_from_elsewhere_get_no_answer(headers, status):
    with ReferenceServer(MODEL) as server, httpx.Client(trust_env=False) as client:
        asked = client.post(server.url, headers=headers, json={"instances": [[0.0] * MODEL.n_inputs]})
        told = client.get(server.url.replace("predict", "metadata"), headers=headers)
        assert (asked.status_code, told.status_code) == (status, status)
        assert server.counts["rows_answered"] == (1 if status == 200 else 0)


def test_own_names_are_answered():
    with ReferenceServer(MODEL, host="127.0.0.2") as server, httpx.Client(trust_env=False) as client:
        url = server.url.replace("predict", "metadata")
        assert client.get(url, headers={"Origin": url.removesuffix("/metadata")}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "203.0.113.1"])
def test_beyond_this_machine_a_key_is_required(host):
    with pytest.raises(InvalidInput, match="beyond this machine"):
        ReferenceServer(MODEL, host=host)


def test_key():
    with ReferenceServer(MODEL, token="opensesame") as server:
        body = {"instances": ROWS.tolist()}
        assert post(server, body).status_code == 401
        assert post(server, body, headers={"authorization": "Bearer wrong"}).status_code == 401
        assert get(server, "metadata").status_code == 401
        assert get(server, "health").status_code == 200
        assert server.counts["rows_answered"] == 0
        assert post(server, body, headers={"authorization": "Bearer opensesame"}).status_code == 200


def test_rounding_and_noise():
    with ReferenceServer(MODEL, faults=Faults(decimals=2)) as server:
        answers = post(server, {"instances": ROWS.tolist()}).json()["predictions"]
        np.testing.assert_array_equal(answers, np.round(NET(ROWS), 2))
    with ReferenceServer(MODEL, faults=Faults(noise=0.1, seed=1)) as server:
        many = np.repeat(ROWS[:1], 20_000, axis=0)
        errors = np.array(post(server, {"instances": many.tolist()}).json()["predictions"]) - NET(ROWS[:1])
        # The standard error of a standard deviation from n values is sigma / sqrt(2 n).
        assert errors.std() == pytest.approx(0.1, abs=5 * 0.1 / np.sqrt(2 * errors.size))


@pytest.mark.parametrize("fault", CORRUPTIONS)
def test_each_damage(fault, monkeypatch):
    monkeypatch.setattr(Dice, "fate", lambda _: (fault, 0.0))
    with ReferenceServer(MODEL) as server:
        body = {"instances": ROWS.tolist()}
        if fault is Fault.CUT:
            with pytest.raises(httpx.RemoteProtocolError):
                post(server, body)
        else:
            response = post(server, body)
            if fault is Fault.ERROR:
                assert response.status_code == 500
            elif fault is Fault.SHAPE:
                assert len(response.json()["predictions"]) == 9
            else:
                with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
                    response.json()
        assert server.counts["rows_corrupted"] == 10
        assert server.counts["rows_answered"] == 0


def test_dropped():
    with ReferenceServer(MODEL, faults=Faults(drop=1.0)) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            post(server, {"instances": ROWS.tolist()})
        assert server.counts["rows_dropped"] == 10


def test_fates_have_their_shares():
    dice = Dice(Faults(drop=0.2, corrupt=0.3, delay=0.1, delay_seconds=2.0, seed=5))
    fates = [dice.fate() for _ in range(10_000)]
    shares = {fault: np.mean([fate is fault for fate, _ in fates]) for fault in Fault}
    expected = {Fault.NONE: 0.5, Fault.DROP: 0.2, **dict.fromkeys(CORRUPTIONS, 0.06)}
    for fault, share in expected.items():
        assert shares[fault] == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 10_000))
    assert np.mean([delay == 2.0 for _, delay in fates]) == pytest.approx(0.1, abs=0.015)
    again = Dice(Faults(drop=0.2, corrupt=0.3, delay=0.1, delay_seconds=2.0, seed=5))
    assert fates[:100] == [again.fate() for _ in range(100)]


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"drop": 1.5}, "drop must be between 0 and 1"),
        ({"delay": -0.1}, "delay must be"),
        ({"drop": 0.6, "corrupt": 0.6}, "at most 1"),
        ({"noise": -1.0}, "noise must be"),
        ({"delay_seconds": float("inf")}, "delay_seconds"),
    ],
)
def test_bad_faults(faults, message):
    with pytest.raises(InvalidInput, match=message):
        Faults(**faults)


def test_a_taken_port_is_told():
    with ReferenceServer(MODEL) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        with pytest.raises(InvalidInput, match="free to listen on"):
            ReferenceServer(MODEL, port=port)


def test_close_without_start():
    ReferenceServer(MODEL).close()


@pytest.mark.parametrize("ending", [".npz", ".json", ".onnx"])
def test_files(tmp_path, ending):
    path = tmp_path / f"net{ending}"
    NET.save(path)
    model = load_model(path)
    assert (model.n_inputs, model.n_outputs) == (3, 2)
    np.testing.assert_allclose(model(ROWS), NET(ROWS), rtol=0, atol=1e-14)
    answers = json.loads(answer_body(model, json.dumps({"instances": ROWS.tolist()}).encode()))
    np.testing.assert_array_equal(answers["predictions"], model(ROWS))


def test_missing_file(tmp_path):
    with pytest.raises(InvalidInput, match="existing file"):
        load_model(tmp_path / "none.npz")
