"""Turn what the user gave into a ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unweave.access.queries import Queries
from unweave.arrays import Array
from unweave.errors import InvalidInput

_WIDTH_ATTRIBUTES = ("n_inputs", "n_features_in_")  # our own networks; scikit-learn's estimators


def as_queries(
    target: Any,
    input_dim: int | None = None,
    max_queries: int | None = None,
    deadline: float | None = None,
) -> Queries:
    """Wrap ``target`` into `Queries`; from here on nothing sees the target itself.

    A `Queries` is used as it is, with its answers; its budget is replaced when ``max_queries`` (further
    rows) or ``deadline`` (further seconds) is given. Anything callable on (n, inputs) arrays is asked for
    answers and for nothing else: the parameters of a network given as target are out of reach.

    Example
    -------
    >>> as_queries(lambda x: x[:, 0], input_dim=2).n_inputs
    2
    """
    if isinstance(target, Queries):
        return _continued(target, input_dim, max_queries, deadline)
    n_inputs = _input_width(target, input_dim)
    return Queries(_only_answers(target), n_inputs, max_queries=max_queries, deadline=deadline)


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


def _input_width(target: Any, input_dim: int | None) -> int:
    """Return the number of inputs, read from the target or given."""
    if not callable(target) or isinstance(target, type):
        what = f"the class {target.__name__}" if isinstance(target, type) else type(target).__name__
        raise InvalidInput(
            "target must be a callable that maps (n, inputs) to (n,) or (n, outputs), an unweave.Network or "
            f"an unweave Queries ledger. Got {what} instead. For a model with a predict method pass "
            "model.predict and input_dim."
        )
    declared = next((getattr(target, name) for name in _WIDTH_ATTRIBUTES if hasattr(target, name)), None)
    if declared is None and input_dim is None:
        raise InvalidInput(
            "input_dim must be given for a plain function, because its number of inputs cannot be read from "
            "it. Got None instead. Pass input_dim=<number of inputs>."
        )
    if declared is not None and input_dim is not None and declared != input_dim:
        raise InvalidInput(
            f"input_dim must be {declared}, as the target itself says. Got {input_dim} instead. Leave it out."
        )
    width: int = input_dim if declared is None else declared  # type: ignore[assignment]
    return width


def _only_answers(target: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """Return a function that asks the target and has no other door to it."""

    def answer(x: Array) -> Any:
        return target(x)

    return answer
