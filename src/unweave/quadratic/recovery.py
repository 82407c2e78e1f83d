"""Quadratic networks f(x) = sum_j (w_j . x)^2 = x^T W W^T x from samples, by the exact solve.

What is determined is M = W W^T: for every orthogonal Q, W Q gives the same answers. And only if the span
test holds, which takes d(d+1)/2 samples; with that many, all of them are used up, and nothing is left to show
that the labels come from such a network. What then speaks for it are the properties that M need not have:

- each sample beyond d(d+1)/2 is an equation that only the right class satisfies;
- a rank h below d is worth (d-h)(d-h+1)/2 equations;
- M >= 0 is an inequality. Random labels satisfy it by chance (squared normal ones in one case of five for
  d = 2, one of 200 for d = 3, none of 200 for d = 5 and 10). With h >= d and no surplus sample nothing else
  is checked, and the result is as good as the belief that the labels come from such a network.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.quadratic.exact_solve import QuadraticForm, factor, solve_quadratic_form
from unweave.search import Candidate, Evidence

_LARGEST_RESIDUAL = 0.1  # residual over the spread of the labels: above, no quadratic form fits

AMBIGUITY = "only W W^T is determined: every orthogonal rotation of the {width} units gives the same answers"


def quadratic_network(weights: Array) -> Network:
    """sum_j (w_j . x)^2 for W (d, m)."""
    width = weights.shape[1]
    return Network([weights, np.ones((width, 1))], [np.zeros(width), np.zeros(1)], ["quadratic", "identity"])


def surplus_equations(samples: int, dimension: int, width: int) -> int:
    """Equations that a network of ``width`` units satisfies beyond those that determine M: what is verified.

    0 means that any labels with M >= 0 would pass: the result is conditional on the class.
    """
    missing = max(dimension - width, 0)
    return max(samples - dimension * (dimension + 1) // 2, 0) + missing * (missing + 1) // 2


def recover_quadratic(x: Array, y: Array, hidden: int | None = None, label_noise: float = 0.0) -> Candidate:
    """Recover sum_j (w_j . x)^2 with ``hidden`` units (None: as many as M has rank) from x (N, d), y (N,).

    No verdict: ``problem`` says why the network must not count as recovered (samples that do not determine
    M; M not positive; rank above ``hidden``; labels that no quadratic form fits), ``ambiguity`` what is not
    determined, ``notes`` whether anything verified the class. The network is then the nearest of the class.

    Example:
        >>> import unweave
        >>> rng = np.random.default_rng(1000)
        >>> x, weights = rng.standard_normal((10, 4)), rng.standard_normal((4, 2))
        >>> found = recover_quadratic(x, ((x @ weights) ** 2).sum(axis=1), hidden=2)
        >>> inner = found.network.weights[0]
        >>> bool(np.abs(inner @ inner.T - weights @ weights.T).max() < 1e-10), found.problem
        (True, None)
    """
    if hidden is not None and hidden < 1:
        raise InvalidInput(f"hidden must be at least 1. Got {hidden} instead. Leave it out to find it.")
    form = solve_quadratic_form(x, y, label_noise)
    labels = np.asarray(y, dtype=np.float64).reshape(-1)
    spread = float(labels.std()) or float(np.abs(labels).max()) or 1.0
    rank = form.rank if form.span.spans else min(form.span.dimension, hidden or form.span.dimension)
    width = hidden or max(rank, 1)
    problem = _problem(form, width, spread)
    evidence = Evidence(
        width=form.rank if form.span.spans else None,
        fit_history=(form.residual / spread,),
        fit_floor=max(form.rounding, label_noise) / spread,
        condition=form.span.condition,
        parameter_error_bar=None if not form.span.spans else form.matrix_error / _size(form),
    )
    return Candidate(
        network=quadratic_network(factor(form, width)),
        evidence=evidence,
        notes=() if problem else _notes(form, width),
        problem=problem,
        ambiguity=None if width == 1 else AMBIGUITY.format(width=width),
    )


def _problem(form: QuadraticForm, width: int, spread: float) -> str | None:
    span = form.span
    if not span.spans:
        few = f"{span.samples} samples are fewer than d(d+1)/2 = {span.needed}"
        special = (
            f"the {span.samples} inputs are in special position (inputs of two values, or on a quadric?)"
        )
        return (
            f"the samples do not determine a quadratic form: x x^T spans {span.rank} of {span.needed} "
            f"dimensions; {few if span.samples < span.needed else special}. Other networks fit the labels as "
            f"well; more samples, at other inputs, would decide."
        )
    if form.residual > _LARGEST_RESIDUAL * spread:
        return (
            f"no quadratic form fits the labels: the residual is {form.residual / spread:.2g} of their "
            f"spread. A network with biases or another activation is not of this class."
        )
    if not form.positive:
        lowest = float(form.eigenvalues[-1]) / _size(form)
        return (
            f"the quadratic form that fits has a negative eigenvalue ({lowest:.2g} of the largest): no sum "
            f"of squares gives these labels. Random labels do this, and units with negative output weights."
        )
    if form.rank > width:
        return (
            f"the quadratic form that fits has rank {form.rank}: {width} units do not give these labels. "
            f"Allow {form.rank} units, or state the labels' noise if they are not exact."
        )
    return None


def _notes(form: QuadraticForm, width: int) -> tuple[str, ...]:
    span = form.span
    checks = surplus_equations(span.samples, span.dimension, width)
    if checks:
        verified = (
            f"{checks} equations beyond those that determine W W^T are satisfied "
            f"({span.samples - span.needed} by samples, the rest by the rank)"
        )
    else:
        verified = (
            f"conditional on the class: all {span.samples} samples are used up to determine W W^T, and that "
            f"it came out positive is all that speaks for a network. Hold back further samples to check"
        )
    notes = [verified]
    if form.rank < width:
        notes.append(f"W W^T has rank {form.rank}: {form.rank} units give the same answers as {width}")
    if form.residual > form.rounding:
        notes.append("the labels are noisy, or only nearly a quadratic form: the residual is above rounding")
    return tuple(notes)


def _size(form: QuadraticForm) -> float:
    return float(np.abs(form.eigenvalues).max()) or 1.0
