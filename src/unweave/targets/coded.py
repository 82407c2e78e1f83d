"""A target with columns of any kind, asked with their codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.columns import Columns
from unweave.targets.queries import Queries
from unweave.targets.target import open_target


def coded_queries(target: Any, columns: Columns, max_queries: int | None, deadline: float | None) -> Queries:
    """Return a ledger of codes (n, D): the target sees the values they stand for, in a frame or as objects.

    Codes that stand for no value are a mistake of the caller: they raise and are never sent.
    """
    source = open_target(target, len(columns))

    def answer(codes: Array) -> Any:
        if not columns.admits(codes).all():
            raise InvalidInput("rows must be codes of the columns. Some are not.")
        return np.asarray(source(columns.decode(codes)))

    return Queries(answer, len(columns), max_queries=max_queries, deadline=deadline)
