"""The front door: wrap, look, choose, run, judge, tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unweave.errors import InvalidInput
from unweave.execution.executor import Executor
from unweave.execution.store import Checkpoint
from unweave.methods.table import METHODS
from unweave.networks.activations import SOFTMAX, get_activation, hidden_activation
from unweave.networks.columns import columns_of
from unweave.numerics.memory import default_limit, memory_limit
from unweave.recovery.choose import (
    checked_options,
    method_named,
    refuse_autodiff_without_use,
)
from unweave.recovery.mixed import recover_columns, refuse_other_arguments
from unweave.recovery.plan import usual_rows
from unweave.recovery.result import Recovery
from unweave.recovery.resume import running
from unweave.recovery.run import Run
from unweave.recovery.sample_links import recover_behind_links
from unweave.recovery.settings import with_settings
from unweave.recovery.sources import QueriedTarget, SampledTarget, Source
from unweave.recovery.tables import asked_with_frames, refuse_tables, width_told
from unweave.recovery.thrift import is_tight
from unweave.search import Method, Progress, Request
from unweave.search.request import checked_widths
from unweave.targets.differentiation import not_differentiable
from unweave.targets.samples import Samples
from unweave.targets.target import as_queries, release

AUTODIFF = "autodiff"
DERIVATIVES = ("queries", AUTODIFF)
"""Where derivatives may come from."""


@with_settings
@np.errstate(all="ignore")  # whatever the caller has set: what comes out is judged, not warned about
def recover(
    target: Any,
    hidden: Sequence[int] | int | None = None,
    activation: str | None = None,
    seed: int = 0,
    *,
    input_dim: int | None = None,
    output_activation: str | None = None,
    domain: tuple[Any, Any] | None = None,
    examples: Any = None,
    inputs: Any = None,
    max_queries: int | None = None,
    deadline: float | None = None,
    tolerance: float | None = None,
    verify: Any = None,
    method: str | Method | None = None,
    averaging: float | None = None,
    derivatives: str = "queries",
    options: Any = None,
    max_memory: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    executor: Executor | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> Recovery:
    """Recover the network behind ``target`` from its answers alone.

    Parameters
    ----------
    target
        A callable (n, D) -> (n,) or (n, K), a `Network`, a torch module, a scikit-learn estimator or
        pipeline (regressors are asked to predict, classifiers for probabilities; or pass a bound method such
        as ``model.decision_function``), a keras model, the path of a model file (.npz, .json, .safetensors,
        .onnx; never a pickle), the http(s) URL of an endpoint, a `CommandTarget`, or the ``ledger`` of an
        earlier error, whose answers are reused. It is only ever asked for answers; two columns of
        probabilities are one sigmoid output. Or passive data, `Samples`, for which ``hidden``,
        ``activation``, ``output_activation``, ``seed``, ``tolerance``, ``deadline``, ``method``,
        ``options`` and ``progress`` may be given.
    hidden
        Widths of the hidden layers if known, e.g. ``[100]`` or just ``100``; ``[]`` for none; None to find
        out. A width that is too large gives the minimal network and a note.
    activation
        Name if known; None to find out (the logistic function is given as tanh).
    seed
        Whole number >= 0. Same seed, same answers of the target, same result.
    input_dim
        D; needed for a plain callable or a model that does not say it, unless ``examples`` show it.
    output_activation
        Name if known; None to find out among identity, tanh, sigmoid and softmax; and exp, of
        targets without hidden layers.
    domain
        ``(low, high)``, numbers or one per input: nothing outside is ever asked.
    examples
        (n, D) typical inputs, from which location and scale of every input are taken. Up to 300 of them are
        asked when a network is judged. A pandas frame keeps its names and types: whole numbers, booleans and
        categories are seen, and only rows that they admit are asked, as a frame.
    inputs
        Kinds of the columns, one per column or by name: "number", "whole", "boolean", "category" (levels as
        in the examples) or a list of levels. None for what the examples show.
    max_queries, deadline
        Rows that may be sent, seconds that may pass; when they are used up, what was found is returned.
    tolerance
        Relative error on fresh rows that counts as recovered, instead of the target's own precision.
    verify
        Buys a stronger verdict: a number of fresh rows, drawn at random besides those that are always asked,
        or rows (n, D) of your own. The certificate states what agreeing rows rule out.
    method
        Name of a method ("affine", "one_versus_rest", "quadratic_form", "relu", "relu_deep",
        "relu_layers", "relu_pairs", "relu_coarse", "smooth", "smooth_coarse", "smooth_values",
        "smooth_wide", "smooth_patterns", "smooth_deep", "smooth_deep_values", "rectified_deep", "trees",
        "published"; for samples
        "samples_relu", "samples_squared_relu", "samples_smooth", "samples_deep", "samples_quadratic",
        "samples_quadratic_form"), or a `unweave.search.Method` of your own; None to choose.
    averaging
        For coarse answers: rows of the final fit per parameter; the error falls with its square root. None:
        rounded answers of a target that repeats itself are bisected instead, which makes them exact; noisy
        ones are averaged over 32 rows per parameter.
    derivatives
        "queries": from answers alone. "autodiff": gradients and Hessians of one smooth hidden layer are taken
        by backward passes through the target, a torch module, a bound method of one, or a `Network`; each
        pass counts as a query, 1 + K for the gradients of K outputs at a row and K d more for their Hessians
        in d directions, and a note says how many. They come in the module's own precision: call ``.double()``
        on a float32 module, or expect about five digits. Other methods, and verification, ask for answers.
    options
        Options of a method, or a list of them, in place of its defaults: the dataclass that the method's
        folder in `unweave.methods` documents, e.g. `unweave.methods.relu.search.ReluOptions`.
    max_memory
        Bytes that matrices may take: larger fits run without them or piece by piece, which takes longer, or
        the result says that there is no room. None for half of what is free when the call begins (that the
        machine and the container's control group leave); infinite for no limit.
    progress
        Called with a `Progress` from time to time. If it raises an exception, the run goes on without it, and
        a note of the result says so; Ctrl-C (KeyboardInterrupt) still ends the run.
    executor
        Who computes, e.g. ``unweave.execution.DaskExecutor(workers=2)``; None for this process. The network
        does not depend on it. It is not closed.
    checkpoint
        A path, or a `Checkpoint`: a file that ends in .sqlite, else a directory, where every answer is kept
        as it arrives. The same call with the same path goes on after a crash or a kill: nothing is asked
        twice, the network is the same, and ``queries`` counts only what was sent this time. Derivatives by
        autodiff are not kept: they are taken, and counted, again.

    Returns
    -------
    Recovery
        Status, network, error on fresh rows, queries, stages, certificate.

    Raises
    ------
    TargetError
        When the target answers nonsense; its ``ledger`` holds what was paid for.
    Interrupted
        On Ctrl-C; its ``recovery`` holds what was found.
    CheckpointError
        When the checkpoint cannot be written any more; its ``ledger`` holds what was paid for.

    Example
    -------
    >>> import unweave
    >>> net = unweave.random_network([6, 4, 1], activation="tanh", seed=1, outer="normal")
    >>> result = unweave.recover(net)
    >>> result.status.name, unweave.compare(net, result.network).parameter_error < 1e-9
    ('RECOVERED', True)
    """
    given = locals()
    refuse_tables(target, hidden)
    chosen = method if method is None or isinstance(method, Method) else method_named(method)
    methods = METHODS if chosen is None or chosen in METHODS else (chosen,)
    request = _checked_request(hidden, activation, output_activation, chosen, averaging, options, methods)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidInput(f"seed must be a whole number >= 0. Got {seed!r} instead.")
    if tolerance is not None and not tolerance > 0:
        raise InvalidInput(f"tolerance must be positive. Got {tolerance!r} instead.")
    if max_memory is not None and not max_memory > 0:
        raise InvalidInput(f"max_memory must be a positive number of bytes. Got {max_memory!r} instead.")
    request = replace(request, autodiff=_wants_autodiff(derivatives, request, target))
    most_bytes = default_limit() if max_memory is None else max_memory
    source: Source
    _refuse_other_kind_of_method(chosen, target)
    if isinstance(target, Samples):
        _refuse_what_samples_cannot_use(given)
        behind = replace(request, output_activation=None)  # methods see what is behind the link

        def run(samples: Samples, seconds: float | None) -> Recovery:
            source = SampledTarget(samples, seconds)
            return Run(source, behind, methods, tolerance, seed, progress, None).recover()

        with memory_limit(most_bytes):
            return recover_behind_links(target, request.output_activation, deadline, run)
    columns = columns_of(inputs, examples)
    if columns is not None and columns.discrete.any():
        refuse_other_arguments(given)
        if examples is None:
            raise InvalidInput("examples must be given if a column is not a plain number.")
        with memory_limit(most_bytes):
            return recover_columns(
                *(target, columns, examples, request, methods, tolerance, seed, progress),
                max_queries=max_queries,
                deadline=deadline,
            )
    if columns is not None:
        target = asked_with_frames(target, columns)
        examples = columns.encode(examples)
    queries = as_queries(
        target,
        input_dim=width_told(target, input_dim, examples),
        max_queries=max_queries,
        deadline=deadline,
        differentiable=request.autodiff,
    )
    usual = usual_rows(request, queries.n_inputs, domain is not None, examples is not None)
    # A run that is kept goes on with a larger budget: it asks what it would ask then.
    may_be_short = checkpoint is None and not request.autodiff
    request = replace(request, tight=may_be_short and is_tight(queries.remaining, *usual))
    source = QueriedTarget(queries, domain, examples, verify)
    with running(queries, executor, checkpoint) as resumption, memory_limit(most_bytes):
        result = Run(source, request, methods, tolerance, seed, progress, resumption).recover()
        release(queries)  # not after an error, which hands the ledger back to be asked again
        return result


def _checked_request(
    hidden: Sequence[int] | int | None,
    activation: str | None,
    output_activation: str | None,
    method: Method | None,
    averaging: float | None,
    options: Any,
    methods: tuple[Method, ...],
) -> Request:
    output = output_activation
    if output is not None and output != SOFTMAX:
        output = get_activation(output).name
    if averaging is not None and not 2 <= averaging < np.inf:
        raise InvalidInput(
            f"averaging must be a number of rows per parameter, 2 or more. Got {averaging!r} instead."
        )
    return Request(
        hidden=checked_widths(hidden),
        activation=None if activation is None else hidden_activation(activation).name,
        method=None if method is None else method.name,
        output_activation=output,
        averaging=averaging,
        options=checked_options(options, methods),
    )


def _wants_autodiff(derivatives: str, request: Request, target: Any) -> bool:
    """Whether derivatives are to be the target's own; refused where no method could use them."""
    if derivatives not in DERIVATIVES:
        raise InvalidInput(
            f"derivatives must be one of {', '.join(DERIVATIVES)}. Got {derivatives!r} instead."
        )
    if derivatives != AUTODIFF:
        return False
    if isinstance(target, Samples):
        raise not_differentiable("Samples, which can be asked nothing,")
    refuse_autodiff_without_use(request)
    return True


_FOR_QUERIES_ONLY = (
    *("input_dim", "domain", "examples", "inputs", "max_queries", "verify"),
    *("averaging", "executor", "checkpoint"),
)


def _refuse_other_kind_of_method(method: Method | None, target: Any) -> None:
    """Raise if the method asks where there are samples, or needs samples where there is a target."""
    asks = "samples" if isinstance(target, Samples) else "queries"
    if method is not None and method.asks != asks:
        names = ", ".join(each.name for each in METHODS if each.asks == asks)
        what = "samples" if asks == "samples" else "a target that is asked"
        raise InvalidInput(f"method must be one of {names} or None for {what}. Got {method.name!r} instead.")


def _refuse_what_samples_cannot_use(given: dict[str, Any]) -> None:
    for name in _FOR_QUERIES_ONLY:
        if given[name] is not None:
            raise InvalidInput(
                f"{name} must be None for samples, because nothing is asked. Got {given[name]!r} instead."
            )
