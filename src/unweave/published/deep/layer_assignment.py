"""[identification] Alg. 4.2: which entangled weights belong to which layer.

1. Drop directions within delta of an output gradient (they are the last layer's).
2. k-means of the rest into m - m_L unit centers.
3. Far from the origin most units saturate; the Hessians at x ~ Unif(R S^{D-1}) come from the few first-layer
   units with w_k . x + tau_k near zero, so their leading m_1 singular directions span {w_k w_k^T}, P_1.
4. score(v) = ||P_1(v v^T)||_F: about one for first-layer weights and less for others. The m_1 highest are
   the first layer, the rest layers 2 .. L-1, the last layer comes from the gradients.

Assumption (4.60): the lowest score of the first layer exceeds the highest of the others; how clearly is
in the result. For L > 3 this rule cannot separate the inner layers: an oracle must.

Departures: R = 100 and normalized Hessians instead of R = 1000 and raw ones (see `PublishedDeepOptions`);
duplicates are grouped as lines instead of on a half sphere, and should there be more lines than units, the
ones with the least Phi go.

Cost: N_h (2 D^2 + 1) rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.published.deep.entangled_recovery import EntangledRecovery, span_of_hessians
from unweave.published.deep.options import PublishedDeepOptions
from unweave.published.deep.sources import DerivativeSource
from unweave.subspace.collector import distinct_directions
from unweave.subspace.power_method import uniform_starts
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

LayerOracle = Callable[[Array], IntArray]
"""Unit directions (n, D) of layers 2 .. L-1 to their layers (n,), numbers 2 .. L-1; ±1 does not matter."""

_FAR_ROUNDING = 1e-8  # norm of a far Hessian over the largest: smaller ones are rounding and are dropped
_LLOYD_STEPS = 50  # of k-means; narrow clusters settle after one or two
_LEAST_SQUARED_DISTANCE = 1e-24  # total squared distance below which all vectors are centers already


@dataclass(frozen=True, eq=False)
class LayerAssignment:
    """Directions sorted into layers."""

    first: Array
    """(D, m_1) unit columns, highest score first."""
    inner: Array
    """(D, m_2 + .. + m_{L-1}) unit columns of the layers between the first and the last."""
    last: Array
    """(D, m_L) unit output gradients, in order and with their signs."""
    lowest_first: float
    """Lowest score of the first layer."""
    highest_inner: float
    """Highest score of the others; 0 if there are none."""

    @property
    def gap(self) -> float:
        """How clearly first-layer scores stand out, [identification] (4.60)."""
        return self.lowest_first - self.highest_inner


def hidden_directions(
    recovery: EntangledRecovery,
    hidden_units: int,
    output_is_curved: bool,
    rng: np.random.Generator,
    options: PublishedDeepOptions | None = None,
) -> Array:
    """Unit directions (found, D) of hidden units, one per line, at most ``hidden_units`` of them.

    ``output_is_curved``: whether last-layer directions are among the ends, to be removed first.
    """
    options = options or PublishedDeepOptions()
    ends = recovery.ends
    if output_is_curved:
        ends = ends[_line_distances(ends, recovery.output_directions) > options.output_distance]
    if not len(ends):
        return ends
    # Ends come with the largest Phi first, so the first lines are the ones to keep.
    lines = distinct_directions(ends, np.zeros((0, ends.shape[1])), options.angle)[:hidden_units]
    # k-means++ would split lines to reach its number of centers and hide that too few were found.
    if options.grouping == "half-sphere" and len(lines) == hidden_units:
        return kmeans(half_sphere(ends), hidden_units, rng, as_lines=False)[0]
    near = _line_distances(ends, ends[lines]) <= options.angle
    return kmeans(ends[near], len(lines), rng, initial=ends[lines])[0]


def far_space(
    source: DerivativeSource,
    n_inputs: int,
    first_width: int,
    points: int,
    rng: np.random.Generator,
    options: PublishedDeepOptions | None = None,
) -> RankOneSpace:
    """The leading ``first_width`` dimensions of the Hessians on the sphere of radius R."""
    options = options or PublishedDeepOptions()
    sites = options.far_radius * uniform_starts(points, n_inputs, rng)
    hessians = source.hessians(sites)
    packed = hessians.reshape(-1, hessians.shape[-1])
    if options.far_normalised:
        sizes = np.linalg.norm(packed, axis=1)
        seen = sizes > _FAR_ROUNDING * sizes.max(initial=0.0)
        packed = packed[seen] / sizes[seen, None]
    if len(packed) < first_width:
        raise InvalidInput(
            f"at least {first_width} far Hessians must be different from zero. Got {len(packed)} instead. "
            f"Lower far_radius, now {options.far_radius:g}: every first-layer unit is saturated there."
        )
    return RankOneSpace(span_of_hessians(packed[:, None]).basis(first_width), symmetric_packing(n_inputs))


def first_layer_scores(space: RankOneSpace, directions: Array) -> Array:
    """||P_1(v v^T)||_F (n,) of unit rows (n, D)."""
    return np.asarray(np.sqrt(np.maximum(space.objective(directions), 0.0)))


def split_layers(
    directions: Array, scores: Array, first_width: int, output_directions: Array
) -> LayerAssignment:
    """The ``first_width`` rows (n, D) with the highest scores (n,) are the first layer."""
    order = np.argsort(-scores, kind="stable")
    first, inner = order[:first_width], order[first_width:]
    return LayerAssignment(
        first=np.ascontiguousarray(directions[first].T),
        inner=np.ascontiguousarray(directions[inner].T),
        last=np.ascontiguousarray(output_directions.T),
        lowest_first=float(scores[first].min()),
        highest_inner=float(scores[inner].max(initial=0.0)),
    )


def assign_layers(
    source: DerivativeSource,
    directions: Array,
    output_directions: Array,
    widths: Sequence[int],
    rng: np.random.Generator,
    options: PublishedDeepOptions | None = None,
) -> LayerAssignment:
    """Steps 3 and 4 for hidden ``directions`` (m - m_L, D) of a network of ``widths`` (m_1, .., m_L)."""
    options = options or PublishedDeepOptions()
    if len(widths) == 2:  # one hidden layer: nothing to separate
        return split_layers(directions, np.ones(len(directions)), widths[0], output_directions)
    space = far_space(source, directions.shape[1], widths[0], options.far_count(sum(widths)), rng, options)
    return split_layers(directions, first_layer_scores(space, directions), widths[0], output_directions)


def layers_of(
    assignment: LayerAssignment, widths: Sequence[int], oracle: LayerOracle | None = None
) -> tuple[Array, ...] | None:
    """Entangled matrices (D, m_l) of all layers; None if several inner layers meet without an oracle."""
    inner_widths = tuple(widths[1:-1])
    if len(inner_widths) <= 1:
        inner = (assignment.inner,) if inner_widths else ()
        return (assignment.first, *inner, assignment.last)
    if oracle is None:
        return None
    labels = np.asarray(oracle(assignment.inner.T))
    counts = tuple(int((labels == layer).sum()) for layer in range(2, len(widths)))
    if counts != inner_widths:
        raise InvalidInput(
            f"layer_oracle must put {inner_widths} directions into layers 2 to {len(widths) - 1}. "
            f"Got {counts} instead. Return one layer number per row."
        )
    split = (assignment.inner[:, labels == layer] for layer in range(2, len(widths)))
    return (assignment.first, *split, assignment.last)


def kmeans(
    vectors: Array,
    clusters: int,
    rng: np.random.Generator,
    as_lines: bool = True,
    initial: Array | None = None,
) -> tuple[Array, IntArray]:
    """Unit centers (k, D) of unit ``vectors`` (n, D) and the label (n,) of each vector.

    Minimize sum_i min_j |u_i - c_j|^2 by Lloyd's steps (assign, average, normalize) from k-means++ starts. As
    lines, the distance is min_s |u - s c| over s = +-1, and every vector is turned towards its center first.
    The ends of a power iteration form clusters much narrower than their distances: k-means++ hits each once.
    ``initial`` (k, D) replaces the k-means++ starts. Fewer distinct vectors than ``clusters`` give as many
    centers as there are distinct vectors.
    """
    centers = _plus_plus(vectors, clusters, rng, as_lines) if initial is None else initial
    labels = np.full(len(vectors), -1, dtype=np.int64)
    for _ in range(_LLOYD_STEPS):
        products = vectors @ centers.T
        closeness = np.abs(products) if as_lines else products
        nearest = np.argmax(closeness, axis=1).astype(np.int64)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        signs = np.sign(products[np.arange(len(vectors)), labels]) if as_lines else np.ones(len(vectors))
        sums = np.zeros_like(centers)
        np.add.at(sums, labels, vectors * signs[:, None])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        # A center without vectors stays where it is.
        centers = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1.0), centers)
    return centers, labels


def half_sphere(vectors: Array) -> Array:
    """Rows (n, D) turned so that the first coordinate is not negative."""
    return np.where(vectors[:, :1] < 0, -vectors, vectors)


def _plus_plus(vectors: Array, clusters: int, rng: np.random.Generator, as_lines: bool) -> Array:
    chosen = [int(rng.integers(len(vectors)))]
    squared = _squared_distances(vectors, vectors[chosen[0]], as_lines)
    while len(chosen) < clusters and squared.sum() > _LEAST_SQUARED_DISTANCE:
        chosen.append(int(rng.choice(len(vectors), p=squared / squared.sum())))
        squared = np.minimum(squared, _squared_distances(vectors, vectors[chosen[-1]], as_lines))
    return vectors[chosen]


def _squared_distances(vectors: Array, center: Array, as_lines: bool) -> Array:
    product = vectors @ center
    return np.maximum(2 - 2 * (np.abs(product) if as_lines else product), 0.0)


def _line_distances(rows: Array, lines: Array) -> Array:
    """min over lines and signs of |u - s c| for unit rows u (n, D) and c (k, D)."""
    closeness = np.abs(rows @ lines.T).max(axis=1, initial=0.0)
    return np.asarray(np.sqrt(np.maximum(2 - 2 * closeness, 0.0)))
