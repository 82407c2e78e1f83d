"""Everything an endpoint can do instead of answering: what the user is told, and what is tried again."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import threading
import traceback
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

from unweave.errors import InterruptedAnswers, InvalidInput, PartialAnswers, TargetError
from unweave.targets.adapters import http_batches
from unweave.targets.adapters.http_options import HttpOptions
from unweave.targets.adapters.http_target import open_http_target

URL = "http://model.example/v1/predict?key=urlsecret"
SHOWN = "The endpoint http://model.example/v1/predict\\?\\.\\.\\. "
ROWS = np.arange(6.0).reshape(3, 2)


def answer(request: httpx.Request) -> httpx.Response:
    rows = json.loads(request.content)["instances"]
    return httpx.Response(200, json={"predictions": [[sum(row)] for row in rows]})


class Script:
    """Plays one reaction per request: a response, an exception, None for a good answer. The last for ever."""

    def __init__(self, *reactions) -> None:
        self.reactions = list(reactions)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        reaction = self.reactions.pop(0) if len(self.reactions) > 1 else self.reactions[0]
        if isinstance(reaction, BaseException):
            raise reaction
        return answer(request) if reaction is None else reaction


def target_of(script: Script, url: str = URL, **options):
    given = {"n_inputs": 2, "backoff_seconds": 1e-3, **options}
    return open_http_target(url, HttpOptions(**given), transport=httpx.MockTransport(script))


def caused(outer: type[Exception], inner: Exception) -> Exception:
    error = outer("failed")
    error.__cause__ = inner
    return error


REFUSED = caused(httpx.ConnectError, ConnectionRefusedError(111, "Connection refused"))
UNKNOWN_HOST = caused(httpx.ConnectError, socket.gaierror(-2, "Name or service not known"))
DROPPED = httpx.RemoteProtocolError("Server disconnected without sending a response.")


def certificate_error() -> Exception:
    inner = ssl.SSLCertVerificationError(1, "certificate verify failed")
    inner.verify_message = "self-signed certificate"
    return caused(httpx.ConnectError, inner)


@pytest.mark.parametrize(
    ("reaction", "message", "requests"),
    [
        (REFUSED, "must be up. It refused the connection", 1),
        (UNKNOWN_HOST, "must have a host name that exists.*Name or service not known", 1),
        (certificate_error(), "certificate that can be verified.*self-signed certificate.*ca_file", 1),
        (caused(httpx.ConnectError, ssl.SSLError(1, "bad")), "must speak TLS.*http://", 1),
        (httpx.ConnectError("no route"), "must be up. It cannot be reached \\(no route\\)", 1),
        (httpx.ReadTimeout("slow"), "within 30 s.*ReadTimeout.*It was tried 4 times", 4),
        (DROPPED, "must answer every request. It dropped the connection.*tried 4 times", 4),
        (httpx.ReadError("reset"), "dropped the connection \\(ReadError: reset\\)", 4),
        (httpx.Response(401), "status 401, not authorised.*No key was sent.*token_env", 1),
        (httpx.Response(403), "status 403, not authorised", 1),
        (httpx.Response(404, text="no such page"), "exist and take POST. Got status 404.*'no such page'", 1),
        (httpx.Response(405), "take POST. Got status 405", 1),
        (httpx.Response(400, json={"error": "rows?"}), "status 400 instead, which says.*rows.*request", 1),
        (httpx.Response(413), "accept 3 rows per request. Got status 413.*batch_rows", 1),
        (httpx.Response(429), "status 429 instead. Lower requests_per_second.*tried 4 times", 4),
        (httpx.Response(500, text="boom"), "status 500 instead, which says 'boom'.*tried 4 times", 4),
        (httpx.Response(503), "status 503.*tried 4 times", 4),
        (
            httpx.Response(302, headers={"location": "https://login.example/in?next=abc"}),
            "Got a redirect \\(status 302\\) to https://login.example/in\\?\\.\\.\\. instead",
            1,
        ),
        (httpx.Response(301, headers={"location": "/v2?x=1"}), "to /v2 instead", 1),
        (httpx.Response(200, text="<html>" + "x" * 500), "HTML instead, which begins '<html>x{74}'", 3),
        (httpx.Response(200, text='{"predictions": [[1.'), "complete JSON.*tried 3 times", 3),
        (httpx.Response(200, json={"predictions": [[1.0]]}), "3 answers of equal length.*\\(1, 1\\)", 3),
        (httpx.Response(200, json={"predictions": [["a"], ["b"], ["c"]]}), "numbers. Got the text 'a'", 3),
        (httpx.Response(200, json={"scores": []}), "'predictions' at the top.*only 'scores'", 3),
    ],
)
def test_first_contact(reaction, message, requests):
    """A wrong address or option is told at once; what may be a bad moment is tried again."""
    script = Script(reaction)
    with (
        target_of(script, retries=3) as target,
        pytest.raises(PartialAnswers, match=SHOWN + ".*" + message) as told,
    ):
        target(ROWS)
    assert len(script.requests) == requests
    assert told.value.indices.size == 0
    assert "urlsecret" not in str(told.value)


@pytest.mark.parametrize("reaction", [REFUSED, UNKNOWN_HOST, DROPPED, httpx.Response(200, text="<html>")])
def test_after_an_answer_everything_that_may_pass_is_tried_again(reaction):
    script = Script(None, reaction, reaction, reaction, None)
    with target_of(script, retries=3, batch_rows=3) as target:
        np.testing.assert_array_equal(target(ROWS)[:, 0], ROWS.sum(axis=1))
        np.testing.assert_array_equal(target(ROWS)[:, 0], ROWS.sum(axis=1))
        assert (target.requests, target.retries, target.retried_rows) == (5, 3, 9)


def test_too_large_an_answer():
    with (
        target_of(Script(None), max_answer_bytes=20) as target,
        pytest.raises(TargetError, match="at most 20 bytes"),
    ):
        target(ROWS)


def test_retry_after_is_honoured(monkeypatch):
    waits = []

    class Told(threading.Event):
        def wait(self, timeout=None):
            waits.append(timeout)
            return False

    script = Script(httpx.Response(429, headers={"retry-after": "7"}), None)
    with target_of(script) as target:
        monkeypatch.setattr(http_batches, "threading", SimpleNamespace(**vars(threading) | {"Event": Told}))
        target(ROWS)
    assert max(waits) == pytest.approx(7.0, abs=0.1)


def test_retry_after_beyond_patience():
    script = Script(httpx.Response(503, headers={"retry-after": "9999"}))
    with (
        target_of(script) as target,
        pytest.raises(TargetError, match=r"asks to wait 9999 s; longest_pause_seconds is less"),
    ):
        target(ROWS)
    assert len(script.requests) == 1


def test_key_is_sent_and_never_shown(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, logger="unweave")
    monkeypatch.setenv("UNWEAVE_TEST_KEY", "tokensecret")
    echo = httpx.Response(500, text="your key tokensecret and headersecret are fine")
    script = Script(echo)
    with target_of(
        script, retries=1, token_env="UNWEAVE_TEST_KEY", headers={"X-Other": "headersecret"}
    ) as target:
        with pytest.raises(TargetError) as told:
            target(ROWS)
        shown = [repr(target), repr(target.options), str(told.value), caplog.text, repr(vars(target))]
    assert script.requests[0].headers["authorization"] == "Bearer tokensecret"
    assert script.requests[0].headers["x-other"] == "headersecret"
    assert "your key *** and *** are fine" in str(told.value)
    assert "retry in" in caplog.text
    assert not any("tokensecret" in text or "headersecret" in text for text in shown)


@pytest.mark.parametrize(
    "echo",
    [
        httpx.Response(500, text="your key tokensecret is fine"),
        httpx.Response(200, text="<html>tokensecret"),
        httpx.Response(200, json={"predictions": [["tokensecret"]] * 3}),
        httpx.Response(200, json={"tokensecret": 1}),
        httpx.RemoteProtocolError("illegal status line: b'tokensecret'"),
    ],
)
def test_a_key_that_is_echoed_is_not_in_the_chain_of_exceptions(monkeypatch, echo):
    monkeypatch.setenv("UNWEAVE_TEST_KEY", "tokensecret")
    with (
        target_of(Script(echo), retries=0, token_env="UNWEAVE_TEST_KEY") as target,
        pytest.raises(TargetError) as told,
    ):
        target(ROWS)
    chain = "".join(traceback.format_exception(told.value))
    assert "***" in chain
    assert "tokensecret" not in chain


def test_wrong_key_names_the_variable(monkeypatch):
    monkeypatch.setenv("UNWEAVE_TEST_KEY", "tokensecret")
    options = {"token_env": "UNWEAVE_TEST_KEY", "token_header": "X-Api-Key", "token_prefix": ""}
    script = Script(httpx.Response(403))
    with (
        target_of(script, **options) as target,
        pytest.raises(TargetError, match=r"environment variable UNWEAVE_TEST_KEY.*X-Api-Key") as told,
    ):
        target(ROWS)
    assert script.requests[0].headers["x-api-key"] == "tokensecret"
    assert "tokensecret" not in str(told.value)


@pytest.mark.parametrize("value", [None, "", "two\nlines"])
def test_missing_key(monkeypatch, value):
    monkeypatch.delenv("UNWEAVE_TEST_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("UNWEAVE_TEST_KEY", value)
    with pytest.raises(InvalidInput, match="UNWEAVE_TEST_KEY must hold the key") as told:
        target_of(Script(None), token_env="UNWEAVE_TEST_KEY")
    assert "lines" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://x/y", "must begin with http"),
        ("http://", "name a host"),
        ("model.example/predict", "must begin with http"),
        ("http://x:99999/", "must be an address"),
        ("http://user:pwsecret@x/", "must not hold a user name or password"),
        (7, "must"),
    ],
)
def test_bad_urls(url, message):
    with pytest.raises(InvalidInput, match=message) as told:
        open_http_target(url, HttpOptions(n_inputs=2))
    assert "pwsecret" not in str(told.value)


def test_bad_options_and_rows(tmp_path):
    with pytest.raises(InvalidInput, match="must be HttpOptions"):
        open_http_target("http://x/", {"n_inputs": 2})
    with pytest.raises(InvalidInput, match="ca_file must be an existing file"):
        open_http_target("https://x/", HttpOptions(n_inputs=2, ca_file=tmp_path / "none.pem"))
    (tmp_path / "bad.pem").write_text("nothing")
    with pytest.raises(InvalidInput, match="PEM"):
        open_http_target("https://x/", HttpOptions(n_inputs=2, ca_file=tmp_path / "bad.pem"))
    with target_of(Script(None)) as target:
        with pytest.raises(InvalidInput, match=r"shape \(n, 2\)"):
            target(np.ones((2, 3)))
        with pytest.raises(InvalidInput, match="finite"):
            target(np.full((1, 2), np.nan))


@pytest.mark.parametrize(
    ("reaction", "n_inputs"),
    [
        (httpx.Response(200, json={"n_inputs": 5, "n_outputs": 2}), 5),
        (httpx.Response(200, json={"n_inputs": "many"}), None),
        (httpx.Response(200, text="<html>"), None),
        (httpx.Response(404), None),
        (httpx.Response(403), None),
        (httpx.Response(500), None),
        (httpx.Response(302), None),
    ],
)
def test_metadata(reaction, n_inputs):
    script = Script(reaction)
    with target_of(script, n_inputs=None) as target:
        assert target.n_inputs == n_inputs
    assert [str(request.url) for request in script.requests] == ["http://model.example/v1/metadata"]


def test_nobody_there_is_told_when_opening():
    with pytest.raises(TargetError, match="refused the connection"):
        target_of(Script(REFUSED), n_inputs=None)
    with pytest.raises(TargetError, match="status 401, not authorised"):
        target_of(Script(httpx.Response(401)), n_inputs=None)


class Closing(httpx.MockTransport):
    """Counts how often it was closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_connection_is_kept_after_an_answer_and_thrown_away_after_anything_else():
    script = Script(None, None, KeyboardInterrupt(), None)
    transport = Closing(script)
    target = open_http_target(URL, HttpOptions(n_inputs=2, concurrency=1), transport=transport)
    target(ROWS)
    target(ROWS)
    assert transport.closed == 0
    with pytest.raises(InterruptedAnswers):
        target(ROWS)
    assert transport.closed == 1
    np.testing.assert_array_equal(target(ROWS), ROWS.sum(axis=1, keepdims=True))
    target.close()
    assert transport.closed == 2
