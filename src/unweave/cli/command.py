"""Turn a function of one dataclass into a command: its fields are the options, its docstring is the help.

    @dataclass(frozen=True, kw_only=True)
    class PlanOptions(TargetOptions):
        look: Annotated[bool, typer.Option("--look", help=...)] = False

    def run_plan(options: PlanOptions) -> int:
        \"""Help of the command.\"""

A field whose type is a dataclass itself is a group: its fields become options too, listed after the others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer

from unweave.cli.exits import exit_code_of

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def as_app(run: Callable[..., int]) -> typer.Typer:
    """Return the command that hands its options to ``run`` as a dataclass and exits with its code."""
    options = next(iter(inspect.signature(run, eval_str=True).parameters.values())).annotation
    parameters = list(_parameters(options))

    def call(**values: Any) -> None:
        given = _filled(options, values)
        raise typer.Exit(exit_code_of(lambda: run(given), given.as_json))

    call.__doc__ = run.__doc__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=SETTINGS)
    app.command()(call)
    return app


def plain_and_groups(options: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the types of the fields of a dataclass by name: plain ones, and those that are groups."""
    types = get_type_hints(options, include_extras=True)
    named = {entry.name: types[entry.name] for entry in fields(options)}
    groups = {name: kind for name, kind in named.items() if is_dataclass(kind)}
    return {name: kind for name, kind in named.items() if name not in groups}, groups


def _parameters(options: type) -> Iterator[inspect.Parameter]:
    plain, groups = plain_and_groups(options)
    defaults = {entry.name: entry.default for entry in fields(options)}
    for name, kind in plain.items():
        default = inspect.Parameter.empty if defaults[name] is MISSING else defaults[name]
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
    for group in groups.values():
        yield from _parameters(group)


def _filled(options: type, values: dict[str, Any]) -> Any:
    plain, groups = plain_and_groups(options)
    inner = {name: _filled(group, values) for name, group in groups.items()}
    return options(**{name: values[name] for name in plain}, **inner)
