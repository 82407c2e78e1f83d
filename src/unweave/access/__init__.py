"""How a target may be asked: counted, cached and budgeted queries, and what a first look at it finds."""

from __future__ import annotations

from unweave.access.noise import Noise, estimate_noise
from unweave.access.probe import Findings, look
from unweave.access.queries import Queries
from unweave.access.region import NormalisedQueries, Region
from unweave.access.target import as_queries

__all__ = [
    "Findings",
    "Noise",
    "NormalisedQueries",
    "Queries",
    "Region",
    "as_queries",
    "estimate_noise",
    "look",
]
