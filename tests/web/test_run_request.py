"""Fields of the form become a request, or a sentence that names the field."""

from __future__ import annotations

import json

import pytest

from unweave.errors import InvalidInput
from unweave.web.run_folder import RunState, RunStatus, is_run_id, new_run_id
from unweave.web.run_request import FieldError, RunRequest, parse_request, shown_name


def test_every_field_arrives_and_survives_json() -> None:
    form = {
        "kind": "file",
        "hidden": "30, 20",
        "activation": "logistic",
        "output_activation": "softmax",
        "inputs": "7",
        "domain": "-1, 2.5",
        "max_queries": "1000",
        "deadline": "2.5",
        "seed": "3",
        "averaging": "64",
    }
    request = parse_request(form, "teacher.ONNX")
    assert request == RunRequest(
        kind="file",
        name="teacher.ONNX",
        ending=".onnx",
        inputs=7,
        hidden=(30, 20),
        activation="sigmoid",
        output_activation="softmax",
        domain=(-1.0, 2.5),
        max_queries=1000,
        deadline=2.5,
        seed=3,
        averaging=64.0,
    )
    state = RunState(new_run_id(), request, RunStatus.QUEUED, 1.0, 2.0, found={"inputs": 7})
    assert RunState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
    assert is_run_id(state.id)


def test_empty_fields_mean_find_out() -> None:
    request = parse_request({"kind": "file", "hidden": "  ", "seed": ""}, "a.npz")
    assert request == RunRequest(kind="file", name="a.npz", ending=".npz")
    assert parse_request({"hidden": "none"}, "a.npz").hidden == ()


def test_an_endpoint_is_shown_without_the_values_of_its_query() -> None:
    request = parse_request(
        {
            "kind": "endpoint",
            "url": "https://example.org/predict?key=secret",
            "http_request": '{"inputs": "$rows"}',
            "http_answers": "outputs.*.score",
            "token_env": "MODEL_KEY",
        },
        None,
    )
    assert request.name == "https://example.org/predict?..."
    assert request.url == "https://example.org/predict?key=secret"


@pytest.mark.parametrize(
    ("field", "form"),
    [
        ("kind", {"kind": "else"}),
        ("hidden", {"hidden": "30;20"}),
        ("hidden", {"hidden": "0"}),
        ("activation", {"activation": "tan"}),
        ("output_activation", {"output_activation": "relu6"}),
        ("domain", {"domain": "1"}),
        ("domain", {"domain": "2,1"}),
        ("domain", {"domain": "-inf,1"}),
        ("max_queries", {"max_queries": "1e3"}),
        ("max_queries", {"max_queries": "0"}),
        ("deadline", {"deadline": "nan"}),
        ("deadline", {"deadline": "soon"}),
        ("seed", {"seed": "-1"}),
        ("averaging", {"averaging": "1"}),
        ("inputs", {"inputs": "0"}),
        ("url", {"kind": "endpoint"}),
        ("url", {"kind": "endpoint", "url": "file:///etc/passwd"}),
        ("url", {"kind": "endpoint", "url": "http://me:secret@example.org/"}),
        ("http_request", {"kind": "endpoint", "url": "http://a/", "http_request": "{}"}),
        ("token_env", {"kind": "endpoint", "url": "http://a/", "token_env": "not a name"}),
        ("domain", {"kind": "table", "domain": "-1,1"}),
    ],
)
def test_what_cannot_be_used_is_named(field: str, form: dict[str, str]) -> None:
    with pytest.raises(FieldError, match=r"must") as caught:
        parse_request(form, "table.csv" if form.get("kind") == "table" else "a.npz")
    assert caught.value.field == field
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\models\\a.npz", "a.npz"),
        ("a\x00\n\u202eb.npz", "ab.npz"),
        ("/", "unnamed"),
        ("x" * 500 + ".npz", "x" * 116 + ".npz"),
    ],
)
def test_given_names_are_only_shown(given: str, shown: str) -> None:
    assert shown_name(given) == shown


@pytest.mark.parametrize(
    "text", ["..", "20260131-120000-1a2b3c4d/", "20260131-120000-1A2B3C4D", "", ".new-x"]
)
def test_names_of_runs_cannot_be_paths(text: str) -> None:
    assert not is_run_id(text)


def test_every_task_takes_its_own_fields() -> None:
    form = {"task": "audit", "decimals": "4, 2", "noise": "0.1", "budgets": "100,10"}
    request = parse_request(form, "a.npz")
    assert (request.decimals, request.noise, request.budgets) == ((4, 2), (0.1,), (100, 10))
    assert RunRequest.from_dict(json.loads(json.dumps(request.to_dict()))) == request
    pair = parse_request({"task": "compare"}, "a.npz", "dir/b.onnx")
    assert (pair.other_name, pair.other_ending) == ("b.onnx", ".onnx")
    sample = parse_request({"kind": "sample", "task": "plan"}, "evil.pkl")
    assert (sample.kind, sample.sample, sample.ending) == ("file", True, ".npz")


@pytest.mark.parametrize(
    ("form", "other", "field", "message"),
    [
        ({"task": "steal"}, None, "task", "The task must be recover, audit, compare, plan"),
        ({"task": "audit", "kind": "table"}, None, "kind", "The target of audit must be file or endpoint"),
        ({"task": "compare", "kind": "endpoint"}, "b.npz", "kind", "The target of compare must be file"),
        ({"task": "compare"}, None, "other", "A second model file must be chosen"),
        ({"task": "compare"}, "b.pkl", "other", "such files may run code"),
        ({"task": "audit", "decimals": "many"}, None, "decimals", "Decimals must be numbers"),
        ({"task": "audit", "decimals": "99"}, None, "decimals", "Decimals must be numbers"),
        ({"task": "audit", "noise": "-1"}, None, "noise", "Noise must be numbers"),
        ({"task": "audit", "budgets": "0"}, None, "budgets", "Queries per client must be numbers"),
    ],
)
def test_tasks_that_cannot_be_done(form: dict[str, str], other: str | None, field: str, message: str) -> None:
    with pytest.raises(FieldError, match=message) as told:
        parse_request(form, "table.csv" if form.get("kind") == "table" else "a.npz", other)
    assert told.value.field == field


@pytest.mark.parametrize("change", [{"task": "steal"}, {"other_ending": "/../x"}, {"kind": "table"}])
def test_a_state_from_elsewhere_names_a_known_task(change: dict[str, str]) -> None:
    content = parse_request({"task": "compare"}, "a.npz", "b.npz").to_dict()
    assert RunRequest.from_dict(content).other_ending == ".npz"
    with pytest.raises(InvalidInput):
        RunRequest.from_dict({**content, **change})
