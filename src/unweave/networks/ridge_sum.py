"""Sums of ridge functions: units of any smooth kind, each with a profile of its own.

    f(x) = c + S^T x + sum_k p_k(u_k . x),

with unit directions u_k and profiles p_k that are splines of degree five, one value per output; beyond their
last knots they go on straight. It is what is left where directions are known and no activation explains the
profiles along them: units of mixed or unknown kinds. A spline is an approximation, and so is the sum.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline

from unweave.arrays import Array
from unweave.errors import InvalidInput

FORMAT = "unweave-ridge-sum"
VERSION = 1
DEGREE = 5
"""Of the splines: their error falls with the sixth power of the distance of knots."""
EVEN = 0.3
"""Share of even spacing in the places of knots; the rest is by equal numbers of rows between them."""
WEAK = 1e-11
"""Singular value of the fit, relative to the largest, below which a combination of profiles is left out: the
affine parts of profiles are each other's."""


@dataclass(frozen=True, eq=False)
class RidgeSum:
    """A sum of splines along directions; immutable, callable, saved as .npz and .json."""

    directions: Array
    """(D, m), columns of length one."""
    knots: Array
    """(m, q) in growing order, the ends repeated as splines need them."""
    coefficients: Array
    """(m, n, K) of the splines, n = q - 6."""
    slope: Array
    """(D, K)"""
    offset: Array
    """(K,)"""

    def __post_init__(self) -> None:
        m, q = np.shape(self.knots) if np.ndim(self.knots) == 2 else (-1, -1)
        outputs = np.shape(self.offset)[0] if np.ndim(self.offset) == 1 else -1
        shapes = {
            "directions": (np.shape(self.slope)[0], m),
            "coefficients": (m, q - DEGREE - 1, outputs),
            "slope": (np.shape(self.directions)[0], outputs),
        }
        for name, expected in shapes.items():
            if np.shape(getattr(self, name)) != expected:
                raise InvalidInput(
                    f"{name} must be of shape {expected}. Got {np.shape(getattr(self, name))} instead."
                )
        for name in ("directions", "knots", "coefficients", "slope", "offset"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if not np.isfinite(values).all():
                raise InvalidInput(f"{name} must be finite. Got NaN or infinite entries instead.")
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    @property
    def n_inputs(self) -> int:
        """Number of inputs D."""
        return int(self.directions.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of outputs K."""
        return int(self.offset.shape[0])

    @property
    def width(self) -> int:
        """Number of profiles m."""
        return int(self.directions.shape[1])

    @property
    def n_parameters(self) -> int:
        """Number of directions' entries, coefficients, slopes and constants."""
        return int(self.directions.size + self.coefficients.size + self.slope.size + self.offset.size)

    @property
    def rows_to_verify(self) -> int:
        """Number of fresh rows on which it is tried at least."""
        return 200

    def __call__(self, x: ArrayLike) -> Array:
        """Return the answers (n, K) at rows ``x`` (n, D); of one vector, a vector."""
        points = np.asarray(x, dtype=np.float64)
        if points.ndim not in (1, 2) or points.shape[-1] != self.n_inputs:
            raise InvalidInput(
                f"x must be of shape (n, {self.n_inputs}) or ({self.n_inputs},). Got shape {points.shape} "
                "instead. Give one row per point and one column per input."
            )
        rows = np.atleast_2d(points)
        values = rows @ self.slope + self.offset
        for unit, t in enumerate((rows @ self.directions).T):
            values += self.profile(unit, t)
        return np.asarray(values[0] if points.ndim == 1 else values)

    def profile(self, unit: int, t: ArrayLike) -> Array:
        """Return p_k (n, K) at ``t`` (n,)."""
        places = np.asarray(t, dtype=np.float64)
        knots = self.knots[unit]
        design, beyond = _design(places, knots)
        slopes = BSpline(knots, self.coefficients[unit], DEGREE).derivative()
        ends = np.where(beyond > 0, knots[-1], knots[0])
        straight: Array = np.asarray(beyond[:, None] * slopes(ends))
        return np.asarray(design @ self.coefficients[unit] + straight)

    def describe(self) -> str:
        """``10-16-1 ridge functions``: inputs, profiles, outputs."""
        return f"{self.n_inputs}-{self.width}-{self.n_outputs} ridge functions (splines)"

    def __repr__(self) -> str:
        return f"RidgeSum({self.n_inputs}-{self.width}-{self.n_outputs}, {self.n_parameters} parameters)"

    def placed(self, rows: Array, rng: np.random.Generator) -> Array:
        """Return ``rows`` (n, D) moved along a direction each to an end of its profile."""
        units = rng.integers(self.width, size=len(rows))
        ends = np.where(rng.random(len(rows)) < 0.5, self.knots[units, 0], self.knots[units, -1])
        along = self.directions[:, units].T
        size = np.einsum("nd,nd->n", along, along)
        moved: Array = rows + ((ends - np.einsum("nd,nd->n", rows, along)) / size)[:, None] * along
        return moved

    def to_torch(self) -> Any:
        """Refuse: splines have no torch module."""
        raise InvalidInput(
            "to_torch must be given a network. Got a sum of ridge functions instead, whose splines have no "
            "torch module. Save it as .npz or .json, or call it."
        )

    def arrays(self) -> dict[str, Any]:
        """Return what an .npz archive holds, ``format`` and ``version`` included."""
        names = ("directions", "knots", "coefficients", "slope", "offset")
        held = {name: getattr(self, name) for name in names}
        return {"format": np.array(FORMAT), "version": np.array(VERSION), **held}

    @staticmethod
    def from_arrays(content: dict[str, Any]) -> RidgeSum:
        """Return the sum that `arrays` described, or the lists of a .json file."""
        names = ("directions", "knots", "coefficients", "slope", "offset")
        missing = [name for name in names if name not in content]
        if missing:
            raise InvalidInput(
                f"a sum of ridge functions must have {', '.join(names)}. {', '.join(missing)} is missing."
            )
        return RidgeSum(*(np.asarray(content[name], dtype=np.float64) for name in names))

    def save(self, path: str | Path, dtype: str = "float64") -> None:
        """Write the sum to an .npz or .json file, exactly; `unweave.load` reads it."""
        from unweave.files.atomic import write_file  # files reads models, so it is imported here

        path = Path(path)
        ending = path.suffix.lower()
        if ending not in (".npz", ".json") or dtype != "float64":
            raise InvalidInput(
                f"path must end in .npz or .json, and dtype be float64, for a sum of ridge functions: other "
                f"formats have no splines. Got {str(path)!r} and {dtype} instead."
            )
        if ending == ".json":
            content = {key: value.tolist() for key, value in self.arrays().items()}
            write_file(path, (json.dumps(content, allow_nan=False) + "\n").encode("utf-8"))
            return
        buffer = io.BytesIO()
        np.savez(buffer, **self.arrays())
        write_file(path, buffer.getvalue())


def fit_ridge_sum(directions: Array, x: Array, y: Array, intervals: int) -> RidgeSum:
    """Fit profiles along unit ``directions`` (D, m) to answers ``y`` (n, K) at ``x`` (n, D), linear in all.

    Cost: a least-squares problem (n, m (intervals + 5) + D + 1).
    """
    t = x @ directions
    knots, blocks = [], []
    for each in t.T:
        by_rows = np.quantile(each, np.linspace(0, 1, intervals + 1))
        inner = (1 - EVEN) * by_rows + EVEN * np.linspace(by_rows[0], by_rows[-1], intervals + 1)
        knots.append(np.concatenate([[inner[0]] * DEGREE, inner, [inner[-1]] * DEGREE]))
        blocks.append(_with_straight_ends(each, knots[-1]))
    design = np.concatenate([*blocks, x, np.ones((len(x), 1))], axis=1)
    size = np.linalg.norm(design, axis=0)
    size = np.where(size > 0, size, 1.0)
    solution = np.linalg.lstsq(design / size, y, rcond=WEAK)[0] / size[:, None]
    m, n = directions.shape[1], intervals + DEGREE
    coefficients = solution[: m * n].reshape(m, n, y.shape[1])
    return RidgeSum(directions, np.stack(knots), coefficients, solution[m * n : -1], solution[-1])


def _design(t: Array, knots: Array) -> tuple[Array, Array]:
    """Return the values (n, b) of the basis at ``t`` moved inside the knots, and how far it was outside."""
    inside = np.clip(t, knots[0], knots[-1])
    return BSpline.design_matrix(inside, knots, DEGREE).toarray(), np.asarray(t - inside)


def _with_straight_ends(t: Array, knots: Array) -> Array:
    """Return the values (n, b) of the basis at ``t``, straight beyond the knots."""
    design, beyond = _design(t, knots)
    count = design.shape[1]
    slopes = BSpline(knots, np.eye(count), DEGREE).derivative()
    ends = slopes(np.array([knots[0], knots[-1]]))
    return np.asarray(
        design
        + np.where(beyond > 0, beyond, 0)[:, None] * ends[1]
        + np.where(beyond < 0, beyond, 0)[:, None] * ends[0]
    )
