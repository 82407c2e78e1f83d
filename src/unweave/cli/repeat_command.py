"""A command as it was typed, for whoever wants to repeat it; secrets are left out."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.cli.http_arguments import HttpArguments
from unweave.cli.running import RunningOptions
from unweave.cli.targets import COMMAND_START, CommandOptions
from unweave.recovery.result import Recovery
from unweave.recovery.settings import without_secrets
from unweave.targets.target import is_url

if TYPE_CHECKING:
    from unweave.cli.recovering import RecoverOptions

_NOT_TYPED = ("target", "seed", "quiet", "verbosity", "as_json", "command", "http", "running")
_ALL_OF_A_COMMAND = {"format": "--command-format", "timeout": "--command-timeout"}
_HIDDEN = "..."


def with_command(recovery: Recovery, options: RecoverOptions) -> Recovery:
    """``recovery``, with the target as it was named and the command in its settings."""
    kept = {**recovery.settings, "target": named_target(options), "command": recover_command(options)}
    return replace(recovery, settings=kept)


def named_target(options: RecoverOptions) -> dict[str, str]:
    """What was asked, by kind and name; see `unweave.recovery.settings.describe_target`."""
    spec = options.source
    if options.table is not None:
        return {"kind": "table", "name": spec}
    if is_url(spec):
        return {"kind": "url", "name": without_secrets(spec)}
    if spec.startswith(COMMAND_START):
        return {"kind": "command", "name": spec[len(COMMAND_START) :]}
    return {"kind": "file" if Path(spec).is_file() else "import", "name": spec}


def recover_command(options: RecoverOptions) -> str:
    """The line that was typed, but for secrets: values of headers, and user and query of a URL."""
    words = ["unweave", "recover"]
    if options.target is not None:
        words.append(without_secrets(options.target) if is_url(options.target) else options.target)
    for entry in fields(options):
        value = getattr(options, entry.name)
        if entry.name not in _NOT_TYPED and value is not None and value != entry.default:
            words += _typed(f"--{entry.name.replace('_', '-')}", value)
    words += _typed("--seed", options.seed)
    words += _command_words(options.command)
    words += _http_words(options.http)
    words += _running_words(options.running)
    return shlex.join(words)


def _typed(option: str, value: Any) -> list[str]:
    text = str(value)
    # A value that starts like an option has to be attached to its own.
    return [f"{option}={text}"] if text.startswith("-") or not text else [option, text]


def _command_words(command: CommandOptions | None) -> list[str]:
    usual = CommandOptions()
    if command is None or command == usual:
        return []
    changed = {name: getattr(command, name) for name in _ALL_OF_A_COMMAND}
    return [
        word
        for name, value in changed.items()
        if value != getattr(usual, name)
        for word in _typed(_ALL_OF_A_COMMAND[name], value)
    ]


def _http_words(http: HttpArguments) -> list[str]:
    words: list[str] = []
    for entry in fields(HttpArguments):
        value, option = getattr(http, entry.name), f"--{entry.name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif isinstance(value, list):
            for header in value:
                words += [option, f"{header.partition(':')[0].strip()}:{_HIDDEN}"]
        elif value is not None and value is not False:
            words += _typed(option, value)
    return words


def _running_words(running: RunningOptions) -> list[str]:
    words: list[str] = []
    for name in ("workers", "scheduler", "checkpoint"):
        value = getattr(running, name)
        if value is not None:
            words += _typed(f"--{name}", value)
    return [*words, "--check-log"] if running.check_log else words
