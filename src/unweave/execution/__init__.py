"""Who computes and what outlives the process: serial and Dask executors, checkpoints."""

from __future__ import annotations

from unweave.execution.checkpoint import Checkpoint
from unweave.execution.dask_executor import DaskExecutor
from unweave.execution.executor import Executor, SerialExecutor

__all__ = ["Checkpoint", "DaskExecutor", "Executor", "SerialExecutor"]
