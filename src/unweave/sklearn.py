"""A scikit-learn regressor that fits one hidden layer of kinked units by variable projection.

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

from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:  # pragma: no cover
    from unweave.errors import UnweaveError

    raise UnweaveError(
        f"scikit-learn must be installed for unweave.sklearn. Got {error} instead. "
        "Install it: pip install scikit-learn."
    ) from error

from unweave.arrays import Array
from unweave.methods.samples_relu.search import SamplesReluOptions
from unweave.numerics.variable_projection.search import SearchOptions
from unweave.recovery.recover import recover
from unweave.targets.samples import Samples


class NetworkRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Least squares over networks with one hidden layer; exact where the data come from one.

    Parameters
    ----------
    hidden
        Width, None to find out.
    activation
        "relu", "leaky_relu", "squared_relu"; None tries them.
    seed
        Of starts and of the rows held out.
    starts
        Random starts; fewer than `unweave.recover` takes, because data of an estimator are rarely exact.
    deadline
        Seconds after which the best fit so far is kept; None for no limit.

    Attributes
    ----------
    network_
        The fitted `unweave.Network`.
    recovery_
        The full result: status, error on held-out rows, certificate, notes. Where its verdict is that nothing
        was found, ``network_`` is the affine least-squares fit.
    """

    def __init__(
        self,
        hidden: int | None = None,
        activation: str | None = None,
        seed: int = 0,
        starts: int = 2,
        deadline: float | None = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.seed = seed
        self.starts = starts
        self.deadline = deadline

    def fit(self, X: Any, y: Any) -> NetworkRegressor:
        """Fit to X (n, d) and y (n,) or (n, K)."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        self._single_output = y.ndim == 1
        samples = Samples(X, y)
        hidden = None if self.hidden is None else [int(self.hidden)]
        options = SamplesReluOptions(search=SearchOptions(starts=self.starts))
        self.recovery_ = recover(
            samples, hidden, self.activation, self.seed, deadline=self.deadline, options=options
        )
        network = self.recovery_.network
        if network is None:
            network = recover(samples, [], seed=self.seed, tolerance=np.inf, options=options).network
        self.network_ = network if network is not None else _mean(samples)
        return self

    def predict(self, X: Any) -> Array:
        """Outputs of the network at X (n, d): (n,) or (n, K), as y was."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        values: Array = self.network_(X)
        return values[:, 0] if self._single_output else values


def _mean(samples: Samples) -> Any:
    """The network that always answers the mean."""
    from unweave.networks.network import Network

    weights = np.zeros((samples.n_inputs, samples.n_outputs))
    return Network([weights], [samples.y.mean(axis=0)], ["identity"])
