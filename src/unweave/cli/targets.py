"""What TARGET on the command line may be: a saved network, or ``module:function``."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from unweave.errors import InvalidInput
from unweave.files import FORMATS, load
from unweave.network import Network

_DECLARED_WIDTHS = ("n_inputs", "n_features_in_")  # attributes from which the number of inputs is read


@dataclass(frozen=True)
class Target:
    """Something to ask, and where it came from."""

    spec: str
    """TARGET as it was given."""
    function: Callable[[Any], Any]
    network: Network | None
    """The network of a file; None for ``module:function``. Recovery only ever asks it for answers."""

    @property
    def declares_inputs(self) -> bool:
        """Whether the number of inputs can be read from the target itself."""
        return any(hasattr(self.function, name) for name in _DECLARED_WIDTHS)


def find_target(spec: str) -> Target:
    """Return the target that ``spec`` names.

    A name that ends like a network file (.npz, .json) is loaded. ``module:attribute`` is imported with the
    current directory on ``sys.path``; the attribute may be dotted (``models:bank.score``) and must be
    callable on (n, inputs) arrays.

    Example: ``find_target("teacher.npz").network``
    """
    if Path(spec).suffix.lower() in FORMATS:
        network = load(spec)
        return Target(spec, network, network)
    module_name, colon, attribute = spec.partition(":")
    if not (colon and module_name and attribute):
        endings = " or ".join(FORMATS)
        raise InvalidInput(
            f"TARGET must be a network file ({endings}) or module:function. Got {spec!r} instead. "
            "For example teacher.npz, or models:predict for the function predict of models.py."
        )
    return Target(spec, _callable(_attribute(_import(module_name), attribute), spec), None)


def _import(name: str) -> ModuleType:
    """Import a module of the current directory or of the environment."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing == name or name.startswith(f"{missing}."):
            raise InvalidInput(
                f"module must be importable from the current directory. Got {name!r} instead, which was "
                f"not found. Check the spelling, or change to the directory of {missing}.py."
            ) from error
        raise InvalidInput(f"module {name!r} must import without errors. Got {error} instead.") from error
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"module {name!r} must import without errors. Got {type(error).__name__}: {error} instead. "
            f'Try it: python -c "import {name}".'
        ) from error


def _attribute(module: ModuleType, path: str) -> Any:
    """Follow the dots of ``path`` from ``module``."""
    value: Any = module
    for depth, name in enumerate(path.split(".")):
        if not hasattr(value, name):
            owner = ".".join([module.__name__, *path.split(".")[:depth]])
            public = [word for word in vars(value) if not word.startswith("_")] if depth == 0 else []
            known = f" It has {', '.join(sorted(public)[:8])}." if public else ""
            raise InvalidInput(f"{owner} must have the attribute {name!r}. Got none instead.{known}")
        value = getattr(value, name)
    return value


def _callable(value: Any, spec: str) -> Callable[[Any], Any]:
    """Return ``value`` if it can be asked."""
    if callable(value) and not isinstance(value, type):
        return value  # type: ignore[no-any-return]
    what = (
        f"the class {value.__name__}"
        if isinstance(value, type)
        else f"an object of type {type(value).__name__}"
    )
    hint = f"Give one of its methods, for example {spec}.predict." if hasattr(value, "predict") else ""
    hint = "Give an instance of it, or a function." if isinstance(value, type) else hint
    raise InvalidInput(
        f"{spec} must be callable on arrays of shape (n, inputs). Got {what} instead. {hint}".rstrip()
    )
