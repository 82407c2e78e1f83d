"""Turn what the user gave into a ledger: a table of kinds, each with the adapter that asks it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.targets.adapters.answer_source import AnswerSource, optional_package
from unweave.targets.adapters.file_target import is_path, open_file_target
from unweave.targets.adapters.keras_target import answers_like_the_model, is_keras_model, keras_target
from unweave.targets.adapters.onnx_target import OnnxTarget, is_onnx_session
from unweave.targets.adapters.sklearn_target import is_estimator, sklearn_target
from unweave.targets.adapters.torch_target import is_torch_module, torch_target
from unweave.targets.budget import within
from unweave.targets.differentiation import Differentiate, differentiator, not_differentiable
from unweave.targets.queries import Queries

_WIDTH_ATTRIBUTES = ("n_inputs", "n_features_in_")  # our own targets; scikit-learn's estimators
_URL_STARTS = ("http://", "https://")

_OPENED: weakref.WeakKeyDictionary[Queries, Callable[[], None]] = weakref.WeakKeyDictionary()
"""Ledger -> how to close what `as_queries` opened for it."""


@dataclass(frozen=True)
class Kind:
    """One kind of target: how to recognise it, and how to open it, told the number of inputs if known."""

    name: str
    recognises: Callable[[Any], bool]
    open: Callable[[Any, int | None], AnswerSource]


def as_queries(
    target: Any,
    input_dim: int | None = None,
    max_queries: int | None = None,
    deadline: float | None = None,
    differentiable: bool = False,
) -> Queries:
    """Wrap ``target`` into `Queries`; from here on nothing sees the target itself.

    A `Queries` is used as it is, with its answers; its budget is replaced when ``max_queries`` (further
    rows) or ``deadline`` (further seconds) is given. Anything else (see `KINDS`) is asked for answers and for
    nothing else: the parameters of a network, module or file given as target are out of reach. What is opened
    for the ledger alone, such as the connections to a URL, is closed by `release`. Only if ``differentiable``
    may the ledger take derivatives (`Queries.differentiate`); a target that has none is refused.

    Example
    -------
    >>> as_queries(lambda x: x[:, 0], input_dim=2).n_inputs
    2
    """
    if isinstance(target, Queries):
        if differentiable and not target.differentiable:
            raise not_differentiable("the ledger of a run that took no derivatives")
        return _continued(target, input_dim, max_queries, deadline)
    with within(deadline) as budget:
        source = open_target(target, input_dim)
    n_inputs = _input_width(source, input_dim)
    differentiate = differentiator(source) if differentiable else None
    if differentiable and differentiate is None:
        raise not_differentiable(_described(target))
    queries = Queries(
        _only_answers(source),
        n_inputs,
        max_queries=max_queries,
        deadline=budget.seconds_left,
        batch_rows=getattr(source, "rows_per_call", None),
        differentiate=differentiate,
    )
    close = getattr(source, "close", None)
    if source is not target and callable(close):
        _OPENED[queries] = close
    return queries


def release(queries: Queries) -> None:
    """Close what `as_queries` opened for this ledger; targets that the user opened stay as they are."""
    close = _OPENED.pop(queries, None)
    if close is not None:
        close()


def open_target(target: Any, input_dim: int | None = None) -> AnswerSource:
    """Return what answers for ``target``, by the first of `KINDS` that recognises it.

    ``input_dim`` is only handed to what cannot be opened without; it is compared with what the target says
    in `as_queries`.
    """
    for kind in KINDS:
        if kind.recognises(target):
            return kind.open(target, input_dim)
    what = f"the class {target.__name__}" if isinstance(target, type) else type(target).__name__
    hint = " Pass model.predict, or the method that is meant, and input_dim." if _predicts(target) else ""
    raise InvalidInput(
        "target must be a callable that maps (n, inputs) to (n,) or (n, outputs), an unweave.Network, a "
        "torch module, a scikit-learn estimator, a keras model, the path of a model file, the URL of an "
        f"endpoint, an unweave.CommandTarget or an unweave Queries ledger. Got {what} instead.{hint}"
    )


def is_target(target: Any) -> bool:
    """Whether ``target`` is of a kind that can be asked."""
    return any(kind.recognises(target) for kind in KINDS)


def _described(target: Any) -> str:
    """Describe type and kind of a target in a few words, without anything that may be secret."""
    kind = next(kind.name for kind in KINDS if kind.recognises(target))
    name = repr(target) if isinstance(target, _Plain) else type(target).__name__
    return name if name == kind else f"{name} ({kind})"


def is_url(target: Any) -> bool:
    """Whether ``target`` is the address of an HTTP endpoint."""
    return isinstance(target, str) and target.lower().startswith(_URL_STARTS)


class _Plain:
    """Any callable, with the number of inputs that it, or the object it is a method of, declares."""

    def __init__(self, function: Callable[[Array], Any]) -> None:
        self._function = function
        owners = (function, getattr(function, "__self__", None))
        found = (getattr(owner, name, None) for owner in owners for name in _WIDTH_ATTRIBUTES)
        self.n_inputs: int | None = next((width for width in found if width is not None), None)
        # What an adapter that the user made says about itself.
        self.assumed_inputs: int | None = getattr(function, "assumed_inputs", None)
        self.rows_per_call: int | None = getattr(function, "rows_per_call", None)

    def __call__(self, x: Array) -> Any:
        return self._function(x)

    @property
    def differentiate(self) -> Differentiate | None:
        """What takes derivatives of the function, if there is something."""
        return differentiator(self._function)

    def __repr__(self) -> str:
        return type(self._function).__name__


def _open_url(url: str, input_dim: int | None) -> AnswerSource:
    optional_package("httpx", "http", "ask an HTTP endpoint")
    from unweave.targets.adapters.http_options import HttpOptions
    from unweave.targets.adapters.http_target import open_http_target

    return open_http_target(url, None if input_dim is None else HttpOptions(n_inputs=input_dim))


def _method_of(recognises: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether something is a bound method of what ``recognises`` recognises."""
    return lambda target: callable(target) and recognises(getattr(target, "__self__", None))


def _is_keras_method(target: Any) -> bool:
    return _method_of(is_keras_model)(target) and answers_like_the_model(target)


def _is_function(target: Any) -> bool:
    return callable(target) and not isinstance(target, type)


def _predicts(target: Any) -> bool:
    return hasattr(target, "predict") and not isinstance(target, type)


KINDS: tuple[Kind, ...] = (
    Kind("URL of an endpoint", is_url, _open_url),
    Kind("model file", is_path, lambda target, _: open_file_target(target)),
    # Before torch: on that backend a keras model is a torch module as well.
    Kind("keras model", is_keras_model, lambda target, _: keras_target(target)),
    Kind("method of a keras model", _is_keras_method, lambda target, _: keras_target(target)),
    Kind("torch module", is_torch_module, lambda target, _: torch_target(target)),
    Kind("method of a torch module", _method_of(is_torch_module), lambda target, _: torch_target(target)),
    Kind("scikit-learn estimator", is_estimator, lambda target, _: sklearn_target(target)),
    Kind("method of an estimator", _method_of(is_estimator), lambda target, _: sklearn_target(target)),
    Kind("onnxruntime session", is_onnx_session, lambda target, _: OnnxTarget(target)),
    Kind("function", _is_function, lambda target, _: _Plain(target)),
)
"""Every kind of target, asked in this order; the last takes anything callable."""


def _continued(
    ledger: Queries, input_dim: int | None, max_queries: int | None, deadline: float | None
) -> Queries:
    """Return ``ledger``, with a new budget if one is given."""
    if input_dim is not None and input_dim != ledger.n_inputs:
        raise InvalidInput(
            f"input_dim must be {ledger.n_inputs}, as in the ledger given. "
            f"Got {input_dim} instead. Leave it out."
        )
    if max_queries is not None or deadline is not None:
        ledger.reset_budget(
            max_queries=ledger.remaining if max_queries is None else max_queries,
            deadline=ledger.seconds_left if deadline is None else deadline,
        )
    return ledger


def _input_width(source: AnswerSource, input_dim: int | None) -> int:
    """Return the number of inputs: as declared, as given, or as assumed where neither is the case."""
    declared = source.n_inputs
    if declared is not None and input_dim is not None and declared != input_dim:
        raise InvalidInput(
            f"input_dim must be {declared}, as the target itself says. Got {input_dim} instead. Leave it out."
        )
    known = (declared, input_dim, getattr(source, "assumed_inputs", None))
    width = next((width for width in known if width is not None), None)
    if width is None:
        raise InvalidInput(
            "input_dim must be given for a plain function or a model that does not say its number of inputs. "
            "Pass input_dim=<number of inputs>, or fit or build the model first."
        )
    return width


def _only_answers(target: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """Return a function that asks the target and has no other door to it."""

    def answer(x: Array) -> Any:
        return target(x)

    return answer
