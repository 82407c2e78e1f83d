"""Turn a function of one dataclass into a command: its fields are the options, its docstring is the help.

    @dataclass(frozen=True, kw_only=True)
    class PlanOptions(TargetOptions):
        look: Annotated[bool, typer.Option("--look", help=...)] = False

    def run_plan(options: PlanOptions) -> int:
        \"""Help of the command.\"""

A field whose type is a dataclass itself is a group: its fields become options too, listed after the others.
The help lists options under the headings that they, or their groups, name.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand
from typer.models import OptionInfo

from unweave.cli.exits import exit_code_of
from unweave.cli.options import SHOWN

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
OTHER_OPTIONS = "Options"
"""Heading of options that name none."""
_MOST_IN_ONE_LIST = 12  # options: more are easier to find under headings
_BRACES = re.compile(r"^{([A-Z]+)}$")  # typer writes {TARGET}
_RANGE = re.compile(r"(; )?\d*(<=?)?x[<>]=?[\d.]+")  # which numbers are allowed: whoever gives others is told


class GroupedCommand(TyperCommand):
    """A command whose help lists its options under headings, in the order in which these come up.

    Few options are one list.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command's name in the usage line."""
        return [_BRACES.sub(r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options into the help."""
        arguments: list[tuple[str, str]] = []
        options: list[tuple[str, str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            name, text = record
            if isinstance(parameter, TyperArgument):
                arguments.append((_BRACES.sub(r"\1", parameter.metavar or name), _plain(text)))
            else:
                options.append((getattr(parameter, "rich_help_panel", None) or "", name, _plain(text)))
        if len(options) <= _MOST_IN_ONE_LIST:
            options = [("", name, text) for _, name, text in options]
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": arguments, OTHER_OPTIONS: []}
        for heading, name, text in options:
            if "--help" in name.split():
                heading = SHOWN if SHOWN in sections else ""
            sections.setdefault(heading or OTHER_OPTIONS, []).append((name, text))
        width = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def _plain(text: str) -> str:
    """Return a help text without ranges of numbers and without saying what the usage line says."""
    text = _RANGE.sub("", text).replace("[required]", "")
    return re.sub(r"\s*\[[; ]*\]", "", text).rstrip()


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
    app.command(cls=GroupedCommand)(call)
    return app


def plain_and_groups(options: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the types of the fields of a dataclass by name: plain ones, and those that are groups."""
    types = get_type_hints(options, include_extras=True)
    named = {entry.name: types[entry.name] for entry in fields(options)}
    groups = {name: kind for name, kind in named.items() if is_dataclass(kind)}
    return {name: kind for name, kind in named.items() if name not in groups}, groups


def _parameters(options: type, heading: str | None = None) -> Iterator[inspect.Parameter]:
    plain, groups = plain_and_groups(options)
    defaults = {entry.name: entry.default for entry in fields(options)}
    for name, kind in plain.items():
        default = inspect.Parameter.empty if defaults[name] is MISSING else defaults[name]
        annotation = _under(heading, kind)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    for group in groups.values():
        yield from _parameters(group, group.heading)


def _under(heading: str | None, kind: Any) -> Any:
    """Return the annotation of an option with ``heading`` in its help, unless it names one itself."""
    if heading is None or get_origin(kind) is not Annotated:
        return kind
    inner, *said = get_args(kind)
    for index, info in enumerate(said):
        if isinstance(info, OptionInfo) and not info.rich_help_panel:
            said[index] = copy.copy(info)
            said[index].rich_help_panel = heading
    return Annotated[inner, *said]


def _filled(options: type, values: dict[str, Any]) -> Any:
    plain, groups = plain_and_groups(options)
    inner = {name: _filled(group, values) for name, group in groups.items()}
    return options(**{name: values[name] for name in plain}, **inner)
