"""Who may talk to the page, and what every answer carries."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from served_page import KEY, PATIENCE, TEACHER, Page, saved

from unweave.errors import InvalidInput
from unweave.web.guards import Access

MISSING = "20260131-120000-1a2b3c4d"


def stranger(locked: Page) -> httpx.Client:
    """Somebody who sends nothing by himself."""
    url = locked.url.replace("0.0.0.0", "127.0.0.1")
    return httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE)


@pytest.mark.parametrize(
    "path", ["/", f"/runs/{MISSING}", "/api/runs", "/static/style.css", "/static/run.js", "/x"]
)
def test_every_answer_carries_the_headers(page: Page, path: str) -> None:
    headers = page.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


def test_pages_load_nothing_from_elsewhere_and_have_no_inline_script(page: Page) -> None:
    for path in ("/", f"/runs/{MISSING}", "/login"):
        text = page.get(path).text
        assert "<script>" not in text
        assert "style=" not in text
        assert " on" + "click" not in text
        sources = [part.split('"')[0] for part in text.replace('href="', 'src="').split('src="')[1:]]
        assert all(source.startswith(("/", "#")) and not source.startswith("//") for source in sources)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8377", "127.0.0.1.evil.example", "", "a@localhost", "[::2]"]
)
def test_foreign_names_of_this_machine_are_not_answered(page: Page, host: str) -> None:
    response = page.get("/api/runs", headers={"Host": host})
    assert response.status_code in (400, 421)
    assert "runs" not in response.json() if response.status_code == 421 else True


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "[::1]:80"])
def test_own_names_are_answered(page: Page, host: str) -> None:
    assert page.get("/api/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://", "", "http://[", None]
)
@pytest.mark.parametrize(
    "path", ["/api/runs", f"/api/runs/{MISSING}/cancel", f"/api/runs/{MISSING}/delete", "/login"]
)
def test_other_pages_cannot_change_anything(page: Page, origin: str | None, path: str) -> None:
    request = page.client.build_request("POST", path)
    del request.headers["Origin"]
    if origin is not None:
        request.headers["Origin"] = origin
    assert page.client.send(request).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/static/..%2fapp.py",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/api/runs/..%2f..%2fetc",
        "/api/runs/%2e%2e",
        f"/api/runs/{MISSING}/files/..%2f..%2fstate.json",
        "/runs/../report",
    ],
)
def test_no_path_leads_out(page: Page, path: str) -> None:
    # Sent as it is: a client would tidy the path up.
    host, port = page.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        cookie = "; ".join(f"{name}={value}" for name, value in page.client.cookies.items())
        head = ("Host: localhost", f"Cookie: {cookie}", "Connection: close", "", "")
        connection.sendall("\r\n".join([f"GET {path} HTTP/1.1", *head]).encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split()[1] == b"404"
    assert b"root:" not in answer


def test_files_of_a_run_go_by_their_known_names_only(page: Page, tmp_path: Path) -> None:
    run_id = page.begin("teacher.npz", saved(TEACHER, tmp_path), max_queries="5")
    page.wait_end(run_id)
    assert page.get(f"/api/runs/{run_id}/files/log.txt").status_code == 200
    for name in ("state.json", "target.npz", "progress.json", "outcome.json", "log.txt%00", "LOG.TXT"):
        assert page.get(f"/api/runs/{run_id}/files/{name}").status_code == 404


def test_without_the_key_nothing_is_answered(locked: Page) -> None:
    with stranger(locked) as client:
        assert client.get("/api/runs").status_code == 401
        assert client.get("/").headers["location"] == "/login"
        assert client.get(f"/runs/{MISSING}/report").headers["location"] == "/login"
        assert (
            client.post(
                f"/api/runs/{MISSING}/cancel", headers={"Origin": str(client.base_url).rstrip("/")}
            ).status_code
            == 401
        )
        assert client.get("/login").status_code == 200
        assert client.get("/static/style.css").status_code == 200


def test_the_key_opens_by_header_and_by_cookie(locked: Page) -> None:
    with stranger(locked) as client:
        bearer = {"Authorization": f"Bearer {KEY}"}
        assert client.get("/api/runs", headers=bearer).status_code == 200
        assert (
            client.post(f"/api/runs/{MISSING}/cancel", headers=bearer).status_code == 404
        )  # no Origin needed
        assert client.get("/api/runs", headers={"Authorization": "Bearer wrong"}).status_code == 401
        origin = {"Origin": str(client.base_url).rstrip("/")}
        assert client.post("/login", content=b"wrong", headers=origin).status_code == 401
        answer = client.post("/login", content=KEY.encode(), headers=origin)
        said = answer.headers["set-cookie"]
        assert "HttpOnly" in said
        assert "samesite=strict" in said.lower()
        assert KEY not in said
        assert client.get("/api/runs").status_code == 200
        assert (
            client.post(f"/api/runs/{MISSING}/cancel").status_code == 403
        )  # the cookie alone changes nothing
        assert client.post(f"/api/runs/{MISSING}/cancel", headers=origin).status_code == 404


def test_the_key_of_the_page_cannot_be_sent_to_an_endpoint(locked: Page) -> None:
    fields = {"kind": "endpoint", "url": "http://127.0.0.1:1/", "token_env": "PAGE_KEY"}
    response = locked.post(
        "/api/runs",
        files=[(name, (None, value)) for name, value in fields.items()],
        headers={"Authorization": f"Bearer {KEY}"},
    )
    assert (response.status_code, response.json()["field"]) == (422, "token_env")


def test_cookies_end_and_cannot_be_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    access = Access("0.0.0.0", KEY)
    cookie = access.new_cookie()
    assert access.is_cookie(cookie)
    assert not access.is_cookie(cookie.replace(cookie[:4], "9999", 1))
    assert not Access("0.0.0.0", KEY + "x").is_cookie(cookie)
    assert not access.is_cookie("")
    monkeypatch.setattr(time, "time", lambda: 1e11)
    assert not access.is_cookie(cookie)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_beyond_this_machine_a_key_is_required(host: str) -> None:
    with pytest.raises(InvalidInput, match="--token-env must be given"):
        Access(host)
    with pytest.raises(InvalidInput, match="16 plain characters"):
        Access(host, "short")


def test_the_command_refuses_to_start_there_without_one(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "unweave",
        "serve",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--folder",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--token-env must be given" in done.stderr
