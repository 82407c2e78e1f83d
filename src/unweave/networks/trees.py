"""A sum of decision trees: an immutable value that answers in steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.networks.links import ALL_LINKS, Link

FORMAT = "unweave-trees"
VERSION = 1
_NUMBERS_AT_ONCE = 10_000_000  # rows times trees that are followed at once
_ROWS_TO_VERIFY = 2000  # a leaf that is wrong shows only on rows that fall into it
_TABLES = ("feature", "threshold", "left", "right", "value", "roots")


class TreeEnsemble:
    """The sum of decision trees, behind an output activation.

    All trees share tables of N nodes. Node k sends a row to ``left[k]`` if x[feature[k]] <= threshold[k],
    else to ``right[k]``; a leaf has feature -1 and adds ``value[k]`` (K,). The thresholds are exact: the
    largest float64 that goes left.

    Args:
        feature: (N,) input that a node compares, -1 for a leaf.
        threshold: (N,) largest input that goes left; of no meaning for a leaf.
        left, right: (N,) nodes that come next; -1 for a leaf.
        value: (N, K) what a leaf adds; zero for the others.
        roots: (T,) first node of every tree.
        n_inputs: D.
        output: "identity", "sigmoid", "softmax", "tanh" or "exp", applied to the sum.
        input_names: names of the inputs, if they have any.

    Example:
        >>> stump = TreeEnsemble([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [[0], [1], [2]], [0], 1)
        >>> stump([[0.5], [0.6]]).tolist()
        [[1.0], [2.0]]
    """

    __slots__ = ("_n_inputs", "_output", "_tables", "input_names")

    def __init__(
        self,
        feature: ArrayLike,
        threshold: ArrayLike,
        left: ArrayLike,
        right: ArrayLike,
        value: ArrayLike,
        roots: ArrayLike,
        n_inputs: int,
        output: str = "identity",
        input_names: Sequence[str] | None = None,
    ) -> None:
        whole = [np.array(each, dtype=np.int64) for each in (feature, left, right, roots)]
        numbers = np.array(threshold, dtype=np.float64), np.array(value, dtype=np.float64)
        self._tables: dict[str, Any] = dict(
            zip(_TABLES, (whole[0], numbers[0], whole[1], whole[2], numbers[1], whole[3]), strict=True)
        )
        self._n_inputs, self._output = int(n_inputs), output
        self.input_names = None if input_names is None else tuple(str(name) for name in input_names)
        self._check()
        for table in self._tables.values():
            table.setflags(write=False)

    def _check(self) -> None:
        nodes = len(self.feature)
        if any(self._tables[name].shape != (nodes,) for name in ("threshold", "left", "right")):
            raise InvalidInput("feature, threshold, left and right must have one entry per node.")
        if self.value.ndim != 2 or len(self.value) != nodes or self.roots.ndim != 1 or not len(self.roots):
            raise InvalidInput("value must be (nodes, outputs), and roots name one node per tree.")
        inner = self.feature >= 0
        after = np.concatenate([self._tables["left"][inner], self._tables["right"][inner]])
        before = np.tile(np.flatnonzero(inner), 2)
        if (self.feature >= self._n_inputs).any() or (after <= before).any() or (after >= nodes).any():
            raise InvalidInput("every node must compare an input that exists and come before its children.")
        if ((self.roots < 0) | (self.roots >= nodes)).any():
            raise InvalidInput("roots must name nodes that exist.")
        if not (np.isfinite(self.threshold[inner]).all() and np.isfinite(self.value).all()):
            raise InvalidInput("thresholds and values must be finite.")
        if self._output not in ALL_LINKS:
            raise InvalidInput(f"output must be one of {', '.join(ALL_LINKS)}. Got {self._output!r} instead.")
        if self.input_names is not None and len(self.input_names) != self._n_inputs:
            raise InvalidInput(f"input_names must hold {self._n_inputs} names, one per input.")

    @property
    def feature(self) -> IntArray:
        """(N,) input that a node compares, -1 for a leaf."""
        found: IntArray = self._tables["feature"]
        return found

    @property
    def threshold(self) -> Array:
        """(N,) largest input that goes left."""
        found: Array = self._tables["threshold"]
        return found

    @property
    def value(self) -> Array:
        """(N, K) what a leaf adds."""
        found: Array = self._tables["value"]
        return found

    @property
    def roots(self) -> IntArray:
        """(T,) first node of every tree."""
        found: IntArray = self._tables["roots"]
        return found

    @property
    def n_inputs(self) -> int:
        """Number of inputs D."""
        return self._n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs K."""
        return int(self.value.shape[1])

    @property
    def n_trees(self) -> int:
        """Number of trees T."""
        return len(self.roots)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int((self.feature < 0).sum())

    @property
    def n_parameters(self) -> int:
        """Number of thresholds, and of values that are not zero."""
        return int((self.feature >= 0).sum()) + int((self.value != 0).sum())

    @property
    def rows_to_verify(self) -> int:
        """Number of fresh rows on which it is tried: two for every node of a large one."""
        return max(_ROWS_TO_VERIFY, 2 * int((self.feature >= 0).sum()))

    @property
    def depth(self) -> int:
        """Comparisons on the longest way from a root to a leaf."""
        level = np.zeros(len(self.feature), dtype=np.int64)
        for node in np.flatnonzero(self.feature >= 0):  # before its children
            level[[self._tables["left"][node], self._tables["right"][node]]] = level[node] + 1
        return int(level.max(initial=0))

    @property
    def output(self) -> str:
        """Output activation."""
        return self._output

    def thresholds(self) -> list[Array]:
        """Return the thresholds of every input, in growing order."""
        return [np.unique(self.threshold[self.feature == each]) for each in range(self._n_inputs)]

    def __call__(self, x: ArrayLike) -> Array:
        """Return the outputs (n, K) at the rows of ``x`` (n, D); a single vector gives a vector."""
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim == 1:
            return np.asarray(self(rows[None])[0])
        if rows.ndim != 2 or rows.shape[1] != self._n_inputs:
            raise InvalidInput(f"x must be (n, {self._n_inputs}). Got shape {rows.shape} instead.")
        at_once = max(1, _NUMBERS_AT_ONCE // len(self.roots))
        parts = [self._sum(rows[start : start + at_once]) for start in range(0, len(rows), at_once)]
        total = np.concatenate([np.empty((0, self.n_outputs)), *parts])
        return total if self._output == "identity" else Link(self._output).apply(total)

    def predict(self, x: ArrayLike) -> Array:
        """Return the outputs at rows ``x`` (n, D): (n,) if there is one, else (n, K)."""
        answers = self(np.atleast_2d(np.asarray(x, dtype=np.float64)))
        return answers[:, 0] if answers.shape[1] == 1 else answers

    def _sum(self, x: Array) -> Array:
        node = np.tile(self.roots, (len(x), 1))
        feature, left, right = (self._tables[name] for name in ("feature", "left", "right"))
        row, tree = np.nonzero(feature[node] >= 0)
        while len(row):
            at = node[row, tree]
            goes_left = x[row, feature[at]] <= self.threshold[at]
            node[row, tree] = np.where(goes_left, left[at], right[at])
            inner = feature[node[row, tree]] >= 0
            row, tree = row[inner], tree[inner]
        total: Array = self.value[node].sum(axis=1)
        return total

    def describe(self) -> str:
        """``sum of 50 trees, 384 leaves, 10 inputs``."""
        trees = "tree" if self.n_trees == 1 else f"sum of {self.n_trees} trees"
        behind = "" if self._output == "identity" else f", {self._output} output"
        return f"{trees}, {self.n_leaves} leaves, {self._n_inputs} inputs{behind}"

    def __repr__(self) -> str:
        return f"TreeEnsemble({self.describe()}, {self.n_parameters} parameters)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeEnsemble):
            return NotImplemented
        same = (self._n_inputs, self._output, self.input_names) == (
            *(other._n_inputs, other._output, other.input_names),
        )
        return same and all(np.array_equal(self._tables[k], other._tables[k]) for k in _TABLES)

    def __hash__(self) -> int:
        return hash((self._n_inputs, self._output, self.feature.tobytes(), self.value.tobytes()))

    def placed(self, rows: Array, rng: np.random.Generator) -> Array:
        """Return ``rows`` (n, D) from all cells, each with one input right beside a threshold."""
        rows = np.array(rows)
        inner = np.flatnonzero(self.feature >= 0)
        for feature, known in enumerate(self.thresholds()):
            if len(known):  # half of the rows: any cell of this input is as likely as any other
                beyond = max(float(np.ptp(known)), 1e-3 * float(np.abs(known).max()), 1e-300)
                edges = np.concatenate([[known[0] - beyond], known, [known[-1] + beyond]])
                cell = rng.integers(len(known) + 1, size=len(rows))
                drawn = edges[cell] + (1 - rng.random(len(rows))) * (edges[cell + 1] - edges[cell])
                rows[:, feature] = np.where(rng.random(len(rows)) < 0.5, drawn, rows[:, feature])
        if len(inner):
            node = np.resize(rng.permutation(inner), len(rows))
            side = np.where(rng.random(len(rows)) < 0.5, -np.inf, np.inf)
            beside = np.where(side > 0, np.nextafter(self.threshold[node], np.inf), self.threshold[node])
            rows[np.arange(len(rows)), self.feature[node]] = beside
        return rows

    def arrays(self) -> dict[str, Any]:
        """Return what an .npz archive holds."""
        held: dict[str, Any] = {
            "format": np.array(FORMAT),
            "version": np.array(VERSION),
            "n_inputs": np.array(self._n_inputs),
            "output": np.array(self._output),
            **self._tables,
        }
        return held if self.input_names is None else {**held, "input_names": np.array(self.input_names)}

    @classmethod
    def from_arrays(cls, content: dict[str, Any]) -> TreeEnsemble:
        """Return the trees that `arrays`, or the text of `to_json`, describes."""
        try:
            names = content.get("input_names")
            tables = {name: content[name] for name in _TABLES}
            names = None if names is None else [str(name) for name in names]
            return cls(
                **tables, n_inputs=int(content["n_inputs"]), output=str(content["output"]), input_names=names
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"the file must hold a sum of trees. Got {error} instead.") from error

    def with_names(self, input_names: Sequence[str]) -> TreeEnsemble:
        """Return the same trees with names of the inputs."""
        return TreeEnsemble(
            **self._tables, n_inputs=self._n_inputs, output=self._output, input_names=input_names
        )

    def to_json(self) -> str:
        """Return the tables as JSON text, exact to the last bit."""
        plain = {key: np.asarray(entry).tolist() for key, entry in self.arrays().items()}
        return json.dumps(plain, allow_nan=False) + "\n"

    def to_python(self, name: str = "predict") -> str:
        """Return the source of a Python function of one row that needs nothing else.

        It returns the K outputs as a list.
        """
        from unweave.networks.trees_source import python_source  # written only when asked for

        return python_source(self, name)

    def save(self, path: str | Path, dtype: str = "float64") -> None:
        """Write to ``path``: .npz, .json, .py, or .onnx (which answers in float32)."""
        from unweave.files.trees import save_trees  # files load networks, so they come later

        save_trees(self, Path(path), dtype)
