"""Max pooling over a convolution, by the normals of its kinks.

max(phi_p . x, phi_q . x) of one filter at two places has its kink where phi_p - phi_q is at right angles to
x. So among the normals of the first layer some are a filter at a place, and others the difference of one
filter at two places; networks without pooling have no reason for the latter.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array

ZERO = 1e-6
"""Entry of a normal relative to its largest one that counts as zero."""
SAME = 1e-4
"""Difference of unit normals that are one."""
FEWEST_DIFFERENCES = 3
"""Differences of filters that show pooling."""
MOST_INPUTS = 4096
MESSAGE = (
    "max pooling behind a convolution: {differences} of the {normals} kinks that were seen lie where one "
    "filter answers alike at two places of {height} x {width} inputs; no method handles pooling"
)


def pooling_message(normals: Array) -> str | None:
    """Say that ``normals`` (D, m) of kinks are those of max pooling over a convolution; None if not."""
    inputs, count = normals.shape
    if inputs > MOST_INPUTS or count < FEWEST_DIFFERENCES:
        return None
    size = np.abs(normals).max(axis=0)
    clean = np.where(np.abs(normals) > ZERO * size, normals, 0.0)
    if (clean != 0).mean() > 0.5:
        return None
    best: tuple[int, int, int] | None = None  # size of a filter, height, differences
    for height in (n for n in range(1, inputs) if inputs % n == 0):
        found, area = _differences(clean.T.reshape(count, height, inputs // height))
        if found >= FEWEST_DIFFERENCES and (best is None or area < best[0]):
            best = area, height, found
    if best is None:
        return None
    _, height, found = best
    return MESSAGE.format(differences=found, normals=count, height=height, width=inputs // height)


def _differences(images: Array) -> tuple[int, int]:
    """Count the images (m, H, W) that are differences of another's patch at two places; return its size."""
    patches = [_patch(image) for image in images]
    extent = np.array([patch.shape for patch in patches])
    area = extent.prod(axis=1)
    smallest = extent[np.argmin(area)]  # a filter; differences of two are larger
    filters = [patch for patch in patches if patch.shape == tuple(smallest)]
    larger = [patch for patch in patches if patch.shape != tuple(smallest)]
    found = sum(any(_is_difference(patch, each) for each in filters) for patch in larger)
    return found, int(area.min())


def _patch(image: Array) -> Array:
    """Return the box of ``image`` outside of which it is zero, as a vector of length one."""
    rows, columns = np.flatnonzero(image.any(axis=1)), np.flatnonzero(image.any(axis=0))
    patch = image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return np.asarray(patch / np.linalg.norm(patch))


def _is_difference(patch: Array, kernel: Array) -> bool:
    """Whether ``patch`` is a multiple of ``kernel`` at one corner less itself at the opposite one."""
    (height, width), (rows, columns) = patch.shape, kernel.shape
    down, right = height - rows, width - columns
    if down < 0 or right < 0:
        return False
    for one, other in (((0, 0), (down, right)), ((0, right), (down, 0))):
        difference = np.zeros_like(patch)
        difference[one[0] : one[0] + rows, one[1] : one[1] + columns] += kernel
        difference[other[0] : other[0] + rows, other[1] : other[1] + columns] -= kernel
        length = np.linalg.norm(difference)
        if length > 0 and 1 - abs(float((difference * patch).sum()) / length) <= SAME**2:
            return True
    return False
