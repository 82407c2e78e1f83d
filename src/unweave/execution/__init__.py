"""Where a run computes and what outlives its process: serial and Dask executors, checkpoints, stores."""

from __future__ import annotations

from unweave.execution.dask_executor import DaskExecutor
from unweave.execution.executor import Executor, SerialExecutor
from unweave.execution.store import Checkpoint, open_store

__all__ = ["Checkpoint", "DaskExecutor", "Executor", "SerialExecutor", "open_store"]
