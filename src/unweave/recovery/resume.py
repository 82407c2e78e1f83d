"""A run that may end at any moment and goes on: its answers and its expensive results are on disk.

Every step of a recovery is a function of the seed and of the target's answers. So nothing of the state in
between has to be saved: started again with the same arguments, a run asks the same rows, finds the answers
in the log, and arrives where it was, with the same network in the end, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import unweave
from unweave.execution.executor import Executor
from unweave.execution.memory import Remembering
from unweave.execution.store import Checkpoint, open_store
from unweave.targets.queries import Queries
from unweave.targets.query_log import QueryLog


class Resumption:
    """What a run owes to its checkpoint."""

    def __init__(
        self, queries: Queries, sent_before: int, path: str | None = None, memory: Remembering | None = None
    ) -> None:
        self._queries, self._path, self._memory = queries, path, memory
        self.sent_before = sent_before
        """Rows that the ledger had sent before this run."""

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for the result, or none if nothing came from a checkpoint."""
        rows, tasks = self._queries.rows_from_log, 0 if self._memory is None else self._memory.reused
        if self._path is None or not (rows or tasks):
            return ()
        results = f" and {tasks} results" if tasks else ""
        return (f"resumed: {rows} rows{results} from {self._path}, which are not counted as queries",)


@contextmanager
def running(
    queries: Queries, executor: Executor | None, checkpoint: str | Path | Checkpoint | None
) -> Iterator[Resumption]:
    """Let ``queries`` work with ``executor`` and ``checkpoint`` for as long as this lasts."""
    before, sent = queries.executor, queries.sent
    if executor is not None:
        queries.executor = executor
    try:
        if checkpoint is None:
            yield Resumption(queries, sent)
            return
        said = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        store = open_store(said.path)
        try:
            queries.attach_log(QueryLog(store, said.target), check=said.check)
            queries.executor = memory = Remembering(queries.executor, store, unweave.__version__)
            yield Resumption(queries, sent, str(said.path), memory)
        finally:
            queries.detach_log()
            store.close()
    finally:
        queries.executor = before
