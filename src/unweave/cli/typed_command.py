"""A command as it was typed, for whoever wants to repeat it; secrets are left out."""

from __future__ import annotations

import shlex
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.cli.targets import COMMAND_START
from unweave.recovery.settings import without_secrets
from unweave.targets.target import is_url

if TYPE_CHECKING:
    from unweave.cli.recover import RecoverOptions

_NOT_REPEATED = ("target", "seed", "quiet", "verbose", "as_json")


def named_target(options: RecoverOptions) -> dict[str, str]:
    """Return kind and name of what was asked; see `unweave.recovery.settings.describe_target`."""
    if options.table is not None:
        return {"kind": "table", "name": options.source}
    return named_spec(options.source)


def named_spec(spec: str) -> dict[str, str]:
    """Return kind and name of a TARGET as it was typed."""
    if is_url(spec):
        return {"kind": "url", "name": without_secrets(spec)}
    if spec.startswith(COMMAND_START):
        return {"kind": "command", "name": spec[len(COMMAND_START) :]}
    return {"kind": "file" if Path(spec).is_file() else "import", "name": spec}


def typed_command(command: str, options: Any) -> str:
    """Return the line that was typed, but for secrets: values of headers, and user and query of a URL.

    Options come first, then the seed, even where it is the default, then the groups of options.
    """
    words = ["unweave", command]
    target = getattr(options, "target", None)
    if target is not None:
        words.append(without_secrets(target) if is_url(target) else target)
    words += _changed(options) + _typed("--seed", options.seed)
    for entry in fields(options):
        if is_dataclass(group := getattr(options, entry.name)):
            words += _changed(group)
    return shlex.join(words)


def _changed(options: Any) -> list[str]:
    """Return the options of one dataclass that differ from their defaults, groups left out."""
    words: list[str] = []
    for entry in fields(options):
        value, option = getattr(options, entry.name), f"--{entry.name.replace('_', '-')}"
        if entry.name in _NOT_REPEATED or is_dataclass(value) or value is None or value == entry.default:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, list):  # headers, whose values may be secret
            words += [word for text in value for word in (option, f"{text.partition(':')[0].strip()}:...")]
        else:
            words += _typed(option, value)
    return words


def _typed(option: str, value: Any) -> list[str]:
    text = str(value)
    # A value that starts like an option has to be attached to its own.
    return [f"{option}={text}"] if text.startswith("-") or not text else [option, text]
