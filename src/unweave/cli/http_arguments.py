"""The ``--http-...`` options: how an endpoint given as TARGET is spoken to."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unweave.errors import InvalidInput
from unweave.targets.adapters.answer_source import optional_package

if TYPE_CHECKING:
    from unweave.targets.adapters.http_options import HttpOptions


@dataclass(frozen=True)
class HttpArguments:
    """The options, as typed; None (or empty, or False) where one was not given."""

    http_request: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='Body of a request; "$rows" stands for the rows [default: {"instances": "$rows"}].',
        ),
    ] = None
    http_answers: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Place of the answers, e.g. data.0.values [default: predictions]."),
    ] = None
    http_batch: Annotated[int | None, typer.Option(min=1, metavar="N", help="Most rows per request.")] = None
    http_concurrency: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most requests in flight [default: 4].")
    ] = None
    http_rate: Annotated[float | None, typer.Option(metavar="R", help="Most requests per second.")] = None
    http_row_rate: Annotated[float | None, typer.Option(metavar="R", help="Most rows per second.")] = None
    http_retries: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Retries of a failed request [default: 6].")
    ] = None
    http_timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Longest wait for an answer [default: 30].")
    ] = None
    http_header: Annotated[
        list[str] | None, typer.Option(metavar="NAME:VALUE", help="Header to send; may be repeated.")
    ] = None
    http_token_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable that holds the key.")
    ] = None
    http_token_header: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Header that carries the bare key [default: Authorization: Bearer KEY]."
        ),
    ] = None
    http_insecure: Annotated[bool, typer.Option("--http-insecure", help="Do not check certificates.")] = False

    def options(self, inputs: int | None = None) -> HttpOptions | None:
        """What was typed as `HttpOptions`; None if nothing was."""
        if self == HttpArguments():
            return None
        optional_package("httpx", "http", "ask an HTTP endpoint")
        from unweave.targets.adapters.http_options import HttpOptions

        given = {
            "request": self.http_request,
            "answers": self.http_answers,
            "batch_rows": self.http_batch,
            "concurrency": self.http_concurrency,
            "requests_per_second": self.http_rate,
            "rows_per_second": self.http_row_rate,
            "retries": self.http_retries,
            "timeout_seconds": self.http_timeout,
            "headers": dict(_header(text) for text in self.http_header or ()) or None,
            "token_env": self.http_token_env,
            "token_header": self.http_token_header,
            "token_prefix": None if self.http_token_header is None else "",
            "verify_tls": False if self.http_insecure else None,
            "n_inputs": inputs,
        }
        return HttpOptions(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


NO_HTTP = HttpArguments()
"""Nothing typed."""


def with_http_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` the options above; it receives them together, as its argument ``http``."""
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "http"]
    types = inspect.get_annotations(HttpArguments, eval_str=True)
    added = [
        inspect.Parameter(
            entry.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=entry.default,
            annotation=types[entry.name],
        )
        for entry in fields(HttpArguments)
    ]

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        typed = {entry.name: values.pop(entry.name) for entry in fields(HttpArguments)}
        command(**values, http=HttpArguments(**typed))

    wrapped.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    return wrapped


def _header(text: str) -> tuple[str, str]:
    """``NAME:VALUE`` in two; the value is never shown."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise InvalidInput(
            "--http-header must be NAME:VALUE. Got a text without a colon instead. For example X-Version:2."
        )
    return name.strip(), value.strip()
