"""What a recovery may hand back besides a `Network`: anything that answers rows and can be saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unweave.arrays import Array


@runtime_checkable
class Model(Protocol):
    """A recovered function that is no network of layers."""

    @property
    def n_inputs(self) -> int:
        """Number of inputs D."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs K."""

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""

    def __call__(self, x: Any) -> Array:
        """Return the answers (n, K) at rows ``x`` (n, D)."""

    def save(self, path: str | Path, dtype: str = "float64") -> None:
        """Write the model to a file."""

    @property
    def rows_to_verify(self) -> int:
        """Number of fresh rows on which it is tried at least."""

    def describe(self) -> str:
        """Return kind and size in a few words."""

    def placed(self, rows: Array, rng: np.random.Generator) -> Array:
        """Return ``rows`` (n, D) moved to where an error of this model would show."""

    def arrays(self) -> dict[str, Any]:
        """Return what an .npz archive holds, ``format`` and ``version`` included."""
