"""Gradients of some of the terms of f = (1/k) sum_p f_p, and what the theorems ask of them.

- `MiniBatches` visits all terms in a new order every round, a batch at a time; `with_replacement` draws them
  independently, as the theorems do.
- Stochastic RMSProp needs all terms' gradients in one orthant ([mathematics] Thm. 5.3.3): `in_one_orthant`.
- The interpolating oracle of Def. 19 replies with g such that

      E (|g| + sqrt(d xi)/2)^2 <= (sqrt(c) |grad f| - sqrt(d xi)/2)^2;

  `interpolation_constant` is the least c.

  The left side is at least d xi / 4, so that the condition can only hold where |grad f| >= sqrt(d xi / c):
  the fast rate of Thm. 5.3.1 ends there, whatever the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unweave.arrays import Array, IntArray, real_numbers
from unweave.errors import InvalidInput
from unweave.optimize.first_order import Gradient

TermsGradient = Callable[[Array, IntArray], Array]
"""The mean gradient (d,) at x (d,) of the terms with these indices."""


class MiniBatches:
    """A gradient that looks at ``batch`` of ``terms`` terms per call; give it to `descend`.

    Example:
        >>> rows = np.random.default_rng(0).standard_normal((100, 2))
        >>> noisy = MiniBatches(lambda x, chosen: x - rows[chosen].mean(axis=0), terms=100, batch=10)
        >>> whole = np.mean([noisy(np.zeros(2)) for _ in range(10)], axis=0)      # one round
        >>> bool(np.allclose(whole, -rows.mean(axis=0)))
        True
    """

    def __init__(
        self, gradient: TermsGradient, terms: int, batch: int, seed: int = 0, with_replacement: bool = False
    ) -> None:
        if not 1 <= batch <= terms:
            raise InvalidInput(
                f"batch must be 1 to the number of terms, {terms}. Got {batch} instead. For example 100."
            )
        self._gradient, self._terms, self._batch = gradient, terms, batch
        self._independent = with_replacement
        self._rng = np.random.default_rng(seed)
        self._left = np.zeros(0, dtype=np.intp)

    def __call__(self, x: Array) -> Array:
        """The mean gradient of the next batch."""
        return np.asarray(self._gradient(x, self._next()))

    def whole(self) -> Gradient:
        """The gradient of f itself."""
        everything = np.arange(self._terms)
        return lambda x: np.asarray(self._gradient(x, everything), dtype=np.float64)

    def _next(self) -> IntArray:
        if self._independent:
            return self._rng.integers(0, self._terms, self._batch)
        if len(self._left) < self._batch:  # a remainder waits for the next round
            self._left = np.concatenate([self._left, self._rng.permutation(self._terms)])
        chosen, self._left = self._left[: self._batch], self._left[self._batch :]
        return np.asarray(chosen)


def in_one_orthant(gradients: Array) -> bool:
    """Whether no coordinate of the gradients (k, d) has both signs, and a zero in one is a zero in all.

    Example:
        >>> in_one_orthant([[1.0, -2.0], [3.0, -0.5]]), in_one_orthant([[1.0, 2.0], [1.0, -2.0]])
        (True, False)
    """
    signs = np.sign(real_numbers(gradients, "gradients"))
    return bool(np.all(signs == signs[:1]))


def interpolation_constant(gradients: Array, shift: float) -> float:
    """The least c with which uniformly drawn gradients (k, d) satisfy Def. 19; infinite where none does.

    Example:
        >>> round(interpolation_constant([[3.0, 0.0], [1.0, 0.0]], 0.0), 6)     # E |g|^2 = 5, |grad f|^2 = 4
        1.25
    """
    replies = real_numbers(gradients, "gradients")
    edge = np.sqrt(replies.shape[1] * shift) / 2
    needed = float(np.sqrt(np.mean((np.linalg.norm(replies, axis=1) + edge) ** 2)))
    slope = float(np.linalg.norm(replies.mean(axis=0)))
    if slope == 0:
        return 0.0 if needed + edge == 0 else float(np.inf)
    return float(((needed + edge) / slope) ** 2)
