"""k-means of unit vectors, as points or as lines through the origin.

Minimise sum_i min_j |u_i - c_j|^2 over k centres by Lloyd's steps (assign, average, normalise) from
k-means++ starts: each new start is drawn with probability proportional to its squared distance to those
already drawn. As lines, the distance is min_s |u - s c| over s = +-1 and averages are taken after each
vector was turned towards its centre. The ends of a power iteration form clusters much narrower than their
distances, so that k-means++ hits each cluster once and one Lloyd step is all.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, IntArray

_LLOYD_STEPS = 50
_NOTHING_LEFT = 1e-24  # total squared distance at which all points are centres already


def kmeans(
    vectors: Array,
    clusters: int,
    rng: np.random.Generator,
    as_lines: bool = True,
    initial: Array | None = None,
) -> tuple[Array, IntArray]:
    """Unit centres (k, D) of unit ``vectors`` (n, D) and the label (n,) of each vector.

    ``initial`` (k, D) replaces the k-means++ starts. Fewer distinct vectors than ``clusters`` give as many
    centres as there are distinct vectors.
    """
    centres = _plus_plus(vectors, clusters, rng, as_lines) if initial is None else initial
    labels = np.full(len(vectors), -1, dtype=np.int64)
    for _ in range(_LLOYD_STEPS):
        products = vectors @ centres.T
        closeness = np.abs(products) if as_lines else products
        nearest = np.argmax(closeness, axis=1).astype(np.int64)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        signs = np.sign(products[np.arange(len(vectors)), labels]) if as_lines else np.ones(len(vectors))
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, vectors * signs[:, None])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        # A centre without vectors stays where it is.
        centres = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1.0), centres)
    return centres, labels


def half_sphere(vectors: Array) -> Array:
    """Rows (n, D) turned so that the first coordinate is not negative."""
    return np.where(vectors[:, :1] < 0, -vectors, vectors)


def _plus_plus(vectors: Array, clusters: int, rng: np.random.Generator, as_lines: bool) -> Array:
    chosen = [int(rng.integers(len(vectors)))]
    squared = _squared_distances(vectors, vectors[chosen[0]], as_lines)
    while len(chosen) < clusters and squared.sum() > _NOTHING_LEFT:
        chosen.append(int(rng.choice(len(vectors), p=squared / squared.sum())))
        squared = np.minimum(squared, _squared_distances(vectors, vectors[chosen[-1]], as_lines))
    return vectors[chosen]


def _squared_distances(vectors: Array, centre: Array, as_lines: bool) -> Array:
    product = vectors @ centre
    return np.maximum(2 - 2 * (np.abs(product) if as_lines else product), 0.0)
