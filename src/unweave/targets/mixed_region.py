"""The region of targets with whole numbers, booleans and categories: rows that the columns admit."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.networks.columns import Columns
from unweave.targets.region import Region


class MixedRegion(Region):
    """A region of codes: discrete columns are drawn from their levels and never leave them."""

    columns: Columns
    levels: list[Array]
    last: Array
    """(D,) largest code of booleans and categories, which begin at 0; infinite for others."""

    @classmethod
    def of(cls, columns: Columns, codes: Array) -> MixedRegion:
        """Return the region of example rows ``codes`` (n, D)."""
        plain = Region.from_examples(codes)
        region = cls(plain.location, plain.scale)
        levels = [
            np.arange(column.width, dtype=np.float64) if column.kind == "category" else np.unique(codes[:, j])
            for j, column in enumerate(columns.columns)
        ]
        object.__setattr__(region, "columns", columns)
        object.__setattr__(region, "levels", levels)
        counts = {"boolean": 2.0}
        last = [c.width if c.kind == "category" else counts.get(c.kind, np.inf) for c in columns.columns]
        object.__setattr__(region, "last", np.array(last) - 1.0)
        return region

    def to_inputs(self, u: Array) -> Array:
        """Return admissible codes: discrete columns at the nearest whole number, or the nearest level."""
        x = super().to_inputs(u)
        least = np.where(np.isfinite(self.last), 0.0, -np.inf)
        return np.where(self.columns.discrete, np.clip(np.round(x), least, self.last), x)

    def sample(self, n: int, rng: np.random.Generator, margin: float = 0.0) -> Array:
        """Draw free columns from a Gaussian, discrete ones from their levels."""
        x = Region.to_inputs(self, rng.standard_normal((n, self.n_inputs)))
        for j in np.flatnonzero(self.columns.discrete):
            x[:, j] = rng.choice(self.levels[j], n)
        return self.to_normalised(x)
