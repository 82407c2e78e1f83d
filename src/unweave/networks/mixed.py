"""A network on columns as they are: categories are one-hot coded before it reads them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.columns import Columns
from unweave.networks.network import Network
from unweave.networks.trees import TreeEnsemble

FORMAT = "unweave-mixed"
VERSION = 1


class MixedNetwork:
    """f(row) = network(one-hot code of the row).

    Args:
        columns: names, kinds and levels of the D columns.
        network: reads one input per level of a category and one per other column, in the order of the
            columns; ``columns.inputs`` names them. Or a `TreeEnsemble`, which reads the codes.
    """

    __slots__ = ("columns", "network")

    def __init__(self, columns: Columns, network: Network | TreeEnsemble) -> None:
        wanted = len(columns) if isinstance(network, TreeEnsemble) else len(columns.inputs)
        if network.n_inputs != wanted:
            raise InvalidInput(
                f"network must have {wanted} inputs, one per level, or one per column if it is of trees. "
                f"Got {network.n_inputs} instead."
            )
        self.columns, self.network = columns, network

    def __call__(self, x: Any) -> Array:
        """Return the outputs (n, K) at rows: a frame, (n, D) values, or (n, D) codes."""
        codes = self.columns.encode(x)
        return self.network(codes if isinstance(self.network, TreeEnsemble) else self.columns.one_hot(codes))

    def predict(self, x: Any) -> Array:
        """Return the outputs at rows: (n,) if there is one, else (n, K)."""
        answers = self(x)
        return answers[:, 0] if answers.shape[1] == 1 else answers

    @property
    def n_inputs(self) -> int:
        """Number of columns D."""
        return len(self.columns)

    @property
    def n_outputs(self) -> int:
        """Number of outputs K."""
        return self.network.n_outputs

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases."""
        return self.network.n_parameters

    @property
    def rows_to_verify(self) -> int:
        """Number of fresh rows on which it is tried: every level is met often."""
        return max(200, 20 * len(self.columns.inputs), self.n_parameters // 20)

    def describe(self) -> str:
        """Return widths, activations and columns."""
        network = self.network
        if isinstance(network, TreeEnsemble):
            return f"{network.describe()}, in codes of columns"
        widths = "-".join(str(width) for width in (network.n_inputs, *network.hidden, network.n_outputs))
        kinds = "/".join(dict.fromkeys(network.activations[:-1])) or "affine"
        output = "" if network.activations[-1] == "identity" else f", {network.activations[-1]} output"
        return f"{widths} {kinds}{output} on one-hot codes of {len(self.columns)} columns"

    def __repr__(self) -> str:
        return f"MixedNetwork({self.describe()}, {self.n_parameters} parameters)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixedNetwork):
            return NotImplemented
        return self.columns.to_list() == other.columns.to_list() and self.network == other.network

    def __hash__(self) -> int:
        return hash((tuple(self.columns.names), self.n_parameters))

    def placed(self, rows: Array, rng: np.random.Generator) -> Array:
        """Return the rows as they are: levels and inputs drawn at random meet every unit."""
        return rows

    def arrays(self) -> dict[str, Any]:
        """Return what an .npz archive holds."""
        from unweave.files.contents import network_arrays  # files load networks, so they come later

        network = self.network
        held = network.arrays() if isinstance(network, TreeEnsemble) else network_arrays(network)
        inner = {f"network_{key}": value for key, value in held.items()}
        said = json.dumps({"columns": self.columns.to_list(), "framed": self.columns.framed})
        return {"format": np.array(FORMAT), "version": np.array(VERSION), "columns": np.array(said), **inner}

    def save(self, path: str | Path, dtype: str = "float64") -> None:
        """Write to ``path``: .npz with the columns; other endings hold the network on one-hot codes alone."""
        from unweave.files import write_file

        path = Path(path)
        if path.suffix.lower() != ".npz":
            self.network.save(path, dtype)  # type: ignore[arg-type]  # it is checked there
            return
        content = io.BytesIO()
        np.savez(content, **self.arrays())
        write_file(path, content.getvalue())


def mixed_from(path: Path, content: dict[str, Any]) -> MixedNetwork | None:
    """Return the network that `MixedNetwork.arrays` describes; None if the content is of another kind."""
    if str(content.get("format")) != FORMAT:
        return None
    from unweave.files.contents import model_from_arrays

    try:
        said = json.loads(str(content["columns"]))
        columns = Columns.from_list(said["columns"], said["framed"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{str(path)!r} must hold columns and a network. Got {error} instead.") from error
    inner = {
        key.removeprefix("network_"): value for key, value in content.items() if key.startswith("network_")
    }
    return MixedNetwork(columns, model_from_arrays(path, inner))
