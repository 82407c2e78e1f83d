"""How many pieces a ReLU network can have, and so how large a network with given pieces must be.

On a line, one hidden layer of w units cuts each of p intervals at most w times: p -> p (w + 1). Hence

    pieces <= (w_1 + 1) (w_2 + 1) ... (w_k + 1),

and a network with k hidden layers and p pieces on some line has at least the size of the most even split
whose product reaches p. The source's forms ([mathematics] Lemmas 2.A.6 and 2.A.7) are pieces <= 2^{k-1} (w_1
+ 1) w_2 ... w_k and size >= k p^{1/k} / 2 - 1; the first is weaker, since w + 1 <= 2 w, and the second too
once p >= 2^k. (Below that it counts that no layer is empty; here a network may have fewer layers than
``depth``.)

``depth`` counts layers with weights: hidden layers plus one. All integers here are exact, however large.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, comb, exp, isfinite, log, prod

from unweave.errors import InvalidInput

_CEILING_SLACK = 1e-9  # keeps rounding from lifting a bound over the next integer


def max_pieces(widths: Sequence[int], published: bool = False) -> int:
    """Largest number of pieces on a line of a network with these hidden widths.

    Example:
        >>> max_pieces([3]), max_pieces([2, 2, 2]), max_pieces([2, 2, 2], published=True)
        (4, 27, 48)
    """
    widths = [_positive(width, "widths") for width in widths]
    if not published or not widths:
        return int(prod(width + 1 for width in widths))
    return int(2 ** (len(widths) - 1) * (widths[0] + 1) * prod(widths[1:]))


def min_size(pieces: int, depth: int, published: bool = False) -> int:
    """Fewest gates of any network with at most ``depth`` layers that has ``pieces`` pieces on a line.

    Example:
        >>> min_size(1024, 2), min_size(1024, 3), min_size(1024, 11)
        (1023, 62, 10)
        >>> min_size(1024, 3, published=True)
        31
    """
    pieces, layers = _positive(pieces, "pieces"), _positive(depth, "depth") - 1
    if layers == 0:
        if pieces > 1:
            raise InvalidInput(
                f"depth must be at least 2 for more than one piece. Got depth {depth} and {pieces} pieces "
                f"instead. A network without hidden layers is affine."
            )
        return 0
    if published:
        return max(0, ceil(layers / 2 * exp(log(pieces) / layers) - 1 - _CEILING_SLACK))
    # One layer of p - 1 gates is enough, and so are equal layers of width 2^b - 1 with k b bits for p.
    low, high = 0, min(pieces - 1, layers * (2 ** -(-pieces.bit_length() // layers) - 1))
    while low < high:
        middle = (low + high) // 2
        if _most_pieces(middle, layers) >= pieces:
            high = middle
        else:
            low = middle + 1
    return low


def min_depth(pieces: int, size: int | None = None, width: int | None = None) -> int:
    """Fewest layers of a network with ``pieces`` pieces on a line that has at most ``size`` gates in all, or
    at most ``width`` in each layer (one of the two, or both).

    Example:
        >>> min_depth(1024, size=62), min_depth(1024, width=2)
        (3, 8)
    """
    pieces = _positive(pieces, "pieces")
    if size is None and width is None:
        raise InvalidInput("size or width must be given. Without a limit, depth 2 will do.")
    least = 1
    if width is not None:
        reached = 1
        while reached < pieces:
            reached *= _positive(width, "width") + 1
            least += 1
    if size is not None:
        if 2**size < pieces:
            raise InvalidInput(
                f"size must be at least {(pieces - 1).bit_length()}: s gates give at most 2^s pieces. Got "
                f"{size} instead. No depth is enough."
            )
        while _most_pieces(size, least - 1) < pieces:
            least += 1
    return least


def approximation_pieces(pieces: int, error: float) -> int:
    """Fewest pieces of a function within ``error`` of the even sawtooth of ``pieces`` = w^k teeth sides.

    In the mean over [0, 1] of |f - g|, a g with p pieces leaves at least 1/4 - (2 p - 1)/(4 w^k)
    ([mathematics] Thm. 2.3.6), so that p >= (w^k (1 - 4 error) + 1)/2.

    Example:
        >>> approximation_pieces(1024, 0.1), min_size(approximation_pieces(1024, 0.1), 2)
        (308, 307)
    """
    pieces = _positive(pieces, "pieces")
    if not (isfinite(error) and error >= 0):
        raise InvalidInput(f"error must be a finite number, 0 or more. Got {error} instead. For example 0.1.")
    return max(1, ceil((pieces * (1 - 4 * error) + 1) / 2 - _CEILING_SLACK))


def approximation_size(width: int, layers: int, fewer: int, error: float) -> float:
    """The source's size below which k' = ``fewer`` hidden layers miss the sawtooth by more than ``error``.

        k' (w^k (1 - 4 error) / 2)^(1/k') / 2     ([mathematics] Thm. 2.3.6),

    w = ``width`` and k = ``layers`` of the sawtooth. `min_size` of `approximation_pieces` is as large at
    least, once p >= 2^k'.
    """
    pieces = _positive(width, "width") ** _positive(layers, "layers") * max(0.0, 1 - 4 * error) / 2
    return float(_positive(fewer, "fewer") / 2 * pieces ** (1 / fewer))


def zonotope_sizes(n: int, m: int, width: int, layers: int, fewer: int) -> tuple[float, float]:
    """The source's two sizes that a network with k' = ``fewer`` hidden layers needs for a zonotope function.

        k' w^(k/k') (m - 1)^((1 - 1/n)/k') / 2 - 1,      k' w^(k/k') / n^(1/k')

    ([mathematics] Thm. 2.3.10 (ii)). It refers to a lemma on functions of one variable. Along a line the
    function has `hard.zonotope_pieces_on_line` pieces, so that the lemma proves `min_size` of that number and
    no more: where a form is above it, it is not proved.
    """
    base = fewer * width ** (layers / _positive(fewer, "fewer"))
    return base * (m - 1) ** ((1 - 1 / n) / fewer) / 2 - 1, base / n ** (1 / fewer)


def montufar_pieces(n: int, layers: int, width: int) -> int:
    """floor(w/n)^((L-1) n) sum_{j<=n} C(w, j): pieces of Montufar's networks of L layers of w >= n units.

    [mathematics] Def. 6 compares `hard.zonotope_pieces(n, w // 2, [w] * (L - 1))` with it, which has the same
    width and depth and is larger for n <= w < 2 n once L - 1 > ceil(w/2) / log2 w.

    Example:
        >>> montufar_pieces(2, 3, 4), montufar_pieces(1, 2, 3)
        (176, 12)
    """
    if not 1 <= n <= _positive(width, "width"):
        raise InvalidInput(f"width must be at least n = {n}. Got {width} instead. Widen the layers.")
    regions = sum(comb(width, j) for j in range(n + 1))
    return int((width // n) ** ((_positive(layers, "layers") - 1) * n) * regions)


def _most_pieces(size: int, layers: int) -> int:
    """Largest product of (w_i + 1) with sum w_i = size: the split into equal parts."""
    if layers == 0:
        return 1
    even, rest = divmod(size, layers)
    return int((even + 2) ** rest * (even + 1) ** (layers - rest))


def _positive(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput(f"{name} must be positive integers. Got {value!r} instead. Count from one.")
    return value
