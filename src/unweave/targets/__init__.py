"""How a target may be asked: counted, cached and budgeted queries, samples, and adapters for every kind.

Adapters are loaded when they are first used: some need packages that not everybody has.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from unweave.targets.queries import Queries
from unweave.targets.query_log import QueryLog
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.samples import Samples
from unweave.targets.target import as_queries

if TYPE_CHECKING:
    from unweave.targets.adapters.command_target import CommandTarget
    from unweave.targets.adapters.http_options import HttpOptions
    from unweave.targets.adapters.http_target import open_http_target
    from unweave.targets.adapters.torch_target import TorchTarget

__all__ = [
    "CommandTarget",
    "HttpOptions",
    "NormalisedQueries",
    "Queries",
    "QueryLog",
    "Region",
    "Samples",
    "TorchTarget",
    "as_queries",
    "open_http_target",
]

_ADAPTERS = {
    "CommandTarget": "command_target",
    "HttpOptions": "http_options",
    "TorchTarget": "torch_target",
    "open_http_target": "http_target",
}


def __getattr__(name: str) -> object:
    if name not in _ADAPTERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.adapters.{_ADAPTERS[name]}"), name)
    globals()[name] = value  # found without this function from now on
    return value
