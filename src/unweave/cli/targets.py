"""What TARGET on the command line may be: a model file, a URL, a command, or ``module:object``."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar

import typer

from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.targets.adapters.answer_source import AnswerSource
from unweave.targets.adapters.command_target import CommandTarget
from unweave.targets.adapters.file_target import target_endings
from unweave.targets.target import is_target, is_url, open_target

COMMAND_START = "cmd:"
_MOST_ENDING_LETTERS = 8  # as in .joblib: longer words after a dot are hardly a file's ending


@dataclass(frozen=True)
class CommandOptions:
    """The ``--command-...`` options: how a command given as TARGET is spoken to."""

    heading: ClassVar[str] = "TARGET is a command"

    command_format: Annotated[
        str,
        typer.Option(
            metavar="FORMAT", help="How the command reads rows and writes answers: csv, json or batch."
        ),
    ] = "csv"
    command_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Give up when the command has not answered for this long."),
    ] = 60.0


@dataclass(frozen=True)
class Target:
    """Something to ask, and where it came from. Leaving a ``with`` closes what was opened for it."""

    spec: str
    """TARGET as it was given."""
    function: AnswerSource
    network: Network | None
    """The network of a file; None for anything else. Recovery only ever asks it for answers."""

    @property
    def declares_inputs(self) -> bool:
        """Whether the number of inputs can be read from the target itself."""
        known = (self.function.n_inputs, getattr(self.function, "assumed_inputs", None))
        return any(width is not None for width in known)

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        close = getattr(self.function, "close", None)
        if callable(close):
            close()


def find_target(
    spec: str, inputs: int | None = None, *, http: Any = None, command: CommandOptions | None = None
) -> Target:
    """Return the target that ``spec`` names, opened.

    - ``http://...``, ``https://...``: an endpoint, with the `HttpOptions` in ``http``.
    - ``cmd:python model.py``: a process that reads rows and writes answers, with ``inputs`` numbers per row.
    - The name of a file: a network that unweave wrote, or an ONNX graph.
    - ``module:attribute``: imported with the current directory on ``sys.path``; the attribute may be dotted
      (``models:bank.score``): a function on (n, inputs) arrays, a torch module, an estimator, a keras model.

    Example: ``find_target("teacher.npz").network``
    """
    if is_url(spec):
        return Target(spec, _open_endpoint(spec, inputs, http), None)
    if spec.startswith(COMMAND_START):
        return Target(spec, _open_command(spec, inputs, command or CommandOptions()), None)
    module_name, colon, attribute = spec.partition(":")
    if Path(spec).exists() or _named_like_a_file(spec):
        source = open_target(spec)
        return Target(spec, source, source if isinstance(source, Network) else None)
    if not (colon and module_name and attribute):
        raise InvalidInput(
            f"TARGET must be a network file ({' or '.join(target_endings())}), the URL of an endpoint, "
            f"{COMMAND_START} and a command, or module:function. Got {spec!r} instead. For example "
            "teacher.npz, or models:predict for the function predict of models.py."
        )
    return Target(spec, _askable(_attribute(_import(module_name), attribute), spec), None)


def input_width(target: Target, inputs: int | None, examples: Any) -> int | None:
    """Return the number of inputs: as given, else declared, else that of the examples."""
    if inputs is not None or target.declares_inputs:
        return inputs
    if examples is not None and examples.ndim == 2:
        return int(examples.shape[1])
    raise InvalidInput(
        f"--inputs or --examples must be given for {target.spec}, because its number of inputs cannot be "
        "read from it. For example --inputs 20."
    )


def told_width(inputs: int | None, examples: Any) -> int | None:
    """Return the number of inputs that the options give: ``--inputs``, or columns of the examples."""
    return inputs if inputs is not None or examples is None or examples.ndim != 2 else examples.shape[1]


def _named_like_a_file(spec: str) -> bool:
    """Whether ``spec`` ends like the name of a file and is not ``module:attribute``."""
    ending = Path(spec).suffix
    return ending.lower() in target_endings() or (":" not in spec and 1 < len(ending) <= _MOST_ENDING_LETTERS)


def _open_endpoint(url: str, inputs: int | None, options: Any) -> AnswerSource:
    if options is None:
        return open_target(url, inputs)
    from unweave.targets.adapters.http_target import open_http_target

    return open_http_target(url, options)


def _open_command(spec: str, inputs: int | None, options: CommandOptions) -> AnswerSource:
    if inputs is None:
        raise InvalidInput(
            f"--inputs or --examples must be given for {spec}, because a command does not say its number of "
            "inputs. For example --inputs 20."
        )
    command = spec[len(COMMAND_START) :]
    return CommandTarget(command, inputs, format=options.command_format, timeout=options.command_timeout)


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
                f"The module {name!r} was not found from the current directory. Check the spelling, or "
                f"change to the directory of {missing}.py."
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
            raise InvalidInput(f"{owner} must have the attribute {name!r}, and it has not.{known}")
        value = getattr(value, name)
    return value


def _askable(value: Any, spec: str) -> AnswerSource:
    """Open ``value`` if it can be asked; the text of a file name is not what a module is imported for."""
    if is_target(value) and not isinstance(value, str | os.PathLike):
        return open_target(value)
    what = f"an object of type {type(value).__name__}"
    hint = f"Give one of its methods, for example {spec}.predict." if hasattr(value, "predict") else ""
    if isinstance(value, type):
        what, hint = f"the class {value.__name__}", "Give an instance of it, or a function."
    raise InvalidInput(
        f"{spec} must be callable on arrays of shape (n, inputs). Got {what} instead. {hint}".rstrip()
    )
