"""Samples of probabilities: take a sigmoid or softmax off the answers, and recover the network behind it.

Answers in (0, 1) may be those of a sigmoid, rows that sum to one are those of a softmax. Behind it z = log
odds, or the log ratios to the last class, is a sum of units. z is read from every row whose probabilities
tell it to the last digits; rows on which the link is saturated are left out of the fit, and heard when the
network is judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.errors import Interrupted, InvalidInput
from unweave.networks.activations import SOFTMAX
from unweave.networks.comparison import relative_uniform_error
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.probing.answer_range import possible_links
from unweave.recovery.result import Certificate, Recovery, Status
from unweave.search import Check
from unweave.targets.held_out import EXACT
from unweave.targets.samples import Samples

IDENTITY = "identity"
OUTPUTS_OF_SAMPLES = (IDENTITY, "sigmoid", "tanh", SOFTMAX)
"""Output activations that can be told for samples."""
_WELL_READ = (
    1e-12  # error of z over the largest one, up to which a row is fitted: an exact fit is good to 1e-10
)
_ROUNDINGS = 1000.0  # in units of eps: what the answers of an exact network may be off
_LEAST_LEFT = 0.1  # share of the rows that must be well read for a link that nobody told


@dataclass(frozen=True, eq=False)
class _Unlinked:
    """Samples behind a link."""

    link: Link
    samples: Samples
    answers: Array
    """(n, K) of all rows, as the link gives them: one column for two classes."""
    read: BoolArray
    """(n,) rows from which z was read."""

    def network(self, found: Network) -> Network:
        """Put the link behind ``found``; classes of a softmax are centered."""
        weights, biases, skip = list(found.weights), list(found.biases), found.skip
        if self.link.name == SOFTMAX:
            weights[-1], biases[-1] = _centered(weights[-1]), _centered(biases[-1])
            skip = None if skip is None else _centered(skip)
        return Network(weights, biases, (*found.activations[:-1], self.link.name), skip)


def recover_behind_links(
    samples: Samples,
    told: str | None,
    deadline: float | None,
    run: Callable[[Samples, float | None], Recovery],
) -> Recovery:
    """Recover behind the link ``told``, or behind each that the answers allow until one fits exactly."""
    start, best = time.perf_counter(), None
    for name in _links(samples, told):
        left = None if deadline is None else max(deadline - (time.perf_counter() - start), 0.0)
        if best is not None and left == 0.0:
            break
        unlinked = None if name == IDENTITY else _unlinked(samples, Link(name))
        if unlinked is None and name != IDENTITY:
            if told is not None:
                raise InvalidInput(
                    f"y must hold answers of a {name} that is not saturated. Got too few rows of such "
                    "instead. Give rows with probabilities away from 0 and 1, or leave output_activation "
                    "open."
                )
            continue
        interrupt: Interrupted | None = None
        try:
            result = run(samples if unlinked is None else unlinked.samples, left)
        except Interrupted as error:
            result, interrupt = error.recovery, error
        if unlinked is not None:
            result = _behind(unlinked, samples, result)
        if best is None or result.status.rank < best.status.rank:
            best = result
        if interrupt is not None:
            raise Interrupted(best, None) from interrupt
        if best.status.is_recovered:
            break
    return run(samples, deadline) if best is None else best


def _links(samples: Samples, told: str | None) -> tuple[str, ...]:
    """Return the links to try, the likelier first."""
    if told is not None:
        if told not in OUTPUTS_OF_SAMPLES:
            raise InvalidInput(
                f"output_activation must be one of {', '.join(OUTPUTS_OF_SAMPLES)} or None for samples. "
                f"Got {told!r} instead."
            )
        return (told,)
    precision = samples.precision()
    if precision.kind != "float64":
        return (IDENTITY,)  # z would be of another precision in every row
    found = possible_links(samples.y, float(precision.sigma.max()))
    if SOFTMAX in found:
        return (SOFTMAX, IDENTITY) if samples.n_outputs > 2 else ("sigmoid", IDENTITY)
    if "sigmoid" not in found:
        return (IDENTITY,)
    unlinked = _unlinked(samples, Link("sigmoid"))
    if unlinked is None:
        return (IDENTITY,)
    behind = _curvature(unlinked.samples.x, unlinked.samples.y)
    itself = _curvature(samples.x, samples.y)
    return ("sigmoid", IDENTITY) if behind <= itself else (IDENTITY, "sigmoid")


def _unlinked(samples: Samples, link: Link) -> _Unlinked | None:
    """Read z from ``samples``; None where too few rows tell it."""
    y, name = samples.y, link.name
    if name == "sigmoid" and y.shape[1] == 2:
        y = y[:, 1:]
    reference = y.shape[1] - 1 if name == SOFTMAX else None
    number = np.finfo(np.float64)
    sigma = number.eps * np.abs(y).max(axis=0)
    values, errors = link.contrasts(y, sigma, number, reference)
    if reference is not None:
        values, errors = values[:, :-1], errors[:, :-1]
    known = np.isfinite(errors).all(axis=1)
    size = float(np.abs(values[known]).max(initial=0.0))
    read = known & (errors.max(axis=1) <= _WELL_READ * max(size, 1.0))
    if read.sum() < max(_LEAST_LEFT * len(y), samples.n_inputs + 2):
        return None
    return _Unlinked(link, Samples(samples.x[read], values[read]), y, np.asarray(read))


def _behind(unlinked: _Unlinked, samples: Samples, result: Recovery) -> Recovery:
    """Return the result of the run on z as one on the answers, which all rows must confirm."""
    name, left_out = unlinked.link.name, int((~unlinked.read).sum())
    notes = (
        f"the answers are those of a {name}: the network was recovered behind it",
        *((f"{left_out} rows on which it is saturated were not fitted",) if left_out else ()),
    )
    result = replace(result, notes=(*notes, *result.notes))
    if result.network is None:
        return result
    network = unlinked.network(result.network)
    error = relative_uniform_error(unlinked.answers, network(samples.x))
    threshold = max(EXACT, _ROUNDINGS * float(np.finfo(np.float64).eps))
    check = Check.below("error behind the link", error, threshold, "all answers agree, saturated ones too")
    status, message = result.status, result.message
    if status.is_recovered and not check.holds:
        status = Status.APPROXIMATE
        message = f"behind a {name} the rows agree, but with it some are off by {error:.2g}"
    errors = result.standard_errors if name != SOFTMAX else None
    checks = (*result.certificate.checks, replace(check, decides=True))
    return replace(
        result,
        network=network,
        status=status,
        message=message,
        certificate=Certificate(checks),
        standard_errors=errors,
    )


def _curvature(x: Array, y: Array) -> float:
    """Return what an affine map leaves of y (n, K), as a share of its spread."""
    design = np.hstack([x - x.mean(axis=0), np.ones((len(x), 1))])
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    spread = float(np.linalg.norm(y - y.mean(axis=0)))
    return float(np.linalg.norm(y - design @ solution)) / spread if spread else 0.0


def _centered(columns: Array) -> Array:
    """Append the last class, which log ratios put at zero, and center the classes."""
    classes = np.concatenate([columns, np.zeros_like(columns[..., :1])], axis=-1)
    return np.asarray(classes - classes.mean(axis=-1, keepdims=True))
