"""How a target may be asked: counted, cached and budgeted queries, samples, and adapters for every kind."""

from __future__ import annotations

from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.samples import Samples
from unweave.targets.target import as_queries

__all__ = ["NormalisedQueries", "Queries", "Region", "Samples", "as_queries"]
