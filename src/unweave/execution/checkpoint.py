"""What a user says about a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Checkpoint:
    """Where a recovery keeps the answers it was given and the results that were expensive.

    Example: ``unweave.recover(target, checkpoint=Checkpoint("run.sqlite", target="credit model, May"))``
    """

    path: str | Path
    """A file that ends in .sqlite, .sqlite3 or .db; any other path is a directory."""
    target: str | None = None
    """A description of the target. Its fingerprint is kept, and a checkpoint of another one is refused."""
    check: bool = False
    """Whether one row of the log is asked again at the start, to see whether it is the same target."""
