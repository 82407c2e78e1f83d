"""What a run is asked to do: the fields of the form, checked, in words of JSON."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

import numpy as np

from unweave.errors import InvalidInput
from unweave.files import FORMATS, PICKLES
from unweave.files.tables import TABLE_ENDINGS
from unweave.files.typed_values import built
from unweave.networks.activations import SOFTMAX, activation_names, get_activation
from unweave.search.request import interval_from_text, widths_from_text

T = TypeVar("T")

FILE, ENDPOINT, TABLE = "file", "endpoint", "table"
KINDS = (FILE, ENDPOINT, TABLE)
SAMPLE = "sample"
"""Kind in the form that stands for the network that comes with the page."""
SAMPLE_NAME = "sample-network.npz"
RECOVER, AUDIT, COMPARE, PLAN = "recover", "audit", "compare", "plan"
TASKS = {RECOVER: KINDS, AUDIT: (FILE, ENDPOINT), COMPARE: (FILE,), PLAN: (FILE, ENDPOINT)}
"""What a run may do -> kinds of targets that it may do it with."""
ENDINGS = {FILE: tuple(FORMATS), TABLE: tuple(ending for ending in TABLE_ENDINGS if ending != ".npy")}
"""Kind of target -> endings of the files that are opened."""
OUTPUT_ACTIVATIONS = ("identity", "tanh", "sigmoid", SOFTMAX, "exp")
NO_LAYER = "none"
"""Text that stands for a network without hidden layer; an empty field means unknown."""
MOST_NAME = 120
"""Characters of a file's given name that are kept; it is only ever shown."""

_ASKING_ONLY = ("inputs", "output_activation", "domain", "max_queries", "averaging")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class FieldError(InvalidInput):
    """A field of the form cannot be used; ``field`` is its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class RunRequest:
    """One run, as it was asked for. ``name`` is what the user calls the target, and is never opened."""

    kind: str
    name: str
    ending: str = ""
    """Of the file in the run's folder, which is called ``target`` and this."""
    url: str | None = None
    http_request: str | None = None
    http_answers: str | None = None
    token_env: str | None = None
    inputs: int | None = None
    outputs: int | None = None
    hidden: tuple[int, ...] | None = None
    activation: str | None = None
    output_activation: str | None = None
    domain: tuple[float, float] | None = None
    max_queries: int | None = None
    deadline: float | None = None
    seed: int = 0
    averaging: float | None = None
    task: str = RECOVER
    sample: bool = False
    """Whether the target is the network that comes with the page."""
    other_name: str = ""
    """What the user calls the second file of a comparison."""
    other_ending: str = ""
    decimals: tuple[int, ...] | None = None
    noise: tuple[float, ...] | None = None
    budgets: tuple[int, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> RunRequest:
        """Return what `to_dict` wrote; names that this version does not know are left out.

        `InvalidInput` if it is something else.
        """
        known = {entry.name: content[entry.name] for entry in fields(RunRequest) if entry.name in content}
        for name in ("hidden", "domain", "decimals", "noise", "budgets"):
            if isinstance(known.get(name), list):
                known[name] = tuple(known[name])
        request = built(RunRequest, known)
        known_ending = request.ending in ("", *ENDINGS.get(request.kind, ()))
        known_ending &= request.other_ending in ("", *ENDINGS[FILE])
        if request.kind not in TASKS.get(request.task, ()) or not known_ending:
            raise InvalidInput(
                f"A run must be of a known kind. Got {request.kind!r} with a file {request.ending!r} instead."
            )
        return request


def parse_request(
    form: Mapping[str, str], file_name: str | None, other_name: str | None = None
) -> RunRequest:
    """Return the request in the fields of the form; `FieldError` names the first field that cannot be used.

    ``file_name`` is that of the uploaded file, as the browser said it; None if there was none. ``other_name``
    is that of the second file, which a comparison needs.

    >>> parse_request({"kind": "file", "hidden": "30, 20"}, "../../teacher.npz").name
    'teacher.npz'
    """
    form = {name: value.strip() for name, value in form.items() if value.strip()}
    kind, task = form.get("kind", FILE), form.get("task", RECOVER)
    is_sample = kind == SAMPLE
    if is_sample:
        kind, file_name = FILE, SAMPLE_NAME
    if task not in TASKS:
        raise FieldError("task", f"The task must be {', '.join(TASKS)}. Got {task!r} instead.")
    if kind not in KINDS:
        raise FieldError("kind", f"The kind of target must be {', '.join(KINDS)}. Got {kind!r} instead.")
    if kind not in TASKS[task]:
        raise FieldError(
            "kind", f"The target of {task} must be {' or '.join(TASKS[task])}. Got {kind!r} instead."
        )
    useless = [name for name in _ASKING_ONLY if name in form] if kind == TABLE else []
    if useless:
        raise FieldError(
            useless[0], f"A table is not asked anything, so {', '.join(useless)} must be left empty."
        )
    if kind == ENDPOINT:
        target = _endpoint(form)
    else:
        target = _file(kind, file_name)
        target["outputs"] = _number(form, "outputs", "Answers per row", int, 1) if kind == TABLE else None
    return RunRequest(
        kind=kind,
        **target,
        inputs=_number(form, "inputs", "Number of inputs", int, 1),
        hidden=_hidden(form.get("hidden")),
        activation=_activation(form.get("activation")),
        output_activation=_output_activation(form.get("output_activation")),
        domain=_domain(form.get("domain")),
        max_queries=_number(form, "max_queries", "Maximum queries", int, 1),
        deadline=_number(form, "deadline", "Maximum seconds", float, 0),
        seed=_number(form, "seed", "Seed", int, 0) or 0,
        averaging=_number(form, "averaging", "Averaging", float, 2),
        task=task,
        sample=is_sample,
        **(_second_file(other_name) if task == COMPARE else {}),
        **(_levels(form) if task == AUDIT else {}),
    )


def _second_file(name: str | None) -> dict[str, Any]:
    try:
        target = _file(FILE, name)
    except FieldError as error:
        raise FieldError("other", str(error).replace("A model file", "A second model file")) from error
    return {"other_name": target["name"], "other_ending": target["ending"]}


def _levels(form: Mapping[str, str]) -> dict[str, Any]:
    """Return what an audit is to try, checked as the audit itself checks it."""
    from unweave.audits.level import checked_levels
    from unweave.audits.run import checked_budgets

    told: dict[str, Any] = {}
    fields_of: tuple[tuple[str, str, Callable[[str], Any], Callable[[Any], Any]], ...] = (
        ("decimals", "Decimals", int, lambda values: checked_levels(values, ())),
        ("noise", "Noise", float, lambda values: checked_levels((), values)),
        ("budgets", "Queries per client", int, checked_budgets),
    )
    for field, words, kind, check in fields_of:
        text = form.get(field)
        if text is None:
            continue
        try:
            values = tuple(kind(part) for part in text.split(","))
            check(values)
        except (ValueError, InvalidInput) as error:
            raise FieldError(
                field, f"{words} must be numbers with commas between. Got {text!r} instead."
            ) from error
        told[field] = values
    return told


def shown_name(name: str) -> str:
    """Return the visible characters of a file name's last part: for showing, not for opening."""
    last = re.split(r"[/\\]", name)[-1]
    visible = "".join(letter for letter in last if unicodedata.category(letter)[0] != "C").strip()
    return visible[-MOST_NAME:] or "unnamed"


def _file(kind: str, file_name: str | None) -> dict[str, Any]:
    what = "model file" if kind == FILE else "table"
    endings = " or ".join(ENDINGS[kind])
    if not file_name:
        raise FieldError("file", f"A {what} must be chosen ({endings}).")
    name = shown_name(file_name)
    dot = name.rfind(".")
    ending = name[dot:].lower() if dot >= 0 else ""
    if ending in PICKLES:
        raise FieldError(
            "file",
            f"The {what} must end in {endings}. Got {name!r} instead: such files may run code when they are "
            "opened, so they never are. Export the model to .onnx.",
        )
    if ending not in ENDINGS[kind]:
        raise FieldError("file", f"The {what} must end in {endings}. Got {name!r} instead.")
    return {"name": name, "ending": ending}


def _endpoint(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the address and messages of an endpoint, checked as far as that goes without asking it."""
    from unweave.targets.adapters.answer_source import optional_package

    optional_package("httpx", "http", "ask an HTTP endpoint")
    from unweave.targets.adapters.http_connection import checked_url
    from unweave.targets.adapters.http_failures import shown_url
    from unweave.targets.adapters.http_options import HttpOptions

    url, request, token_env = form.get("url", ""), form.get("http_request"), form.get("token_env")
    try:
        checked_url(url)
    except InvalidInput as error:
        raise FieldError("url", _named(error, "url", "The address")) from error
    try:
        if request is not None:
            HttpOptions(request=request)
    except InvalidInput as error:
        raise FieldError("http_request", _named(error, "request", "The request")) from error
    if token_env is not None and not _VARIABLE.fullmatch(token_env):
        raise FieldError(
            "token_env",
            f"The key must be given by the name of an environment variable. Got {shown_name(token_env)!r} "
            "instead. Set the variable where the page is served, and give its name here.",
        )
    return {
        "name": shown_url(url),
        "url": url,
        "http_request": request,
        "http_answers": form.get("http_answers"),
        "token_env": token_env,
    }


def _named(error: InvalidInput, start: str, word: str) -> str:
    return re.sub(rf"^{start}\b", word, str(error))


def _hidden(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if text.lower() == NO_LAYER:
        return ()
    try:
        return widths_from_text(text)
    except InvalidInput as error:
        raise FieldError(
            "hidden",
            f"Hidden widths must be whole numbers >= 1 with commas between. Got {text!r} instead. For "
            f"example 30 or 50,25; {NO_LAYER} for no hidden layer; empty if you do not know.",
        ) from error


def _activation(name: str | None) -> str | None:
    try:
        return None if name is None else get_activation(name).name
    except InvalidInput as error:
        raise FieldError(
            "activation", f"Activation must be one of {', '.join(activation_names())}. Got {name!r} instead."
        ) from error


def _output_activation(name: str | None) -> str | None:
    if name is not None and name not in OUTPUT_ACTIVATIONS:
        raise FieldError(
            "output_activation",
            f"Output activation must be one of {', '.join(OUTPUT_ACTIVATIONS)}. Got {name!r} instead.",
        )
    return name


def _domain(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        return interval_from_text(text)
    except InvalidInput as error:
        raise FieldError(
            "domain",
            f"Domain must be two numbers, the smaller one first. Got {text!r} instead. For example -1,1.",
        ) from error


def _number(
    form: Mapping[str, str], field: str, words: str, kind: Callable[[str], T], least: float
) -> T | None:
    """Return the number in a field, None if it is empty."""
    text = form.get(field)
    if text is None:
        return None
    what = "a whole number" if kind is int else "a number"
    try:
        value = kind(text)
        usable = bool(least <= value < np.inf)  # type: ignore[operator]
    except ValueError:
        usable = False
    if not usable:
        raise FieldError(field, f"{words} must be {what} >= {least:g}. Got {text!r} instead.")
    return value
