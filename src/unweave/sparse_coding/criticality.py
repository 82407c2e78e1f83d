"""Is a dictionary near-critical for the autoencoder? The hypotheses, and the bounds behind the answer.

[mathematics] Thm. 4.3.2 measures everything in powers of the number of atoms h:

    k = h^p,      coherence mu = h^-xi,      delta = max_i |W_i - A_i| = h^(-p - nu^2),

and concludes |E dL/dW_i| = o(max(m1^2, m2) h^(p-1)) from

    p + nu^2 < xi,    p < 1/2,    p < nu^2,    a >= b h^-nu^2,    exp(k m1^2 / (2 (b - a)^2)) large,

with the bias eps = 2 m1 k (delta + mu). Its proof writes the proxy gradient as alpha_i W_i - beta_i A_i + e_i
and bounds each part. With s = delta + mu, t = delta^2 + 2 delta + mu and q = k/h, the parts that multiply m2
obey ((4.4) to (4.7))

    q (1 - delta)^2           <= alpha/m2 <= q (1 + delta)^2 + k q s^2,
    2 q (1 - delta) - q (1 + delta)^3 - k q s t  <= beta/m2 <= 2 q (1 + delta) - q (1 - delta)^3 + k q s t,
    |e|/m2 <= k q (3 s (1 + delta)^2 + 2 s + t (1 + delta)) + k^2 q (s^2 (1 + delta) + s t),

and those of m1 and eps are at most

    |alpha^| <= m1^2 (6 k q s (1 + delta) + 9 k^2 q s^2),
    |beta^|  <= m1^2 (4 k q s + 3 k q s (1 + delta)^2 + k q t (1 + delta) + 3 k^2 q s t).

The source's e^ has no bound in numbers; `proxy_gradient` gives it exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.errors import InvalidInput
from unweave.sparse_coding.generative import SparseModel, checked_matrix, coherence


@dataclass(frozen=True)
class Interval:
    """Bounds of a number."""

    low: float
    high: float


@dataclass(frozen=True)
class CriticalityHypotheses:
    """The exponents of the theorem, which of its hypotheses hold, and the bounds of its proof."""

    p: float
    nu_squared: float
    """nu^2; infinite where every row is its atom."""
    xi: float
    distance: float
    coherence: float
    bias: float
    """2 m1 k (delta + mu)."""
    failing: tuple[str, ...]
    """The hypotheses that do not hold, in words; empty if all do."""
    along_encoder: Interval
    """alpha, both parts."""
    along_atom: Interval
    """beta, both parts."""
    remainder: float
    """|e~|, the part of the remainder that multiplies m2."""

    @property
    def hold(self) -> bool:
        """Whether every hypothesis holds."""
        return not self.failing


def criticality_hypotheses(encoder: Any, model: SparseModel) -> CriticalityHypotheses:
    """Hypotheses of [mathematics] Thm. 4.3.2 for rows ``encoder`` W (h, n) and ``model``.

    The last hypothesis is taken as exp(k m1^2/(2 (b - a)^2)) >= h, its least reading for one h.

    Example:
        >>> from unweave.sparse_coding import spikes_and_waves
        >>> model = SparseModel(spikes_and_waves(1024), 2, 8.0, 10.0)
        >>> found = criticality_hypotheses(model.dictionary.T, model)
        >>> found.hold, round(found.p, 4), round(found.xi, 4)
        (True, 0.0909, 0.4545)
    """
    h, k = model.n_atoms, model.sparsity
    rows = checked_matrix(encoder, "encoder", (h, model.n_inputs))
    delta = float(np.linalg.norm(rows.T - model.dictionary, axis=0).max())
    mu = coherence(model.dictionary)
    if not delta < 1:
        raise InvalidInput(
            f"encoder must be within distance 1 of the atoms, row by row. Got {delta:.3g} instead. The "
            f"bounds are about the neighborhood of a dictionary."
        )
    size = math.log(h)
    p = math.log(k) / size
    xi = -math.log(mu) / size if mu > 0 else math.inf
    nu_squared = -math.log(delta) / size - p if delta > 0 else math.inf
    tail = k * model.mean**2 / (2 * (model.high - model.low) ** 2) if model.high > model.low else math.inf
    conditions = (
        (nu_squared > 0, "delta < h^-p"),
        (delta == 0 or p + nu_squared < xi, "p + nu^2 < xi"),
        (p < 0.5, "p < 1/2"),
        (p < nu_squared, "p < nu^2"),
        (2 * p < xi, "2 p < xi"),
        (delta == 0 or model.low >= model.high * h**-nu_squared, "a >= b h^-nu^2"),
        (tail >= size, "exp(k m1^2 / (2 (b - a)^2)) >= h"),
    )
    return CriticalityHypotheses(
        p=p,
        nu_squared=nu_squared,
        xi=xi,
        distance=delta,
        coherence=mu,
        bias=2 * model.mean * k * (delta + mu),
        failing=tuple(words for holds, words in conditions if not holds),
        **_bounds(k, h, delta, mu, model.mean**2, model.mean_square),
    )


def _bounds(k: int, h: int, delta: float, mu: float, m1_squared: float, m2: float) -> dict[str, Any]:
    q, s, t, up, down = k / h, delta + mu, delta**2 + 2 * delta + mu, 1 + delta, 1 - delta
    alpha_hat = m1_squared * (6 * k * q * s * up + 9 * k**2 * q * s**2)
    beta_hat = m1_squared * (4 * k * q * s + 3 * k * q * s * up**2 + k * q * t * up + 3 * k**2 * q * s * t)
    cross = k * q * s * t
    return {
        "along_encoder": Interval(m2 * q * down**2 - alpha_hat, m2 * (q * up**2 + k * q * s**2) + alpha_hat),
        "along_atom": Interval(
            m2 * (2 * q * down - q * up**3 - cross) - beta_hat,
            m2 * (2 * q * up - q * down**3 + cross) + beta_hat,
        ),
        "remainder": m2 * (k * q * (3 * s * up**2 + 2 * s + t * up) + k**2 * q * (s**2 * up + s * t)),
    }
