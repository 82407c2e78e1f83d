"""A fully connected network: an immutable value with float64 parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unweave.arrays import Array
from unweave.errors import InvalidInput, UnweaveError, install_hint
from unweave.networks.activations import SOFTMAX, get_activation, hidden_activation
from unweave.networks.evaluation import evaluate_layers
from unweave.networks.html_tables import html_table
from unweave.networks.rationals import EXACT_ACTIVATIONS, evaluate_exact, holds_fractions, rational_array

if TYPE_CHECKING:
    from unweave.files import Dtype

_SUMMARY_HEADINGS = ("layer", "shape", "activation", "parameters", "weights")


class Network:
    """A feed-forward network, layer by layer y = act(x @ W + b).

    Args:
        weights: one matrix per layer, output layer included, of shape (n_in, n_out).
        biases: one vector (n_out,) per layer.
        activations: one name per layer, output layer included. "logistic" is kept as "sigmoid", "linear" as
            "identity". "softmax" and "exp" are possible for the last layer only.
        skip: an optional (n_inputs, n_outputs) matrix; x @ skip is added to the last pre-activation.

    Where any parameter is a `fractions.Fraction`, all of them become fractions (floats by their exact value)
    and the network is *exact*: it answers in fractions, without rounding. Exact networks can be evaluated,
    composed and counted (`unweave.construct`); all else asks for floats (`unweave.construct.as_float`).

    Parameters are copied and read-only. Two networks are equal when they agree in activations and in every
    bit of every parameter; whether they are the same *function* is what `unweave.compare` tells.

    Example:
        >>> net = Network([[[1.0], [2.0]], [[3.0]]], [[0.0], [1.0]], ["tanh", "identity"])
        >>> net
        Network(2-1-1, tanh, identity output, 5 parameters)
        >>> float(net([0.0, 0.0])[0])
        1.0
    """

    __slots__ = ("_activations", "_biases", "_skip", "_weights")

    def __init__(
        self,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        activations: Sequence[str],
        skip: ArrayLike | None = None,
    ) -> None:
        weights, biases = tuple(weights), tuple(biases)
        exact = any(holds_fractions(value) for value in (*weights, *biases, skip))
        self._weights = tuple(_parameter(w, 2, f"weights[{i}]", exact) for i, w in enumerate(weights))
        self._biases = tuple(_parameter(b, 1, f"biases[{i}]", exact) for i, b in enumerate(biases))
        self._skip = None if skip is None else _parameter(skip, 2, "skip", exact)
        _check_shapes(self._weights, self._biases, self._skip)
        self._activations = _checked_activations(activations, len(self._weights), exact)

    @property
    def weights(self) -> tuple[Array, ...]:
        """Weight matrices (n_in, n_out), one per layer, read-only."""
        return self._weights

    @property
    def biases(self) -> tuple[Array, ...]:
        """Bias vectors (n_out,), one per layer, read-only."""
        return self._biases

    @property
    def activations(self) -> tuple[str, ...]:
        """Names of the activations, one per layer, output layer included."""
        return self._activations

    @property
    def skip(self) -> Array | None:
        """Matrix (n_inputs, n_outputs) from the inputs to the last pre-activation, or None."""
        return self._skip

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(self._weights[0].shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self._weights[-1].shape[1])

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return tuple(int(w.shape[1]) for w in self._weights[:-1])

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases, the skip matrix included."""
        counted = sum(p.size for p in (*self._weights, *self._biases))
        return counted + (0 if self._skip is None else self._skip.size)

    @property
    def is_exact(self) -> bool:
        """Whether the parameters are fractions, and so the answers."""
        return self._weights[0].dtype == object

    def require_floats(self, operation: str) -> None:
        """Raise `InvalidInput` if the network is exact: ``operation`` is made for floats."""
        if self.is_exact:
            raise InvalidInput(
                f"{operation} must be given a network of floats. Got {self!r} instead, whose parameters are "
                f"fractions. Round it first: unweave.construct.as_float(network)."
            )

    def __call__(self, x: ArrayLike) -> Array:
        """Return the outputs (n, n_outputs) at the rows of x (n, n_inputs); a single vector gives a vector.

        Many rows are evaluated in blocks, on as many threads as BLAS may use. The number of threads does not
        change the result.
        """
        points = rational_array(x, "x") if self.is_exact else np.asarray(x, dtype=np.float64)
        if points.ndim not in (1, 2) or points.shape[-1] != self.n_inputs:
            raise InvalidInput(
                f"x must be of shape (n, {self.n_inputs}) or ({self.n_inputs},). Got shape {points.shape} "
                f"instead. Give one row per point and one column per input."
            )
        rows = np.atleast_2d(points)
        if self.is_exact:
            values = evaluate_exact(rows, self._weights, self._biases, self._activations, self._skip)
        else:
            functions = [None if name == SOFTMAX else get_activation(name) for name in self._activations]
            values = evaluate_layers(rows, self._weights, self._biases, functions, self._skip)
        return np.asarray(values[0] if points.ndim == 1 else values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and other processes go through the constructor, so that they are read-only too.
        return Network, (self._weights, self._biases, self._activations, self._skip)

    def __repr__(self) -> str:
        shape = "-".join(str(n) for n in (self.n_inputs, *self.hidden, self.n_outputs))
        inner, output = self._activations[:-1], self._activations[-1]
        named = [inner[0]] if len(set(inner)) == 1 else ["/".join(inner)] if inner else []
        skip = [] if self._skip is None else ["skip"]
        exact = ["exact"] if self.is_exact else []
        parts = [shape, *named, f"{output} output", *skip, *exact, f"{self.n_parameters} parameters"]
        return f"Network({', '.join(parts)})"

    def save(self, path: str | Path, dtype: Dtype = "float64") -> None:
        """Write the network to a file; its ending says in which format. `unweave.load` reads it.

        Args:
            path: ends in .npz, .json, .onnx (needs onnx) or .safetensors (needs safetensors). What was there
                is replaced only once the new file is complete.
            dtype: "float64" is exact, bit for bit; "float32" rounds the parameters, and an .onnx model
                computes in it.
        """
        self.require_floats("saving")
        from unweave.files import save  # files needs Network to read, so it is imported here

        save(self, path, dtype)

    def to_torch(self, structure: bool = False) -> Any:
        """Return a double-precision torch.nn.Sequential (a small Module if there is a skip). Needs torch.

        With ``structure=True`` a first layer that is a convolution becomes a Conv1d or Conv2d; the module
        takes flat rows all the same.
        """
        self.require_floats("to_torch")
        return _torch_modules("to_torch").to_torch(self, structure)

    @staticmethod
    def from_torch(module: Any) -> Network:
        """Return the network in a torch module: a Sequential of Linear layers and activations.

        Parameters are exact (float32 ones as the float64 that they are). What `to_torch` gives is read too,
        with its skip. A layer of another kind, or a module with a forward of its own, is named and refused:
        what it computes cannot be read from its parts. Needs torch.

        Example:
            >>> net = Network([[[1.0], [2.0]], [[3.0]]], [[0.0], [1.0]], ["tanh", "identity"])
            >>> Network.from_torch(net.to_torch()) == net
            True
        """
        network: Network = _torch_modules("from_torch").from_torch(module)
        return network

    @staticmethod
    def from_sklearn(model: Any) -> Network:
        """Return the network in a fitted scikit-learn model: its answers are those of the model.

        ``model`` is an MLPRegressor, an MLPClassifier (the network answers probabilities; of two classes that
        of the second), a linear model, or a pipeline of scalers that ends in one of them. Anything else is
        named and refused: it can be recovered from its answers.

        Example:
            >>> import numpy as np
            >>> from sklearn.linear_model import LinearRegression
            >>> model = LinearRegression().fit(np.eye(3), [1.0, 2.0, 4.0])
            >>> Network.from_sklearn(model).n_inputs
            3
        """
        from unweave.networks.other_libraries import from_sklearn

        return from_sklearn(model)

    @staticmethod
    def from_keras(model: Any) -> Network:
        """Return the network in a keras model: a chain of Dense layers and activations, dropout ignored.

        Parameters are exact (float32 ones as the float64 that they are). Anything else is named and refused.
        """
        from unweave.networks.other_libraries import from_keras

        return from_keras(model)

    def predict(self, x: ArrayLike) -> Array:
        """Return the outputs at the rows of x: the network called, for those who look for ``predict``.

        Example:
            >>> net = Network([[[1.0], [2.0]], [[3.0]]], [[0.0], [1.0]], ["tanh", "identity"])
            >>> bool((net.predict([[1.0, 2.0]]) == net([[1.0, 2.0]])).all())
            True
        """
        return self(x)

    def summary(self) -> str:
        """Return a table of the layers: shape, activation, parameters, range of the weights.

        Example:
            >>> print(Network([[[1.0], [2.0]], [[3.0]]], [[0.0], [1.0]], ["tanh", "identity"]).summary())
            layer      shape    activation   parameters   weights
            hidden 1   2 -> 1   tanh         3            1 to 2
            output     1 -> 1   identity     2            3 to 3
            5 parameters
        """
        rows = [_SUMMARY_HEADINGS, *self._layer_rows()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_SUMMARY_HEADINGS))]
        lines = [
            "  ".join(cell.ljust(width + 1) for cell, width in zip(row, widths, strict=True)) for row in rows
        ]
        counted = f"{self.n_parameters:,} parameter{'' if self.n_parameters == 1 else 's'}"
        return "\n".join([*(line.rstrip() for line in lines), counted])

    def _layer_rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for place, (weights, biases, name) in enumerate(
            zip(self._weights, self._biases, self._activations, strict=True)
        ):
            title = "output" if place == len(self._weights) - 1 else f"hidden {place + 1}"
            shape = f"{weights.shape[0]} -> {weights.shape[1]}"
            rows.append((title, shape, name, f"{weights.size + biases.size:,}", _range(weights)))
        if self._skip is not None:
            shape = f"{self._skip.shape[0]} -> {self._skip.shape[1]}"
            rows.append(("skip", shape, "", f"{self._skip.size:,}", _range(self._skip)))
        return rows

    def _repr_html_(self) -> str:
        """Show the network in a notebook."""
        return html_table(repr(self), _SUMMARY_HEADINGS, self._layer_rows())

    def _key(self) -> tuple[Any, ...]:
        arrays = (*self._weights, *self._biases, *(() if self._skip is None else (self._skip,)))
        # The bytes of fractions are addresses: those are compared by value.
        return self._activations, tuple(
            (a.shape, tuple(a.flat) if a.dtype == object else a.tobytes()) for a in arrays
        )


def _range(values: Array) -> str:
    return f"{float(values.min()):.3g} to {float(values.max()):.3g}"


def _torch_modules(operation: str) -> Any:
    try:
        from unweave.networks import torch_modules  # torch is optional and slow to import
    except ModuleNotFoundError as error:
        raise UnweaveError(
            f"torch must be installed for {operation}. Got {error} instead. {install_hint('torch')}"
        ) from error
    return torch_modules


def _parameter(value: ArrayLike, ndim: int, name: str, exact: bool) -> Array:
    try:
        array = rational_array(value, name) if exact else np.array(value, dtype=np.float64, order="C")
    except InvalidInput:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{name} must be an array of real numbers. Got {type(value).__name__} instead ({error}). "
            f"Give a rectangular float64 array."
        ) from error
    if array.ndim != ndim or (array.size == 0 and ndim == 2):
        form = "a non-empty matrix (n_in, n_out)" if ndim == 2 else "a vector (n_out,)"
        raise InvalidInput(f"{name} must be {form}. Got shape {array.shape} instead. Reshape it.")
    if not exact and not np.isfinite(array).all():
        bad = int(np.size(array) - np.isfinite(array).sum())
        raise InvalidInput(f"{name} must be finite. Got {bad} NaN or infinite entries instead. Remove them.")
    array.setflags(write=False)
    return array


def _check_shapes(weights: tuple[Array, ...], biases: tuple[Array, ...], skip: Array | None) -> None:
    if not weights or len(weights) != len(biases):
        raise InvalidInput(
            f"weights and biases must be one per layer, at least one layer. Got {len(weights)} weights and "
            f"{len(biases)} biases instead. Give zeros for a layer without bias."
        )
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if i and weight.shape[0] != weights[i - 1].shape[1]:
            raise InvalidInput(
                f"weights[{i}] must have {weights[i - 1].shape[1]} rows, one per unit of the layer before. "
                f"Got shape {weight.shape} instead. Weights are (n_in, n_out); transpose them if they are "
                f"stored the other way."
            )
        if bias.shape != (weight.shape[1],):
            raise InvalidInput(
                f"biases[{i}] must be of shape ({weight.shape[1]},). Got {bias.shape} instead. "
                f"weights[{i}] has shape {weight.shape}, which is (n_in, n_out)."
            )
    expected = (weights[0].shape[0], weights[-1].shape[1])
    if skip is not None and skip.shape != expected:
        raise InvalidInput(
            f"skip must be of shape {expected}, (n_inputs, n_outputs). Got {skip.shape} instead. Reshape it."
        )


def _checked_activations(names: Sequence[str], n_layers: int, exact: bool) -> tuple[str, ...]:
    if isinstance(names, str) or len(names) != n_layers:
        raise InvalidInput(
            f"activations must be one name per layer, output layer included: {n_layers} names. Got {names!r} "
            f'instead. For example ["tanh", "identity"].'
        )
    resolved = [hidden_activation(name).name for name in names[:-1]]
    resolved.append(SOFTMAX if names[-1] == SOFTMAX else get_activation(names[-1]).name)
    irrational = [name for name in resolved if name not in EXACT_ACTIVATIONS] if exact else []
    if irrational:
        raise InvalidInput(
            f"activations of a network of fractions must keep rational numbers rational: "
            f"{', '.join(EXACT_ACTIVATIONS)}. Got {irrational[0]!r} instead. Give the parameters as floats."
        )
    return tuple(resolved)
