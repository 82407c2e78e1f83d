"""How to repeat a recovery: the same call in Python and on the command line, from its settings."""

from __future__ import annotations

import shlex
from typing import Any

_OPTIONS = {
    "hidden": "--hidden",
    "activation": "--activation",
    "seed": "--seed",
    "input_dim": "--inputs",
    "output_activation": "--output-activation",
    "domain": "--domain",
    "max_queries": "--max-queries",
    "deadline": "--deadline",
    "tolerance": "--tolerance",
    "method": "--method",
    "derivatives": "--derivatives",
    "checkpoint": "--checkpoint",
}
"""Argument of `recover` -> option of ``unweave recover``."""
_PLACEHOLDERS = {"examples": "--examples examples.npy"}


def python_call(settings: dict[str, Any], function: str = "recover") -> str:
    """The call of `unweave.recover`, or another function, as Python; things without a name are comments."""
    before, target = _python_target(settings.get("target", {}))
    arguments = settings.get("arguments", {})
    parts = [target]
    for name, value in arguments.items():
        if isinstance(value, dict) and "shape" in value:
            before.append(f"# {name}: an array of shape {tuple(value['shape'])}")
            parts.append(f"{name}={name}")
        else:
            parts.append(f"{name}={tuple(value) if name == 'domain' else _in_python(value)}")
    if "options" in arguments:
        before.append("# options: the classes are those of the methods' folders in unweave.methods")
    return "\n".join(["import unweave", *before, "", f"result = unweave.{function}({', '.join(parts)})"])


def _in_python(value: Any) -> str:
    """Write an argument as Python, the options of a method as a call of their class."""
    if isinstance(value, list):
        return f"[{', '.join(_in_python(entry) for entry in value)}]"
    if isinstance(value, dict):
        given = {name: entry for name, entry in value.items() if name != "kind"}
        return f"{value.get('kind')}({', '.join(f'{name}={_in_python(v)}' for name, v in given.items())})"
    return repr(value)


def _python_target(target: dict[str, Any]) -> tuple[list[str], str]:
    """Lines before the call, and the target in it."""
    kind, name = target.get("kind", "object"), str(target.get("name", ""))
    if kind in ("file", "url"):
        return [], repr(name)
    if kind == "import":
        module, _, attribute = name.partition(":")
        return [f"import {module}"], f"{module}.{attribute}"
    if kind == "command":
        return [], f"unweave.CommandTarget({name!r}, input_dim)"
    if kind == "table":
        return [f"# x, y: inputs and answers of {name}"], "unweave.Samples(x, y)"
    if kind == "samples":
        return [f"# x, y: the {name}"], "unweave.Samples(x, y)"
    return [f"# target: {name}, as it was given" if name else "# target: what was asked"], "target"


def shell_command(settings: dict[str, Any]) -> str:
    """The same on the command line: as it was typed, or as it would have to be."""
    typed = settings.get("command")
    if typed:
        return str(typed)
    target = settings.get("target", {})
    kind, name = target.get("kind", "object"), str(target.get("name", ""))
    arguments = settings.get("arguments", {})
    before = []
    if kind == "samples":
        before = ["# write inputs and answers to samples.npz, as arrays x and y"]
        spec = ["--table", "samples.npz"]
    elif kind in ("file", "url", "import"):
        spec = [name]
    else:
        before, spec = ["# put the target into models.py, under the name target"], ["models:target"]
    words = ["unweave", "recover", *spec]
    for argument, value in arguments.items():
        if argument in _OPTIONS and not isinstance(value, dict):
            text = ",".join(str(entry) for entry in value) if isinstance(value, list) else str(value)
            words.append(f"{_OPTIONS[argument]}={text}")
    line = shlex.join(words)
    placeholders = [text for argument, text in _PLACEHOLDERS.items() if argument in arguments]
    return "\n".join([*before, " ".join([line, *placeholders])])
