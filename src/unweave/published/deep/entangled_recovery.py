"""[identification] Alg. 4.1: entangled weights of all layers at x*, up to sign and order, from Hessians.

At every point the Hessians of all outputs are sums of squares of entangled weights,
H_k(x) = sum_l V^l(x) S_k^l(x) V^l(x)^T. Near x* the V^l hardly move while the S_k^l do, so the Hessians at
x_i ~ N(x*, s^2 I) nearly lie in

    W(f, x*) = span{ v v^T : v entangled at x* },      of dimension m* = number of units that curve,

and their leading m* singular directions span it approximately. The maximizers of
Phi(u) = ||P(u u^T)||_F^2 on the sphere are then close to the entangled weights; power steps

    u <- normalize( u + 2 gamma P(u u^T) u )

from uniform starts find them, those with Phi >= beta are kept. The last layer is also read off the
gradients: grad f_k(x*) / |grad f_k(x*)| = +- v_k^L / |v_k^L|, in order, with the sign of g_L'.

Guarantee (Thm. 4.1): ||P_W - P|| <= 2 (C_eps + C sqrt(D) s) / (sqrt(alpha / 2) - C_eps), with alpha the
learnability. Smaller s does not help for ever: alpha shrinks with it, since V and S both change by O(s).
About m_L (D + 1) directions can be separated near one point, for linear outputs min(m_L, m_L-1) (D + 1), so
m* must stay well below that.

Cost: N_h (2 D^2 + 1) rows and 4 p m* flops per power step, p = D(D+1)/2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.clock import check
from unweave.published.deep.options import PublishedDeepOptions
from unweave.published.deep.sources import DerivativeSource
from unweave.subspace.collector import distinct_directions
from unweave.subspace.hessian_span import HessianSpan, hessian_span
from unweave.subspace.power_method import newton_ascent, power_iterations, uniform_starts, unit_rows
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

_STARTS_PER_BATCH = 512  # starts iterated at once: limits memory
_HESSIANS_PER_FACTOR = 4096  # Hessians folded into the triangular factor at once: limits memory
_SPAN_MOVE = 1e-3  # |P - P'|_F of consecutive block power steps at which a span is final


@dataclass(frozen=True, eq=False)
class EntangledRecovery:
    """Result of [identification] Alg. 4.1 at ``anchor`` = x*."""

    anchor: Array
    """(D,) x*."""
    directions: Array
    """(found, D) distinct unit directions, largest Phi first, each up to sign."""
    objectives: Array
    """(found,) Phi of each."""
    ends: Array
    """(n, D) end points of all starts with Phi >= beta, duplicates included, largest Phi first."""
    output_gradients: Array
    """(K, D) gradients at x*, order and sign of the outputs."""
    span: HessianSpan
    """Of the Hessians near x*."""
    rank: int
    """m*, the number of directions that were to be found."""
    restarts: int

    @property
    def complete(self) -> bool:
        """Whether at least m* directions were found."""
        return len(self.directions) >= self.rank

    @property
    def output_directions(self) -> Array:
        """(K, D) unit output gradients."""
        lengths = np.linalg.norm(self.output_gradients, axis=1, keepdims=True)
        return np.asarray(self.output_gradients / lengths)


def recover_entangled_weights(
    source: DerivativeSource,
    rank: int,
    units: int,
    rng: np.random.Generator,
    anchor: Array,
    options: PublishedDeepOptions | None = None,
) -> EntangledRecovery:
    """Entangled weights at ``anchor`` (D,) from Hessians around it.

    Args:
        rank: m*: all units, those of the output layer only if its activation is curved.
        units: m: all units, output layer included; the number of Hessians and of starts follow from it.
    """
    options = options or PublishedDeepOptions()
    n_inputs = len(anchor)
    sites = anchor + options.site_spread(n_inputs) * rng.standard_normal(
        (options.hessian_count(units), n_inputs)
    )
    span = span_of_hessians(source.hessians(sites))
    return search_span(span, rank, units, rng, anchor, source.gradients(anchor[None])[0], options)


def search_span(
    span: HessianSpan,
    rank: int,
    units: int,
    rng: np.random.Generator,
    anchor: Array,
    output_gradients: Array,
    options: PublishedDeepOptions | None = None,
) -> EntangledRecovery:
    """Second half of [identification] Alg. 4.1: power steps on a span, with output gradients (K, D) given."""
    options = options or PublishedDeepOptions()
    n_inputs = len(anchor)
    _require_proper_rank(rank, n_inputs, len(span.singular_values))
    space = RankOneSpace(span.basis(rank), symmetric_packing(n_inputs))
    fast = space.astype(np.float32) if options.single_precision else space
    restarts = options.restart_count(units)
    ends, objectives = [], []
    for start in range(0, restarts, _STARTS_PER_BATCH):
        starts = fast.asarray(uniform_starts(min(_STARTS_PER_BATCH, restarts - start), n_inputs, rng))
        rows = power_iterations(fast, starts, options.gamma, options.power_steps, options.power_tolerance)
        if options.single_precision:
            rows = unit_rows(rows.astype(np.float64))
        if options.newton_steps:
            rows = newton_ascent(space, rows, options.newton_steps, options.power_tolerance)
        ends.append(rows)
        objectives.append(space.objective(rows))
    all_ends, phi = np.concatenate(ends), np.concatenate(objectives)
    order = np.argsort(-phi, kind="stable")
    order = order[phi[order] >= options.threshold]
    kept, phi = all_ends[order], phi[order]
    lines = distinct_directions(kept, np.zeros((0, n_inputs)), options.angle)
    return EntangledRecovery(anchor, kept[lines], phi[lines], kept, output_gradients, span, rank, restarts)


def span_of_hessians(packed: Array) -> HessianSpan:
    """Span of packed Hessians (n, K, p) of all outputs together.

    When there are more than p of them they are first taken into a p x p triangular factor, which has the
    same singular values and (left) singular vectors: O(n K p^2) flops and p^2 memory.
    """
    rows = packed.reshape(-1, packed.shape[-1])
    size = rows.shape[1]
    if len(rows) <= size:
        return hessian_span(rows)
    factor = np.zeros((0, size))
    for start in range(0, len(rows), _HESSIANS_PER_FACTOR):
        stacked = np.concatenate([factor, rows[start : start + _HESSIANS_PER_FACTOR]])
        factor = scipy.linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][:size]
    return replace(hessian_span(factor), columns=len(rows))


def leading_span(blocks: Iterable[Array], rank: int) -> HessianSpan:
    """The leading ``rank`` directions of `span_of_hessians`, of packed Hessians (n, K, p) block by block.

    Squares singular values, so that those below 1e-8 of the largest are lost: for exact Hessians.
    Block power steps on the p x p Gram matrix where it has a gap after ``rank``, all its eigenvectors else:
    O(N K p^2) flops, and O(p^2 rank) per step.
    """
    gram, columns = np.zeros((0, 0)), 0
    for block in blocks:
        rows = block.reshape(-1, block.shape[-1])
        gram = rows.T @ rows if columns == 0 else gram + rows.T @ rows
        columns += len(rows)
    size = len(gram)
    vectors = None if 2 * rank > size else _leading_vectors(gram, rank)
    if vectors is None:
        vectors = scipy.linalg.eigh(gram, subset_by_index=[size - rank, size - 1])[1][:, ::-1]
    values = np.sqrt(np.maximum(np.einsum("ij,ij->j", vectors, gram @ vectors), 0.0))
    return HessianSpan(vectors, values, columns)


def _leading_vectors(gram: Array, rank: int) -> Array | None:
    """(p, rank) leading eigenvectors by block power steps; None where they do not converge fast."""
    width = min(len(gram), rank + max(rank // 5, 20))
    block = np.random.default_rng(rank).standard_normal((len(gram), width))
    kept, moved = None, np.inf
    while True:
        check(4 * len(gram) ** 2 * width)
        block = scipy.linalg.qr(gram @ block, mode="economic", overwrite_a=True, check_finite=False)[0]
        image = gram @ block
        turn = np.linalg.eigh(block.T @ image)[1][:, ::-1]
        leading = block @ turn[:, :rank]
        if kept is not None:
            now = float(np.linalg.norm(leading - kept @ (kept.T @ leading)))
            if now < _SPAN_MOVE:
                return np.asarray(leading)
            if now > moved / 2:
                return None
            moved = now
        kept, block = leading, image


def _require_proper_rank(rank: int, n_inputs: int, available: int) -> None:
    size = symmetric_packing(n_inputs).size
    if not 1 <= rank < size:
        raise InvalidInput(
            f"the number of curved units must be at least 1 and less than D(D+1)/2 = {size}, so that the "
            f"Hessians span a proper subspace. Got {rank} instead. "
            "Deeper or wider networks need another route."
        )
    if available < rank:
        raise InvalidInput(
            f"there must be at least as many Hessians as curved units, {rank}. Got {available} instead. "
            "Raise the number of points (option hessians)."
        )
