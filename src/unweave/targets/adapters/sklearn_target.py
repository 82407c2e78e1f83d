"""A scikit-learn estimator or pipeline, asked through the method whose answers are numbers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.targets.adapters.answer_source import loaded, no_answer, one_probability

_LABELLERS = ("classifier", "clusterer", "outlier_detector")  # their predict says a label, not a number


class SklearnTarget:
    """f(x) = one method of a fitted estimator.

    Of a regressor that is ``predict``; of a classifier ``predict_proba``, or ``decision_function`` if it has
    no probabilities. Two columns of probabilities are one sigmoid output and only the second is returned.
    An estimator that was fitted on a table with named columns is asked with the same names.

    Parameters
    ----------
    estimator : a fitted estimator or `Pipeline`.
    method : name of the method to ask; None to choose as above.
    """

    def __init__(self, estimator: Any, method: str | None = None) -> None:
        self._estimator = estimator
        self._name = _method_for(estimator) if method is None else method
        if self._name == "predict" and _kind(estimator) in _LABELLERS:
            raise InvalidInput(_labels_only(type(estimator).__name__, _kind(estimator)))
        width = getattr(estimator, "n_features_in_", None)
        self.n_inputs = None if width is None else int(width)
        """D, of a fitted estimator; None if it does not say."""

    def __call__(self, x: Array) -> Array:
        """Answer the rows of ``x`` (n, D): (n,) or (n, K) float64."""
        method: Callable[[Any], Any] = getattr(self._estimator, self._name)
        answer = method(_with_names(x, getattr(self._estimator, "feature_names_in_", None)))
        if isinstance(answer, list):
            raise no_answer(
                f"{type(self._estimator).__name__}.{self._name} must return one array. Got a list of "
                f"{len(answer)} instead, one per target of the classifier. Pass a function that returns one "
                "of them, or joins them."
            )
        numbers: Array = np.asarray(answer, dtype=np.float64)
        return one_probability(numbers) if self._name == "predict_proba" else numbers

    def __repr__(self) -> str:
        return f"SklearnTarget({type(self._estimator).__name__}.{self._name})"


def is_estimator(target: Any) -> bool:
    """Whether ``target`` is a scikit-learn estimator; scikit-learn is not imported to find out."""
    base = loaded("sklearn.base")
    return base is not None and isinstance(target, base.BaseEstimator)


def sklearn_target(target: Any) -> SklearnTarget:
    """Return the adapter of an estimator, or of a bound method such as ``model.decision_function``."""
    if is_estimator(target):
        return SklearnTarget(target)
    return SklearnTarget(target.__self__, method=target.__name__)


def _kind(estimator: Any) -> str | None:
    """Return ``"classifier"``, ``"regressor"``, ...; None where the estimator does not say."""
    base = loaded("sklearn.base")
    for name in ("classifier", "regressor", "clusterer", "outlier_detector"):
        try:
            if base is not None and getattr(base, f"is_{name}")(estimator):
                return name
        except (AttributeError, TypeError):  # estimators of other libraries do not all have the tags
            continue
    told = getattr(estimator, "_estimator_type", None)
    return told if isinstance(told, str) else None


def _method_for(estimator: Any) -> str:
    """Return the name of the method whose answers are numbers."""
    kind, name = _kind(estimator), type(estimator).__name__
    if kind == "regressor":
        return "predict"
    if kind == "classifier":
        methods = (method for method in ("predict_proba", "decision_function") if hasattr(estimator, method))
        method = next(methods, None)
        if method is None:
            raise InvalidInput(_labels_only(name, kind))
        return method
    raise InvalidInput(
        f"target must be a regressor or a classifier, if it is a scikit-learn estimator. Got {name} instead. "
        "Pass the method that is meant, for example model.transform."
    )


def _labels_only(name: str, kind: str | None) -> str:
    return (
        f"target must answer numbers that change with the input. Got {name}.predict instead, which says the "
        f"label of a {(kind or 'classifier').replace('_', ' ')}: labels carry the decision boundary only, "
        "not the scores behind it. Pass the model itself, model.predict_proba or model.decision_function."
    )


def _with_names(x: Array, names: Any) -> Any:
    """Return the rows as a table with the columns' names if the estimator knows any and pandas is there.

    Transformers that pick columns by name need the table; the others would warn without it.
    """
    if names is None or hasattr(x, "columns"):
        return x
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        return x
    return pandas.DataFrame(x, columns=names)
