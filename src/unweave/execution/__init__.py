"""Who computes and what outlives the process: serial and Dask executors, checkpoints."""

from __future__ import annotations

from unweave.execution.dask_executor import DaskExecutor
from unweave.execution.executor import Executor, SerialExecutor
from unweave.execution.store import Checkpoint

__all__ = ["Checkpoint", "DaskExecutor", "Executor", "SerialExecutor"]
