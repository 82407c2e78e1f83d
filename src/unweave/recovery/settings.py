"""What a recovery was asked, kept with its result so that it can be repeated.

    settings = {"target": {"kind", "name"}, "date": ..., "arguments": {...}, "versions": {...}}

Only plain values are kept: a function by its name, an array by its shape, a URL without user and query.
"""

from __future__ import annotations

import functools
import inspect
import platform
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from unweave.errors import Interrupted
from unweave.search import Method
from unweave.targets.samples import Samples
from unweave.targets.target import is_url

_LEFT_OUT = ("target", "progress", "executor")  # neither of the last two changes what is found
_PACKAGES = ("unweave", "numpy", "scipy")
_LONGEST_LIST = 40  # entries kept of a list; of a longer one the shape

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def with_settings(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let the result of ``function``, also that of an interrupt, carry what the function was called with.

    The result is a dataclass with a field ``settings``.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())

        def kept() -> dict[str, Any]:
            return settings_of(signature, signature.bind(*args, **kwargs), began)

        try:
            return replace(function(*args, **kwargs), settings=kept())  # type: ignore[type-var]
        except Interrupted as interrupt:
            interrupt.recovery = replace(interrupt.recovery, settings=kept())
            raise

    return wrapped


def settings_of(signature: inspect.Signature, bound: inspect.BoundArguments, date: str) -> dict[str, Any]:
    """The arguments of a call that differ from the defaults, the seed in any case, date and versions."""
    arguments = {
        name: _plain(value)
        for name, value in bound.arguments.items()
        if name not in _LEFT_OUT and value is not signature.parameters[name].default
    }
    bound.apply_defaults()
    arguments["seed"] = _plain(bound.arguments["seed"])
    names = input_names(bound.arguments["target"], bound.arguments.get("examples"))
    return {
        "target": describe_target(bound.arguments["target"]),
        "date": date,
        "arguments": arguments,
        "versions": versions(),
        **({"inputs": names} if names else {}),
    }


def input_names(target: Any, examples: Any) -> list[str]:
    """Names of the inputs as a table of examples, samples or a fitted estimator has them; else none."""
    owner = getattr(target, "__self__", target)
    found = (
        getattr(examples, "columns", None),
        target.names if isinstance(target, Samples) else None,
        getattr(owner, "feature_names_in_", None),
    )
    return next(([str(name) for name in names] for names in found if names is not None and len(names)), [])


def describe_target(target: Any) -> dict[str, str]:
    """What was asked, by kind and name: a file, a URL, samples, a function to import, or an object."""
    if isinstance(target, Samples):
        return {"kind": "samples", "name": f"{len(target)} samples of {target.n_inputs} inputs"}
    if is_url(target):
        return {"kind": "url", "name": without_secrets(target)}
    if isinstance(target, str | Path):
        return {"kind": "file", "name": str(target)}
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str):
        findable = module != "__main__" and "<" not in name and getattr(target, "__self__", None) is None
        return {"kind": "import" if findable else "object", "name": f"{module}:{name}"}
    return {"kind": "object", "name": f"{type(target).__module__}:{type(target).__qualname__}"}


def without_secrets(url: str) -> str:
    """The address without user, password and query.

    >>> without_secrets("https://me:key@example.org:8443/predict?token=1#x")
    'https://example.org:8443/predict'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that compute."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a folder that was never installed
            found[package] = "unknown"
    return found


def _plain(value: Any) -> Any:
    """``value`` in words of JSON."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape)}
    if isinstance(value, list | tuple):
        if np.size(np.asarray(value, dtype=object)) > _LONGEST_LIST:
            return {"shape": list(np.shape(np.asarray(value, dtype=object)))}
        return [_plain(entry) for entry in value]
    path = getattr(value, "path", value)
    if isinstance(path, str | Path):
        return str(path)
    if isinstance(value, Method):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):  # options: what differs from their defaults
        standard = type(value)()
        changed = {each.name: getattr(value, each.name) for each in fields(value)}
        changed = {name: new for name, new in changed.items() if new != getattr(standard, name)}
        return {"kind": type(value).__name__, **{name: _plain(new) for name, new in changed.items()}}
    return type(value).__name__
