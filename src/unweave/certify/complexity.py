"""Lower bounds on every network that computes a given ReLU function: pieces, size, depth.

- Pieces on lines: a function with p pieces on some line needs `bounds.min_size(p, depth)` gates at that
  depth.
- Kinks that end: with one hidden layer, the kinks of a unit fill a whole hyperplane, with one jump of the
  gradient along all of it. A kink that is missing elsewhere on its hyperplane, or jumps otherwise there,
  proves that no network with one hidden layer computes the function (after [mathematics] Prop. 2.5.2: max(0,
  x1, x2)).

Both are counted in exact arithmetic, for networks of floats too, at random rational points: what they find is
there. Neither finding nothing nor a small count proves anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from unweave.arrays import AnyArray
from unweave.construct import affine_map_at, as_exact, bounds, pieces_on_line
from unweave.errors import InvalidInput
from unweave.networks.network import Network

_COORDINATE_GRID = 1 << 30  # random coordinates are multiples of 1/this: coincidences have probability 1e-9


@dataclass(frozen=True)
class LinePieces:
    """Numbers of affine pieces on random lines."""

    counts: tuple[int, ...]
    """One per line."""

    @property
    def most(self) -> int:
        """Largest of them: a lower bound for the number of pieces in all."""
        return max(self.counts)

    def min_size(self, depth: int) -> int:
        """Fewest gates of any network of at most ``depth`` layers that computes the function."""
        return bounds.min_size(self.most, depth)

    def min_depth(self, size: int | None = None, width: int | None = None) -> int:
        """Fewest layers of any such network with at most ``size`` gates, or ``width`` per layer."""
        return bounds.min_depth(self.most, size, width)


@dataclass(frozen=True)
class KinkEnd:
    """A kink that does not fill its hyperplane: no network with one hidden layer computes the function."""

    normal: tuple[Fraction, ...]
    kink: tuple[Fraction, ...]
    """A point of the hyperplane where the gradient jumps by ``jump``."""
    elsewhere: tuple[Fraction, ...]
    """Another point of it, where it jumps by ``jump_elsewhere``."""
    jump: tuple[Fraction, ...]
    """Of the derivative along the normal, one per output."""
    jump_elsewhere: tuple[Fraction, ...]


def line_pieces(
    network: Network, lines: int = 10, seed: int | np.random.Generator = 0, scale: float = 1.0
) -> LinePieces:
    """Count the pieces on whole lines through Gaussian points of size ``scale`` in Gaussian directions.

    Example:
        >>> from unweave import random_network
        >>> line_pieces(random_network([4, 10, 1], activation="relu", seed=1000), lines=3).counts
        (11, 11, 11)
    """
    _check(lines, scale)
    rng = np.random.default_rng(seed)
    network = as_exact(network)
    counts = [len(pieces_on_line(network, *_random_line(network, rng, scale))) for _ in range(lines)]
    return LinePieces(tuple(counts))


def kink_that_ends(
    network: Network, lines: int = 4, probes: int = 4, seed: int | np.random.Generator = 0, scale: float = 1.0
) -> KinkEnd | None:
    """Look for a kink that does not fill its hyperplane, at ``probes`` points on it for every kink on a line.

    Example:
        >>> from unweave.construct import max_net, pwl_to_relu
        >>> hinge = pwl_to_relu([(1, [([1, 0], 0), ([0, 1], 0), ([0, 0], 0)])])    # max(0, x1, x2)
        >>> kink_that_ends(hinge) is not None, kink_that_ends(max_net(2)) is None
        (True, True)
    """
    _check(lines, scale)
    rng = np.random.default_rng(seed)
    network = as_exact(network)
    for _ in range(lines):
        point, direction = _random_line(network, rng, scale)
        pieces = pieces_on_line(network, point, direction)
        for before, after in pairwise(pieces):
            assert before.right is not None
            kink = point + before.right * direction
            left, _ = affine_map_at(network, point + before.middle * direction)
            right, _ = affine_map_at(network, point + after.middle * direction)
            jump = right - left
            normal = next((column for column in jump.T if any(column)), None)
            if normal is None:
                continue
            here = _jump(network, kink, normal)
            for _ in range(probes):
                elsewhere = _random_vector(network.n_inputs, rng, scale)
                elsewhere = elsewhere + normal * ((normal @ (kink - elsewhere)) / (normal @ normal))
                there = _jump(network, elsewhere, normal)
                if there != here:
                    return KinkEnd(tuple(normal), tuple(kink), tuple(elsewhere), here, there)
    return None


def _jump(network: Network, point: AnyArray, normal: AnyArray) -> tuple[Fraction, ...]:
    """Jump of the derivative along ``normal`` at ``point``, one per output; zeros if there is no kink."""
    pieces = pieces_on_line(network, point, normal)
    for before, after in pairwise(pieces):
        if before.right == 0:
            return tuple(b - a for a, b in zip(before.slopes, after.slopes, strict=True))
    return (Fraction(0),) * network.n_outputs


def _random_line(network: Network, rng: np.random.Generator, scale: float) -> tuple[AnyArray, AnyArray]:
    return _random_vector(network.n_inputs, rng, scale), _random_vector(network.n_inputs, rng, 1.0)


def _random_vector(n: int, rng: np.random.Generator, scale: float) -> AnyArray:
    steps = np.rint(rng.standard_normal(n) * scale * _COORDINATE_GRID)
    return np.array([Fraction(int(step), _COORDINATE_GRID) for step in steps], dtype=object)


def _check(lines: int, scale: float) -> None:
    if lines < 1 or not (np.isfinite(scale) and scale > 0):
        raise InvalidInput(
            f"lines must be at least 1 and scale positive. Got {lines} and {scale} instead. Take 10 and 1."
        )
