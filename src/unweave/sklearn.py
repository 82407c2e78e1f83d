"""Scikit-learn estimators: networks with one hidden layer for tables of data.

Needs scikit-learn, which `import unweave` does not.

Example:
    >>> import numpy as np, unweave
    >>> from unweave.sklearn import NetworkRegressor
    >>> net = unweave.random_network([5, 4, 1], activation="relu", seed=1, outer="signed")
    >>> x = np.random.default_rng(7).standard_normal((600, 5))
    >>> model = NetworkRegressor(hidden=4, activation="relu").fit(x, net(x)[:, 0])
    >>> bool(np.abs(model.predict(x) - net(x)[:, 0]).max() < 1e-9), model.recovery_.status.name
    (True, 'RECOVERED')
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ModuleNotFoundError as error:  # pragma: no cover
    from unweave.errors import UnweaveError, install_hint

    raise UnweaveError(
        f"scikit-learn must be installed for unweave.sklearn. Got {error} instead. {install_hint('sklearn')}"
    ) from error

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.methods.samples_relu.search import SamplesReluOptions
from unweave.methods.samples_weighed.search import SamplesWeighedOptions
from unweave.networks.evaluation import softmax_in_place
from unweave.networks.network import Network
from unweave.numerics.clock import SecondsLeft, time_limit
from unweave.numerics.threads import single_threaded_blas
from unweave.numerics.variable_projection.search import SearchOptions
from unweave.recovery.recover import recover
from unweave.recovery.result import Recovery
from unweave.tables.penalised_fit import Loss
from unweave.tables.selection import SelectionOptions, choose_model
from unweave.tables.weighted_rows import Standardized, WeightedRows
from unweave.targets.held_out import NO_RECOVERY
from unweave.targets.samples import Samples


class _NetworkEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the choice of a penalised network on held-out rows."""

    hidden: int | None
    activation: str | None
    seed: int
    folds: int
    members: int
    deadline: float | None

    def _choose(self, rows: WeightedRows, loss: Loss, seconds_left: SecondsLeft | None) -> Network:
        standardized = Standardized.of(rows, loss)
        options = SelectionOptions(folds=self.folds, width=self.hidden, members=self.members)
        if self.activation is not None:
            options = replace(options, activations=(self.activation,))
        with time_limit(seconds_left), single_threaded_blas(), np.errstate(all="ignore"):
            choice = choose_model(standardized.table, options, self.seed)
        self.candidates_ = choice.scored
        return standardized.network(choice.model)

    def _seconds_left(self) -> SecondsLeft | None:
        if self.deadline is None:
            return None
        end = time.perf_counter() + float(self.deadline)
        return lambda: max(0.0, end - time.perf_counter())

    def _weights(self, sample_weight: Any, X: Array) -> Array | None:
        if sample_weight is None:
            return None
        weights: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise InvalidInput("sample_weight must have a positive entry. Got zeros only instead.")
        return weights


class NetworkRegressor(MultiOutputMixin, RegressorMixin, _NetworkEstimator):  # type: ignore[misc]
    """One hidden layer by least squares: exact where the data come from one, else under a ridge.

    First `unweave.recover` looks for a network that answers the rows exactly. Where there is none, ridges on
    the units and on an affine part beside them, the kind of units and their number are chosen by
    cross-validation, and several starts are averaged. An affine map stays where units do not pay. Inputs and
    answers are standardized inside.

    Parameters
    ----------
    hidden
        Width, None to find out. Under a ridge, every start has this many units; 0 for an affine map.
    activation
        Kind of the units, None to find out.
    seed
        Of starts and of the rows held out.
    starts
        Random starts of the search for an exact network.
    deadline
        Seconds after which the best fit so far is kept; None for no limit.
    folds
        Parts of the rows of which each is held out once.
    members
        Starts that are averaged under a ridge.

    Attributes
    ----------
    network_
        The fitted `unweave.Network`, for inputs and answers in their own units.
    recovery_
        Result of the search for an exact network: status, error on held-out rows, certificate, notes. None
        where the answers are so few different numbers that nothing exact can be read off them.
    candidates_
        Settings that were compared, with their losses on held-out rows; empty where the network is exact.
    """

    def __init__(
        self,
        hidden: int | None = None,
        activation: str | None = None,
        seed: int = 0,
        starts: int = 2,
        deadline: float | None = None,
        folds: int = 5,
        members: int = 5,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.seed = seed
        self.starts = starts
        self.deadline = deadline
        self.folds = folds
        self.members = members

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NetworkRegressor:
        """Fit to X (n, d) and y (n,) or (n, K); rows count by ``sample_weight`` (n,)."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        self._single_output = y.ndim == 1
        answers = np.asarray(y.reshape(len(y), -1), dtype=np.float64)
        rows = WeightedRows.of(X, answers, self._weights(sample_weight, X))
        left, found = self._seconds_left(), self._recovered(rows)
        self.recovery_, self.candidates_ = found, ()
        network = None if found is None or not found.status.is_recovered else found.network
        self.network_: Network = self._choose(rows, "squares", left) if network is None else network
        return self

    def _recovered(self, rows: WeightedRows) -> Recovery | None:
        """Look for an exact network, if the answers can tell it from others."""
        samples = Samples(rows.x, rows.y)
        spread = rows.y.std(axis=0)
        if (samples.precision().sigma > NO_RECOVERY * np.where(spread > 0, spread, 1.0)).any():
            return None
        hidden = None if self.hidden is None else [int(self.hidden)] if self.hidden else []
        starts = SamplesReluOptions(search=SearchOptions(starts=self.starts))
        options = (starts, SamplesWeighedOptions(asked=False))  # what is not exact is chosen by the folds
        try:
            return recover(
                samples, hidden, self.activation, self.seed, deadline=self.deadline, options=options
            )
        except InvalidInput:
            return None  # no method looks for units of this kind in samples

    def predict(self, X: Any) -> Array:
        """Outputs of the network at X (n, d): (n,) or (n, K), as y was."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        values: Array = self.network_(X)
        return values[:, 0] if self._single_output else values


class NetworkClassifier(ClassifierMixin, _NetworkEstimator):  # type: ignore[misc]
    """One hidden layer by maximum likelihood under a ridge, behind a sigmoid or softmax.

    Ridges on the units and on an affine part beside them, the kind of units and their number are chosen by
    the log loss in cross-validation, and several starts are averaged. Logistic regression stays where units
    do not pay. Inputs are standardized inside; labels may be of any type.

    Parameters
    ----------
    hidden
        Number of units of every start, None to find out; 0 for logistic regression.
    activation
        Kind of the units, None to find out.
    seed
        Of starts and of the rows held out.
    deadline
        Seconds after which the best fit so far is kept; None for no limit.
    folds
        Parts of the rows of which each is held out once.
    members
        Starts that are averaged.

    Attributes
    ----------
    network_
        The fitted `unweave.Network`: one sigmoid output for two classes, the second one's probability, else a
        softmax.
    classes_
        Labels, sorted.
    candidates_
        Settings that were compared, with their losses on held-out rows.

    Example
    -------
    >>> from sklearn.datasets import load_iris
    >>> x, y = load_iris(return_X_y=True)
    >>> model = NetworkClassifier().fit(x, y)
    >>> model.predict_proba(x).shape, bool(model.score(x, y) > 0.95)
    ((150, 3), True)
    """

    def __init__(
        self,
        hidden: int | None = None,
        activation: str | None = None,
        seed: int = 0,
        deadline: float | None = None,
        folds: int = 5,
        members: int = 5,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.seed = seed
        self.deadline = deadline
        self.folds = folds
        self.members = members

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NetworkClassifier:
        """Fit to X (n, d) and labels y (n,); rows count by ``sample_weight`` (n,)."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        if weights is not None:
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        self.classes_, numbers = np.unique(y, return_inverse=True)
        count = len(self.classes_)
        if count < 2:
            raise InvalidInput(
                f"y must hold rows of at least two classes. Got one class, {self.classes_[0]!r}, instead. "
                "Give rows of every class that is to be told apart."
            )
        indicators = np.eye(count)[numbers] if count > 2 else numbers[:, None].astype(np.float64)
        self.network_ = self._choose(WeightedRows.of(X, indicators, weights), "classes", self._seconds_left())
        return self

    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class (n,), or what the softmax reads (n, K)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        net = self.network_
        before = Network(net.weights, net.biases, (*net.activations[:-1], "identity"), net.skip)
        values: Array = before(X)
        return values if len(self.classes_) > 2 else values[:, 0]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) in the order of ``classes_``."""
        scores = self.decision_function(X)
        # Two classes: a softmax of (0, z), which keeps the digits of small probabilities of either.
        probabilities = scores if scores.ndim == 2 else np.stack([np.zeros_like(scores), scores], axis=1)
        softmax_in_place(probabilities)
        return probabilities

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities (n, K)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> Any:
        """Likeliest labels (n,)."""
        scores = self.decision_function(X)
        numbers = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)
        return self.classes_[numbers]


__all__ = ["NetworkClassifier", "NetworkRegressor"]
