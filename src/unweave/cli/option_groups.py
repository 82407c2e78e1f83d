"""Options that belong together: what is known of a target, how it is spoken to, where a run computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from unweave.cli.arguments import parse_domain, parse_hidden, read_rows
from unweave.cli.options import Activation, Domain, Examples, Hidden, Inputs, Seed
from unweave.cli.targets import CommandOptions, Target, find_target, input_width, told_width
from unweave.errors import InvalidInput
from unweave.execution import Checkpoint, DaskExecutor, Executor
from unweave.targets.adapters.answer_source import optional_package
from unweave.targets.budget import within

if TYPE_CHECKING:
    from unweave.targets.adapters.http_options import HttpOptions


@dataclass(frozen=True)
class HttpArguments:
    """The ``--http-...`` options as typed: how an endpoint given as TARGET is spoken to."""

    heading: ClassVar[str] = "TARGET is an endpoint"

    http_request: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='Body of a request; "$rows" stands for the rows [default: {"instances": "$rows"}].',
        ),
    ] = None
    http_answers: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Where the answers are, e.g. data.0.values [default: predictions]."
        ),
    ] = None
    http_batch: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Send at most N rows per request.")
    ] = None
    http_concurrency: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Send at most N requests at the same time [default: 4]."),
    ] = None
    http_rate: Annotated[
        float | None, typer.Option(metavar="R", help="Send at most R requests per second.")
    ] = None
    http_row_rate: Annotated[
        float | None, typer.Option(metavar="R", help="Send at most R rows per second.")
    ] = None
    http_retries: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Retry a failed request up to N times [default: 6]."),
    ] = None
    http_timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Wait at most this long for an answer [default: 30]."),
    ] = None
    http_header: Annotated[
        list[str] | None, typer.Option(metavar="NAME:VALUE", help="Send this header; may be repeated.")
    ] = None
    http_token_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable that holds the API key.")
    ] = None
    http_token_header: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Header that carries the bare key [default: Authorization: Bearer KEY]."
        ),
    ] = None
    http_insecure: Annotated[bool, typer.Option("--http-insecure", help="Do not check TLS certificates.")] = (
        False
    )

    def options(self, inputs: int | None = None) -> HttpOptions | None:
        """Return `HttpOptions` from what was typed; None if nothing was."""
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


@dataclass(frozen=True)
class RunningOptions:
    """``--workers``, ``--scheduler``, ``--checkpoint`` and ``--check-log``, as typed."""

    heading: ClassVar[str] = "Long runs"

    workers: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Compute in N processes (needs Dask).")
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Compute on a Dask cluster, e.g. tcp://10.0.0.5:8786."),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Keep every answer here (a .sqlite file, or a folder); run it again to resume.",
        ),
    ] = None
    check_log: Annotated[
        bool,
        typer.Option(
            "--check-log",
            help="Ask one row of the checkpoint again, to make sure that it is the same target.",
        ),
    ] = False

    def kept(self) -> Checkpoint | None:
        """Return the checkpoint asked for, or None."""
        if self.checkpoint is None:
            if self.check_log:
                raise InvalidInput(
                    "--check-log must be given together with --checkpoint. Add --checkpoint, or leave it out."
                )
            return None
        return Checkpoint(self.checkpoint, check=self.check_log)

    @contextmanager
    def executor(self) -> Iterator[Executor | None]:
        """Yield the executor asked for and close it afterwards; None means this process."""
        if self.workers is not None and self.scheduler is not None:
            raise InvalidInput("--workers and --scheduler must not both be given. Leave one of them out.")
        if not self.workers and self.scheduler is None:
            yield None
            return
        with DaskExecutor(self.workers, scheduler=self.scheduler) as executor:
            yield executor


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """Options of every command that asks a target."""

    hidden: Hidden = None
    activation: Activation = None
    inputs: Inputs = None
    domain: Domain = None
    examples: Examples = None
    seed: Seed = 0
    command: CommandOptions = field(default_factory=CommandOptions)
    http: HttpArguments = field(default_factory=HttpArguments)

    @contextmanager
    def opened(self, spec: str, deadline: float | None = None) -> Iterator[tuple[Target, dict[str, Any]]]:
        """Open the target ``spec``; yield it and what the options say, under the names of `recover`.

        An endpoint is given up after ``deadline`` seconds.
        """
        told = {
            "hidden": parse_hidden(self.hidden),
            "activation": self.activation,
            "seed": self.seed,
            "domain": parse_domain(self.domain),
            "examples": read_rows(self.examples, "--examples"),
        }
        width = told_width(self.inputs, told["examples"])
        with within(deadline):
            found = find_target(spec, width, http=self.http.options(width), command=self.command)
        with found as target:
            yield target, {**told, "input_dim": input_width(target, self.inputs, told["examples"])}


def _header(text: str) -> tuple[str, str]:
    """Split ``NAME:VALUE``; the value is never shown."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise InvalidInput(
            "--http-header must be NAME:VALUE. Got a text without a colon instead. For example X-Version:2."
        )
    return name.strip(), value.strip()
