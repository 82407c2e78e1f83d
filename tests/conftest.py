"""What several test files share: targets that watch what they are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


class Recorder:
    """A target that only answers, and keeps every row that it was asked."""

    def __init__(self, function: Callable[[np.ndarray], Any]) -> None:
        self._function = function
        self._asked: list[np.ndarray] = []

    def __call__(self, x: np.ndarray) -> Any:
        self._asked.append(np.array(x))
        return self._function(x)

    @property
    def rows(self) -> np.ndarray:
        """(n, D) everything asked so far."""
        return np.concatenate(self._asked) if self._asked else np.empty((0, 0))


@pytest.fixture
def recorder() -> type[Recorder]:
    return Recorder
