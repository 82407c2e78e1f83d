"""Every kind of file, answer and request that is read: good ones, and how to damage and read them."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
from numpy.random import Generator

import unweave
from fuzzing import mutations
from fuzzing.mutations import some
from unweave import Recovery
from unweave.cli.arguments import read_rows
from unweave.execution.store import open_store
from unweave.files.tables import read_table
from unweave.methods.smooth.evidence import SmoothEvidence
from unweave.recovery.result import Certificate, Status
from unweave.search import Check, LayerEvidence, Stage
from unweave.serving.model import ServedModel, answer_body
from unweave.targets.adapters.file_target import open_file_target
from unweave.targets.adapters.http_messages import UnreadableAnswer, parse_json, read_answers
from unweave.targets.queries import Queries
from unweave.targets.query_log import QueryLog
from unweave.web.app import PageOptions, create_app
from unweave.web.run_folder import RunFolder, RunState, RunStatus
from unweave.web.run_request import RunRequest, parse_request
from unweave.web.upload_stream import read_form
from unweave.web.views import summary_of

NET = unweave.random_network([3, 4, 2], "tanh", seed=0, outer="normal")
SKIPPED = unweave.Network(NET.weights, NET.biases, NET.activations, skip=np.eye(3)[:, :2])
ROWS = np.random.default_rng(0).standard_normal((20, 3))
KEY = "k" * 20


@dataclass(frozen=True)
class Format:
    """One kind of input."""

    name: str
    suffix: str
    seeds: Callable[[Path], list[bytes]]
    """Good contents; the folder is for those that only exist as files."""
    mutate: mutations.Mutation
    read: Callable[[Path], object]
    """Reads a file as the package does; what it raises is what a user would see."""
    sample: int = 100
    """How many are tried in the ordinary suite."""


def _saved(ending: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        contents = []
        for i, network in enumerate((NET, SKIPPED)):
            network.save(folder / f"{i}{ending}")
            contents.append((folder / f"{i}{ending}").read_bytes())
        return contents

    return seeds


def _load(path: Path) -> None:
    network = unweave.load(path)
    with np.errstate(all="ignore"):
        assert network(np.zeros((2, network.n_inputs))).shape == (2, network.n_outputs)


def _ask_model(path: Path) -> None:
    source = open_file_target(path)
    n_inputs = source.n_inputs or 3
    if n_inputs < 1000:
        Queries(source, n_inputs)(np.zeros((2, n_inputs)))


def _recoveries(folder: Path) -> list[bytes]:
    layer = LayerEvidence(1, 4, 1e-9, 10.0, None, 1, 100)
    residuals = {"tanh": 1e-9}
    evidence = SmoothEvidence(spectrum=np.ones(3), width=4, layers=(layer,), activation_residuals=residuals)
    result = Recovery(
        network=NET,
        status=Status.RECOVERED,
        error=1e-15,
        message="found",
        queries=100,
        probing_queries=10,
        verification_queries=10,
        seconds=1.5,
        stages=(Stage("look", 0.1, 10, {"noise": "float64", "spectrum": [1.0]}),),
        certificate=Certificate((Check("gap", 1.0, 0.5, True, "the width"),)),
        notes=("a note",),
        evidence=evidence,
        standard_errors=NET,
        settings={"target": {"kind": "x"}, "arguments": {}},
    )
    result.save(folder / "run.npz")
    return [(folder / "run.npz").read_bytes()]


def _read_recovery(path: Path) -> None:
    found = Recovery.load(path)
    repr(found)
    str(found.certificate)
    json.dumps(found.to_dict(), allow_nan=False)


def _recovery_mutated(content: bytes, rng: Generator) -> bytes:
    """Half of the time the header alone: it holds most of a result."""
    if rng.random() < 0.5:
        return mutations.archive_mutated(content, rng)
    arrays = dict(np.load(io.BytesIO(content)))
    text = mutations.json_mutated(str(arrays["recovery"]).encode(), rng).decode("utf-8", "replace")
    buffer = io.BytesIO()
    np.savez(buffer, **{**arrays, "recovery": np.array(text)})
    return buffer.getvalue()


def _csv(folder: Path) -> list[bytes]:
    lines = [",".join(map(repr, row)) for row in np.hstack([ROWS, NET(ROWS)]).tolist()]
    return ["\n".join(lines).encode(), "\n".join(["a,b,c,y,z", *lines, "1,,nan,2,3"]).encode()]


def _plain_csv(folder: Path) -> list[bytes]:
    return _csv(folder)[:1]


def _npy(folder: Path) -> list[bytes]:
    np.save(folder / "rows.npy", np.hstack([ROWS, NET(ROWS)]))
    return [(folder / "rows.npy").read_bytes()]


def _samples_npz(folder: Path) -> list[bytes]:
    np.savez(folder / "xy.npz", x=ROWS, y=NET(ROWS))
    return [(folder / "xy.npz").read_bytes()]


def _read_samples(path: Path) -> None:
    with np.errstate(all="ignore"):
        unweave.Samples(*read_table(str(path), None)).precision()


def _filled(path: Path) -> None:
    store = open_store(path)
    queries = Queries(NET, 3, log=QueryLog(store, "net"))
    queries(ROWS)
    queries(ROWS[:2], fresh=True)
    store.put("0" * 32, [np.arange(3.0), np.eye(2)])
    store.close()


def _sqlite(folder: Path) -> list[bytes]:
    _filled(folder / "run.sqlite")
    return [(folder / "run.sqlite").read_bytes()]


def _read_store(path: Path) -> None:
    store = open_store(path)
    try:
        queries = Queries(NET, 3, log=QueryLog(store), check_log=True)
        queries(ROWS[:5])
        queries(ROWS[:2], fresh=True)
        queries(ROWS + 1)
        store.get("0" * 32)
        store.put("1" * 32, [np.ones(2)])
    finally:
        with suppress(unweave.UnweaveError):
            queries.detach_log() if "queries" in locals() else None
        store.close()


def _folder_store(folder: Path) -> list[bytes]:
    """A folder of files as one archive, to be damaged like an archive."""
    place = folder / "run"
    _filled(place)
    files = [path for path in place.rglob("*") if path.is_file()]
    return [mutations.zipped({str(path.relative_to(place)): path.read_bytes() for path in files})]


def _folder_mutated(content: bytes, rng: Generator) -> bytes:
    """Damage, rename, drop or add one file of the folder."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = some(sorted(members), rng)
    kind = rng.random()
    if kind < 0.15:
        del members[name]
    elif kind < 0.3:
        copied = some((f"{name}.copy.npz", f"pieces/{int(rng.integers(99))}.npz"), rng)
        members[copied] = members[name]
    elif kind < 0.4:
        members[some(sorted(members), rng)] = members[name]
    elif name.endswith(".json"):
        members[name] = mutations.json_mutated(members[name], rng)
    else:
        members[name] = mutations.archive_mutated(members[name], rng)
    return mutations.zipped(members)


def _read_folder_store(path: Path) -> None:
    place = path.with_suffix("")
    shutil.rmtree(place, ignore_errors=True)
    (place / "pieces").mkdir(parents=True)
    (place / "results").mkdir()
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            (place / name).write_bytes(archive.read(name))
    _read_store(place)


def _answers(folder: Path) -> list[bytes]:
    bodies = [{"predictions": NET(ROWS[:3]).tolist()}, {"predictions": [0.5, 1.5, 2.5]}, {"n_inputs": 3}]
    return [json.dumps(body).encode() for body in bodies]


def _read_answers(path: Path) -> None:
    with suppress(UnreadableAnswer):  # which the target turns into words
        parse_json(path.read_bytes())
    with suppress(UnreadableAnswer):
        read_answers(path.read_bytes(), "predictions", 3, None, False)
    with suppress(UnreadableAnswer):
        read_answers(path.read_bytes(), "predictions.*.score", 3, 2, False)


def _states(folder: Path) -> list[bytes]:
    request = RunRequest("file", "net.npz", ".npz", hidden=(3, 2), domain=(-1.0, 1.0), deadline=5.0)
    told = {"message": "done", "verdict": "RECOVERED", "summary": "3-4-2", "found": {"inputs": 3}}
    state = RunState("x", request, RunStatus.FINISHED, 1.0, 1.0, 2.0, 3.0, attempt=1, **told)
    return [json.dumps(state.to_dict()).encode()]


def _read_state(path: Path) -> None:
    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / "state.json")
    json.dumps(summary_of(RunFolder(folder).read_state()))


BOUNDARY = "frontier"


def _forms(folder: Path) -> list[bytes]:
    uploaded = {"kind": "file", "hidden": "30,20", "activation": "tanh", "domain": "-1,1", "deadline": "9"}
    endpoint = {"kind": "endpoint", "url": "http://a/", "http_request": '{"x": "$rows"}', "token_env": "KEY"}
    file = _part('file"; filename="net.npz', "PK")
    forms = []
    for fields, more in ((uploaded, file), (endpoint, "")):
        parts = [_part(name, value) for name, value in fields.items()]
        forms.append("".join([*parts, more, f"--{BOUNDARY}--\r\n"]).encode())
    return forms


def _part(name: str, value: str) -> str:
    return f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'


def _read_form(path: Path) -> None:
    async def stream() -> AsyncIterator[bytes]:
        content = path.read_bytes()
        for start in range(0, len(content), 37):
            yield content[start : start + 37]

    kind = f"multipart/form-data; boundary={BOUNDARY}"
    form = asyncio.run(read_form(stream(), kind, path.with_suffix(".upload"), 1000))
    json.dumps(parse_request(form.fields, form.file_name).to_dict())


def _predictions(folder: Path) -> list[bytes]:
    return [json.dumps({"instances": ROWS.tolist()}).encode(), json.dumps({"inputs": [[1, 2, 3]]}).encode()]


def _read_examples(path: Path) -> object:
    return read_rows(path, "--examples")


MODEL = ServedModel(NET, 3, 2)

FORMATS = (
    Format("network .npz", ".npz", _saved(".npz"), mutations.archive_mutated, _load),
    Format("network .json", ".json", _saved(".json"), mutations.json_mutated, _load),
    Format("network .onnx", ".onnx", _saved(".onnx"), mutations.graph_mutated, _load),
    Format("model .onnx", ".onnx", _saved(".onnx"), mutations.graph_mutated, _ask_model, sample=60),
    Format("network .safetensors", ".safetensors", _saved(".safetensors"), mutations.tensors_mutated, _load),
    Format("recovery .npz", ".npz", _recoveries, _recovery_mutated, _read_recovery),
    Format("samples .csv", ".csv", _csv, mutations.bytes_mutated, _read_samples),
    Format("samples .npy", ".npy", _npy, mutations.npy_mutated, _read_samples),
    Format("samples .npz", ".npz", _samples_npz, mutations.archive_mutated, _read_samples),
    Format("examples .npy", ".npy", _npy, mutations.npy_mutated, _read_examples),
    Format("examples .npz", ".npz", _samples_npz, mutations.archive_mutated, _read_examples),
    Format("examples .csv", ".csv", _plain_csv, mutations.bytes_mutated, _read_examples),
    Format("checkpoint .sqlite", ".sqlite", _sqlite, mutations.database_mutated, _read_store, sample=40),
    Format("checkpoint folder", ".zip", _folder_store, _folder_mutated, _read_folder_store, sample=60),
    Format("answers of an endpoint", ".json", _answers, mutations.json_mutated, _read_answers),
    Format("state of a run", ".json", _states, mutations.json_mutated, _read_state),
    Format("form of the page", ".form", _forms, mutations.bytes_mutated, _read_form),
    Format(
        "request to a model",
        ".json",
        _predictions,
        mutations.json_mutated,
        lambda path: answer_body(MODEL, path.read_bytes()),
    ),
)


@contextmanager
def page_client(folder: Path) -> Iterator[Callable[[str, str, dict[str, str], bytes], int]]:
    """Yield a function that sends a request to the page, in this process, and returns the status."""
    app = create_app(PageOptions(folder, key=KEY))
    transport = httpx.ASGITransport(app=app)

    async def send(method: str, path: str, headers: dict[str, str], body: bytes) -> int:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.request(method, path, headers=headers, content=body)).status_code

    loop = asyncio.new_event_loop()
    try:
        yield lambda *request: loop.run_until_complete(send(*request))
    finally:
        loop.close()
