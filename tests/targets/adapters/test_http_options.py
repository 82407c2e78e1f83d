"""What may be said about an endpoint, and that keys stay out of sight."""

from __future__ import annotations

import dataclasses

import pytest

from unweave.errors import InvalidInput
from unweave.targets.adapters.http_options import HttpOptions


def test_template_may_be_text_or_structure():
    assert HttpOptions(request={"inputs": "$rows"}).request == '{"inputs": "$rows"}'
    assert HttpOptions(request='{"inputs": "$rows"}') == HttpOptions(request={"inputs": "$rows"})
    assert HttpOptions(request="$rows").request == '"$rows"'
    assert not HttpOptions().one_row
    assert HttpOptions(request={"x": ["$row"]}).one_row


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("request", {"inputs": "rows"}, "exactly one of"),
        ("request", {"a": "$rows", "b": "$row"}, "Got \\$rows and \\$row"),
        ("request", {"a": {1, 2}}, "must be JSON"),
        ("request", {"$rows": 1}, "none of them"),
        ("answers", 3, "must be a path"),
        ("n_inputs", 0, "n_inputs must be a whole number >= 1"),
        ("n_outputs", 1.5, "n_outputs must be a whole number"),
        ("batch_rows", 0, "batch_rows must be"),
        ("concurrency", True, "concurrency must be"),
        ("retries", -1, "retries must be a whole number >= 0"),
        ("requests_per_second", 0, "requests_per_second must be a positive number"),
        ("rows_per_second", float("nan"), "rows_per_second must be"),
        ("timeout_seconds", float("inf"), "timeout_seconds must be"),
        ("backoff_seconds", "1", "backoff_seconds must be"),
        ("headers", ["a"], "headers must map"),
        ("headers", {"": "x"}, "name of a header"),
        ("token_env", "", "token_env must be"),
        ("token_prefix", "a\nb", "plain text"),
        ("max_answer_bytes", 0, "max_answer_bytes"),
        ("seed", -1, "seed"),
    ],
)
def test_bad_options_are_refused(name, value, message):
    with pytest.raises(InvalidInput, match=message):
        HttpOptions(**{name: value})


def test_one_row_and_batches_exclude_each_other():
    with pytest.raises(InvalidInput, match="batch_rows must be 1"):
        HttpOptions(request={"x": "$row"}, batch_rows=8)


def test_keys_are_not_shown():
    options = HttpOptions(headers={"X-Key": "topsecret"}, request={"key": "alsosecret", "x": "$rows"})
    assert "secret" not in repr(options)
    with pytest.raises(InvalidInput) as refused:
        HttpOptions(headers={"X-Key": "top\nsecret"})
    assert "secret" not in str(refused.value)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        HttpOptions().retries = 3
